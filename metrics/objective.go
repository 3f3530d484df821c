package metrics

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Objective is a promise about requests: for a share of them every term holds
// jointly. ParseObjective makes one.
type Objective struct {
	Text       string
	Terms      []Term
	Share      int  // of requests, in thousandths; 990 unless said. Of no meaning for error and schema
	Percentile bool // written as @p99: one term is judged by that percentile
}

// A Term bounds one figure of a request.
type Term struct {
	Name  string // ttft, tbt, fluidity …
	Stat  string // longest, max, p99, decode …; empty for the figure itself
	AtNs  int64  // bound of a time
	Num   int64  // bound of a share or an index: Num/Den
	Den   int64
	GapNs int64 // target gap of fluidity

	percentile int // of Stat p99, in thousandths
}

// String is the term's name with its statistic.
func (t Term) String() string {
	if t.Stat == "" {
		return t.Name
	}
	return t.Name + "." + t.Stat
}

// SameObjective says that two objectives ask for the same, in other words maybe.
func SameObjective(a, b string) bool {
	x, err := ParseObjective(a)
	y, wrong := ParseObjective(b)
	return a == b || err == nil && wrong == nil && x.Share == y.Share && slices.Equal(x.Terms, y.Terms)
}

// pooled says whether the term is about the gaps of all requests together.
func (t Term) pooled() bool { return t.gaps() && t.Stat == "" }

// gaps says whether the figure is one of many a request.
func (t Term) gaps() bool { return t.Name == "tbt" || t.Name == "tbt_event" }

// ofRun says whether the term is a share of all requests.
func (t Term) ofRun() bool { return t.Name == "error" || t.Name == "schema" }

// names are the figures that an objective can bound, with the statistics of each.
var names = []struct {
	name  string
	stats []string // "" is the figure itself
}{
	{"ttft", []string{""}},
	{"ttft_sent", []string{""}},
	{"tbt", []string{"", "max", "pNN"}},
	{"tbt_event", []string{"", "max", "pNN"}},
	{"tpot", []string{""}},
	{"token_pace", []string{""}},
	{"normlat", []string{""}},
	{"e2e", []string{""}},
	{"stall", []string{"longest", "total"}},
	{"gap", []string{"longest"}},
	{"even_gap", []string{""}},
	{"fluidity", []string{"", "decode", "first"}},
	{"error", []string{""}},
	{"schema", []string{""}},
}

const knownNames = "ttft, ttft_sent, tbt, tbt.p99, tbt.max, tbt_event, tpot, token_pace, normlat, e2e, stall.longest, stall.total, gap.longest, even_gap, fluidity, fluidity.decode, fluidity.first, error, schema"

// ParseObjective reads NAME[.STAT]<=VALUE [and …] [@p99|@99%], such as
// "ttft<=2s and tbt.p99<=100ms @99%", "fluidity>=0.9 gap=25ms" or "error<=1%".
func ParseObjective(s string) (Objective, error) {
	o := Objective{Text: strings.TrimSpace(s), Share: 990}
	if err := o.parse(); err != nil {
		return Objective{}, fmt.Errorf("reading objective %q: %w", o.Text, err)
	}
	return o, nil
}

func (o *Objective) parse() error {
	if o.Text == "" {
		return fmt.Errorf("it is empty; write something like ttft<=2s @p99")
	}
	text, at, hasShare := strings.Cut(o.Text, "@")
	if share, rest, early := strings.Cut(strings.TrimSpace(at), " "); early {
		moved := strings.Join(strings.Fields(text+" "+rest), " ")
		again := Objective{Text: moved + " @" + share}
		if strings.Contains(rest, "@") {
			return fmt.Errorf("there is more than one @; it comes last and goes for all terms together")
		}
		if err := again.parse(); err != nil {
			return err
		}
		return fmt.Errorf("@%s comes last and goes for all terms together; write %s", share, again.Text)
	}
	if hasShare {
		if err := o.parseShare(strings.TrimSpace(at)); err != nil {
			return err
		}
	}
	for _, part := range splitWord(text, "and") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		o.Terms = append(o.Terms, t)
	}
	for _, t := range o.Terms {
		switch {
		case t.pooled() && len(o.Terms) > 1:
			return fmt.Errorf("%s pools the gaps of all requests, so it stands alone; for each request's own gaps write %s.p99 or %s.max", t.Name, t.Name, t.Name)
		case t.ofRun() && len(o.Terms) > 1:
			return fmt.Errorf("%s is a share of all requests, so it stands alone", t.Name)
		case t.ofRun() && hasShare:
			return fmt.Errorf("%s is a share of all requests already; leave @%s out", t.Name, at)
		}
	}
	return nil
}

// splitWord cuts s at a word that stands between spaces.
func splitWord(s, word string) []string {
	var parts []string
	var now []string
	for _, f := range strings.Fields(s) {
		if strings.EqualFold(f, word) {
			parts, now = append(parts, strings.Join(now, " ")), nil
			continue
		}
		now = append(now, f)
	}
	return append(parts, strings.Join(now, " "))
}

func (o *Objective) parseShare(s string) error {
	number := s
	switch {
	case strings.HasPrefix(s, "p"):
		number, o.Percentile = s[1:], true
	case strings.HasSuffix(s, "%"):
		number = s[:len(s)-1]
	default:
		return fmt.Errorf("@%s is neither a percentile nor a share; write @p99 or @99%%", s)
	}
	v, ok := thousandths(number)
	if !ok {
		return fmt.Errorf("@%s must lie between 0 and 100, with one decimal at most; write @p99 or @99%%", s)
	}
	o.Share = v
	return nil
}

// thousandths reads a percentage with one decimal at most, above 0 and below 100.
func thousandths(s string) (int, bool) {
	whole, tenth, dot := strings.Cut(s, ".")
	if dot && len(tenth) != 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+(tenth + "0")[:1], 10, 16)
	return int(n), err == nil && n > 0 && n < 1000 && whole != ""
}

func parseTerm(s string) (Term, error) {
	if s == "" {
		return Term{}, fmt.Errorf("a term is missing; write NAME<=VALUE, joined with and")
	}
	i := strings.IndexAny(s, "<>=≤≥")
	if i < 0 {
		return Term{}, fmt.Errorf("%q has no bound; write %s<=VALUE", s, s)
	}
	name := strings.TrimSpace(s[:i])
	t, err := parseName(name)
	if err != nil {
		return t, err
	}
	want := "<="
	if t.Name == "fluidity" || t.Name == "schema" {
		want = ">="
	}
	rest, ok := strings.CutPrefix(s[i:], want)
	if !ok {
		return t, fmt.Errorf("%s is bounded by %s; write %s%sVALUE", name, want, name, want)
	}
	value, gap, hasGap := strings.Cut(strings.TrimSpace(rest), "gap=")
	value = strings.TrimSpace(value)
	if hasGap && t.Name != "fluidity" {
		return t, fmt.Errorf("%s takes no gap; it belongs to fluidity", name)
	}
	switch {
	case t.Name == "fluidity":
		return t.fluidity(name, value, strings.TrimSpace(gap), hasGap)
	case t.ofRun():
		number, ok := strings.CutSuffix(value, "%")
		if !ok {
			return t, fmt.Errorf("%s%s%s lacks its unit; write it as a share such as %s%s%s", name, want, value, name, want, "1%")
		}
		if t.Num, t.Den, ok = ratio(number, 100); !ok {
			return t, fmt.Errorf("%s%s%s is no share between 0%% and 100%%", name, want, value)
		}
		return t, nil
	}
	t.AtNs, err = span(name, value)
	if err == nil && t.AtNs == 0 && (t.Name == "ttft" || t.Name == "e2e") { // others, such as stalls, can be nothing
		return t, fmt.Errorf("%s is met by no answer; write a time such as 2s, 100ms or 500us", s)
	}
	return t, err
}

// parseName finds the figure and its statistic.
func parseName(name string) (Term, error) {
	base, stat, _ := strings.Cut(name, ".")
	for _, n := range names {
		if n.name != base {
			continue
		}
		for _, known := range n.stats {
			if known == stat {
				return Term{Name: base, Stat: stat}, nil
			}
			if p, ok := strings.CutPrefix(stat, "p"); ok && known == "pNN" {
				if v, ok := thousandths(p); ok {
					return Term{Name: base, Stat: stat, percentile: v}, nil
				}
			}
		}
		return Term{}, statError(base, stat, n.stats)
	}
	return Term{}, fmt.Errorf("%q is not known; the names are %s", name, knownNames)
}

func statError(base, stat string, known []string) error {
	if strings.HasPrefix(stat, "p") && known[0] == "" && len(known) == 1 {
		return fmt.Errorf("%s is one figure a request, so %s.%s has no meaning; for that percentile of requests write %s<=VALUE @%s", base, base, stat, base, stat)
	}
	var forms []string
	for _, k := range known {
		switch k {
		case "":
			forms = append(forms, base)
		case "pNN":
			forms = append(forms, base+".p99")
		default:
			forms = append(forms, base+"."+k)
		}
	}
	if stat == "" {
		return fmt.Errorf("%s needs a statistic; write %s", base, strings.Join(forms, " or "))
	}
	return fmt.Errorf("%s.%s is not known; write %s", base, stat, strings.Join(forms, " or "))
}

func (t Term) fluidity(name, value, gap string, hasGap bool) (Term, error) {
	var ok bool
	if t.Num, t.Den, ok = ratio(value, 1); !ok {
		return t, fmt.Errorf("%s>=%s: the index lies between 0 and 1; write %s>=0.9 gap=25ms", name, value, name)
	}
	if !hasGap {
		return t, fmt.Errorf("%s needs its target gap; write %s>=%s gap=25ms", name, name, value)
	}
	var err error
	if t.GapNs, err = span("gap", gap); err == nil && t.GapNs < 1 {
		err = fmt.Errorf("a target gap must be 1ns or more")
	}
	return t, err
}

// ratio reads a decimal between 0 and of as a fraction of it.
func ratio(s string, of int64) (num, den int64, ok bool) {
	if s == "" || len(s) > 12 || strings.Trim(s, "0123456789.") != "" {
		return 0, 0, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, 0, false
	}
	r.Quo(r, new(big.Rat).SetInt64(of))
	if r.Sign() < 0 || r.Cmp(big.NewRat(1, 1)) > 0 {
		return 0, 0, false
	}
	return r.Num().Int64(), r.Denom().Int64(), true
}

// span reads a duration, exact to the nanosecond.
func span(name, s string) (int64, error) {
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		return 0, fmt.Errorf("%s: %s lacks a unit; write %ss or %sms", name, s, s, s)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longestNs {
		return 0, fmt.Errorf("%s: %q is no duration; write it as 2s, 100ms or 500us", name, s)
	}
	return int64(d), nil
}
