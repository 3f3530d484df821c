package dialect

import (
	"cmp"
	"slices"

	"fermata/recording"
)

// Dropped is the tokens of a token event that turned out to be no arrival.
const Dropped int32 = -1

// Attribute settles how many tokens each token event of an ended answer brought:
// counts[i] is its Token.Count and textBytes[i] the length of its text. It gives
// the tokens (Dropped where the event was no arrival), their source for
// Trace.ArrivalSource, and notes for Trace.Notes. By the first rule that holds:
//
//  1. What the server said of each event, if it said so of every event with text,
//     or if what it said adds up to its usage; an event with text of which it said
//     nothing then brought 0.
//  2. One each, where the events with text are as many as the usage.
//  3. One each, where they are as many together with those without text.
//  4. Where the usage is greater: one for each event with text, the surplus shared
//     in proportion to bytes of text; a surplus of 1 before a stop, which is the
//     end-of-sequence token, goes to the last.
//  5. One for each event with text: there is no usage, or a smaller one, or one
//     that the bytes of text cannot stand for.
//
// Of several choices the usage covers more than the judged one: rules 2 to 4 do
// not apply, nor does a count by usage. Reasoning tokens that were reported but
// never streamed are no part of the usage that is shared.
func Attribute(counts, textBytes []int32, a *Answer) (tokens []int32, source string, notes []string) {
	several := slices.Contains(a.Notes, recording.NoteManyChoices)
	usage, told := streamed(a)
	told = told && !several
	if a.CountSource != "" && !(several && a.CountSource == recording.ArrivalUsage) {
		if tokens, ok := asSaid(counts, textBytes, a); ok {
			return tokens, a.CountSource, nil
		}
	}
	texts := int32(0)
	for _, b := range textBytes {
		if b > 0 {
			texts++
		}
	}
	switch all := int32(len(counts)); {
	case told && usage == texts:
		return oneEach(textBytes, false), recording.ArrivalEvents, nil
	case told && usage == all:
		return oneEach(textBytes, true), recording.ArrivalEvents, nil
	case told && usage > texts && texts > 0 && credible(usage, textBytes):
		tokens = oneEach(textBytes, false)
		share(tokens, textBytes, usage-texts, a.FinishReason)
		return tokens, recording.ArrivalShared, []string{recording.NoteUsageShared}
	}
	return oneEach(textBytes, false), recording.ArrivalAssumed, nil
}

// credible says whether text of so many bytes can stand for so many tokens: about
// a byte each, and some without text. A server's mistake must not become millions
// of arrivals.
func credible(usage int32, textBytes []int32) bool {
	most := int64(1000)
	for _, b := range textBytes {
		most += 4 * int64(b)
	}
	return int64(usage) <= most
}

// streamed is the reported output without hidden reasoning.
func streamed(a *Answer) (int32, bool) {
	usage := a.OutputTokens.V
	if !a.ReasoningSeen {
		usage -= a.ReasoningTokens.V
	}
	return usage, a.OutputTokens.OK
}

// asSaid is the server's own counts, if they are enough.
func asSaid(counts, textBytes []int32, a *Answer) ([]int32, bool) {
	tokens := make([]int32, len(counts))
	var sum int64
	silentText := false
	for i, n := range counts {
		switch {
		case n > 0:
			tokens[i] = n
			sum += int64(n)
		case textBytes[i] == 0:
			tokens[i] = Dropped
		case n == Unknown:
			silentText = true
		}
	}
	if silentText && !(a.OutputTokens.OK && sum == int64(a.OutputTokens.V)) {
		return nil, false
	}
	return tokens, sum > 0
}

// oneEach gives each event with text a token, and those without if empty.
func oneEach(textBytes []int32, empty bool) []int32 {
	tokens := make([]int32, len(textBytes))
	for i, b := range textBytes {
		tokens[i] = Dropped
		if b > 0 || empty {
			tokens[i] = 1
		}
	}
	return tokens
}

// share adds surplus tokens by bytes of text, with the largest remainders rounded
// up and the earlier of equal ones first.
func share(tokens, textBytes []int32, surplus int32, finish string) {
	type part struct {
		at        int
		remainder int64
	}
	var parts []part
	var bytes int64
	for i, b := range textBytes {
		if b > 0 {
			parts = append(parts, part{at: i})
			bytes += int64(b)
		}
	}
	if surplus == 1 && finish == "stop" {
		tokens[parts[len(parts)-1].at]++
		return
	}
	left := int64(surplus)
	for i := range parts {
		p := &parts[i]
		weight := int64(surplus) * int64(textBytes[p.at])
		tokens[p.at] += int32(weight / bytes)
		left -= weight / bytes
		p.remainder = weight % bytes
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.remainder, a.remainder) })
	for _, p := range parts[:left] {
		tokens[p.at]++
	}
}
