package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// latestS is the latest time that a row may give, in seconds: 285 years, the
// most that 64 bits of nanoseconds hold.
const latestS = 9e9

// The formats of data sets.
const (
	ownJSONL  = "fermata"
	shareGPT  = "sharegpt"
	lmsysChat = "lmsys"
	arxiv     = "arxiv"
	mooncake  = "mooncake"
	azure     = "azure"
	burstGPT  = "burstgpt"
	lengthCSV = "lengths"
)

// Formats are the names that Options.Format takes.
func Formats() []string {
	return []string{ownJSONL, shareGPT, lmsysChat, arxiv, mooncake, azure, burstGPT, lengthCSV}
}

// An item is one row as its format gives it. One with neither prompt nor
// messages has lengths only, and gets a synthetic prompt.
type item struct {
	prompt   string
	messages []json.RawMessage
	session  string

	timed          bool
	due            int64 // ns
	promptTokens   int32 // 0: not given
	outputTokens   int32
	estimateInput  int32 // tokens that the prompt's text is worth; 0 without text
	estimateOutput int32 // the same of the data set's own answer
	hashes         []int64
	think          time.Duration // where thinks
	thinks         bool
	params         map[string]any
	more           []item // further turns of the same conversation
	empty          bool   // nothing can be asked: a conversation without a question, a trace's failed request
}

func (it *item) text() bool { return it.prompt != "" || it.messages != nil }

// lengths are the row's as given, else as estimated.
func (it *item) lengths() pair {
	return pair{firstOf(it.promptTokens, it.estimateInput), firstOf(it.outputTokens, it.estimateOutput)}
}

// objectShape is the format of a JSON object by its keys; rows that are none
// are left to the strict reader of our own format to complain about.
func objectShape(data []byte) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(data, &keys) != nil {
		return ownJSONL
	}
	for _, one := range []struct{ key, shape string }{
		{"conversations", shareGPT},
		{"conversation", lmsysChat},
		{"article", arxiv},
		{"article_text", arxiv},
		{"input_length", mooncake},
	} {
		if _, ok := keys[one.key]; ok {
			return one.shape
		}
	}
	return ownJSONL
}

// objectParsers read a row of the formats that are JSON.
var objectParsers = map[string]func([]byte) (item, error){
	ownJSONL: parseOwn, shareGPT: parseShareGPT, lmsysChat: parseLMSys, arxiv: parseArxiv, mooncake: parseMooncake,
}

func parseOwn(line []byte) (item, error) {
	var r struct {
		Prompt       string            `json:"prompt"`
		Messages     []json.RawMessage `json:"messages"`
		AtS          *float64          `json:"at_s"` // due time, seconds from the start of the trace
		PromptTokens int32             `json:"prompt_tokens"`
		OutputTokens int32             `json:"output_tokens"`
		Session      string            `json:"session"`
		ThinkS       *float64          `json:"think_s"` // from the answer before to this turn, seconds

		Tools          json.RawMessage            `json:"tools"` // these and body go into the request as they are
		ToolChoice     json.RawMessage            `json:"tool_choice"`
		ResponseFormat json.RawMessage            `json:"response_format"`
		Body           map[string]json.RawMessage `json:"body"`
	}
	if !utf8.Valid(line) {
		return item{}, errors.New("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // a misspelt field would be silently lost
	if err := d.Decode(&r); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = errors.New("the JSON object is cut off")
		}
		if text, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			err = fmt.Errorf("unknown field %s; a row has prompt or messages, and may have prompt_tokens, output_tokens, at_s, session, think_s, tools, tool_choice, response_format and body", text)
		}
		return item{}, plain(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return item{}, errors.New("more than one JSON object")
	}
	switch {
	case r.Prompt != "" && len(r.Messages) > 0:
		return item{}, errors.New("both a prompt and messages")
	case r.PromptTokens < 0 || r.OutputTokens < 0:
		return item{}, errors.New("a length must not be negative")
	case r.PromptTokens > inputMax || r.OutputTokens > inputMax:
		return item{}, fmt.Errorf("a length is at most %d tokens", inputMax)
	case r.Prompt == "" && len(r.Messages) == 0 && r.PromptTokens == 0:
		return item{}, errors.New("neither a prompt nor messages, nor prompt_tokens to make one of")
	}
	it := item{prompt: r.Prompt, session: r.Session, promptTokens: r.PromptTokens, outputTokens: r.OutputTokens, estimateInput: estimate(r.Prompt)}
	if r.AtS != nil {
		due, err := fromSeconds("at_s", *r.AtS)
		if err != nil {
			return item{}, err
		}
		it.timed, it.due = true, due
	}
	if r.ThinkS != nil {
		think, err := fromSeconds("think_s", *r.ThinkS)
		if err != nil {
			return item{}, err
		}
		it.thinks, it.think = true, time.Duration(think)
	}
	it.param("tools", r.Tools)
	it.param("tool_choice", r.ToolChoice)
	it.param("response_format", r.ResponseFormat)
	for _, name := range slices.Sorted(maps.Keys(r.Body)) {
		why := Decided(name)
		if slices.Contains(limits, name) {
			why = "give the row's output_tokens"
		}
		if why != "" {
			return item{}, fmt.Errorf("body.%s cannot be given: %s", name, why)
		}
		it.param(name, r.Body[name])
	}
	if len(r.Messages) > 0 {
		it.messages = r.Messages
	}
	for i, m := range r.Messages {
		var message struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(m, &message); err != nil || message.Role == "" {
			return item{}, fmt.Errorf("messages[%d] is not an object with a role", i)
		}
		it.estimateInput += estimate(contentText(message.Content))
	}
	return it, nil
}

// param adds a field to the request's body, as it is.
func (it *item) param(name string, value json.RawMessage) {
	if value == nil {
		return
	}
	if it.params == nil {
		it.params = map[string]any{}
	}
	it.params[name] = value
}

func fromSeconds(name string, at float64) (int64, error) {
	if !(at >= 0 && at <= latestS) {
		return 0, fmt.Errorf("%s must be between 0 and %.0f seconds, not %v", name, float64(latestS), at)
	}
	return int64(math.Round(at * 1e9)), nil
}

// contentText is the text of a message's content: a string, or parts.
func contentText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// estimate is roughly how many tokens a text has: one for four ASCII characters,
// which holds for English in today's vocabularies, and one for each other.
func estimate(text string) int32 {
	ascii, other := 0, 0
	for _, c := range text {
		if c < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return int32(min((ascii+3)/4+other, inputMax))
}

// A turn is one message of a published conversation.
type turn struct{ role, text string }

// opening is the first exchange of a conversation: what stands before the first
// answer that follows a question. Conversations that begin in the middle, with
// an answer, begin at their first question. Its further questions are item.more.
func opening(turns []turn) item {
	first := -1
	for i, t := range turns {
		if t.role == "user" && t.text != "" {
			first = i
			break
		}
	}
	if first < 0 {
		return item{empty: true}
	}
	it := item{prompt: turns[first].text, estimateInput: estimate(turns[first].text)}
	if first > 0 && turns[first-1].role == "system" && turns[first-1].text != "" {
		system := turns[first-1].text
		it.estimateInput += estimate(system)
		it.prompt, it.messages = "", []json.RawMessage{message("system", system), message("user", turns[first].text)}
	}
	if first+1 < len(turns) && turns[first+1].role == "assistant" {
		it.estimateOutput = estimate(turns[first+1].text)
	}
	for i := first + 1; i < len(turns) && len(it.more) < turnsMax; i++ {
		if turns[i].role != "user" || turns[i].text == "" {
			continue
		}
		next := item{prompt: turns[i].text, estimateInput: estimate(turns[i].text)}
		if i+1 < len(turns) && turns[i+1].role == "assistant" {
			next.estimateOutput = estimate(turns[i+1].text)
		}
		it.more = append(it.more, next)
	}
	return it
}

func message(role, content string) json.RawMessage {
	m, err := json.Marshal(map[string]string{"role": role, "content": content})
	if err != nil {
		panic(err) // text always has JSON
	}
	return m
}

func parseShareGPT(data []byte) (item, error) {
	var r struct {
		Conversations *[]struct {
			From  string `json:"from"`
			Value string `json:"value"`
		} `json:"conversations"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return item{}, plain(err)
	}
	if r.Conversations == nil {
		return item{}, errors.New("no conversations in it")
	}
	turns := make([]turn, len(*r.Conversations))
	for i, c := range *r.Conversations {
		turns[i] = turn{speaker(c.From), c.Value}
	}
	return opening(turns), nil
}

// speaker is the role of a message's author by the names that data sets use.
func speaker(name string) string {
	switch name {
	case "human", "user":
		return "user"
	case "system":
		return "system"
	}
	return "assistant" // gpt, chatgpt, bard, bing
}

func parseLMSys(data []byte) (item, error) {
	var r struct {
		Conversation *[]struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"conversation"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return item{}, plain(err)
	}
	if r.Conversation == nil {
		return item{}, errors.New("no conversation in it")
	}
	turns := make([]turn, len(*r.Conversation))
	for i, c := range *r.Conversation {
		turns[i] = turn{speaker(c.Role), c.Content}
	}
	return opening(turns), nil
}

// parseArxiv reads both published shapes of the arXiv summarisation data: one
// text each, or lists of sentences, of which those of the abstract have tags.
func parseArxiv(data []byte) (item, error) {
	var r struct {
		Article      string   `json:"article"`
		Abstract     string   `json:"abstract"`
		ArticleText  []string `json:"article_text"`
		AbstractText []string `json:"abstract_text"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return item{}, plain(err)
	}
	abstract := strings.NewReplacer("<S>", "", "</S>", "").Replace(strings.Join(r.AbstractText, " "))
	return article(r.Article+strings.Join(r.ArticleText, " "), r.Abstract+strings.TrimSpace(abstract)), nil
}

func article(text, abstract string) item {
	if strings.TrimSpace(text) == "" {
		return item{empty: true}
	}
	// The wish stands at the end, so that prompts share no beginning.
	text += "\n\nSummarize this article."
	return item{prompt: text, estimateInput: estimate(text), estimateOutput: estimate(abstract)}
}

// parseMooncake reads a row of the published traces: milliseconds, lengths and
// a hash for each block of 512 tokens of the prompt.
func parseMooncake(data []byte) (item, error) {
	var r struct {
		Timestamp    *float64 `json:"timestamp"`
		InputLength  int32    `json:"input_length"`
		OutputLength int32    `json:"output_length"`
		HashIDs      []int64  `json:"hash_ids"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return item{}, plain(err)
	}
	if r.Timestamp == nil {
		return item{}, errors.New("timestamp is missing")
	}
	if r.InputLength > inputMax || r.OutputLength > inputMax || r.InputLength < 0 || r.OutputLength < 0 {
		return item{}, fmt.Errorf("a length must be between 0 and %d tokens", inputMax)
	}
	for _, id := range r.HashIDs {
		if id < 0 {
			return item{}, fmt.Errorf("a hash id must not be negative, not %d", id)
		}
	}
	due, err := fromSeconds("timestamp", *r.Timestamp/1000)
	return item{
		timed: true, due: due, promptTokens: r.InputLength, outputTokens: r.OutputLength, hashes: r.HashIDs,
		empty: r.InputLength == 0 || r.OutputLength == 0,
	}, err
}

// plain is an error of encoding/json for people: which field, and what it should
// have been.
func plain(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	want := "a number"
	switch wrong.Type.Kind() {
	case reflect.String:
		want = "text"
	case reflect.Int32, reflect.Int64:
		want = "a whole number"
	case reflect.Slice:
		want = "a list"
	case reflect.Map, reflect.Struct:
		want = "an object"
	}
	name := wrong.Field
	if name == "" {
		name = "the row"
	}
	return fmt.Errorf("%s must be %s, not %s", name, want, strings.TrimPrefix(wrong.Value, "number "))
}
