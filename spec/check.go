package spec

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/cost"
	"fermata/internal/conf"
	"fermata/load"
	"fermata/metrics"
	"fermata/schedule"
	"fermata/wire"
	"fermata/workload"
)

// zeros finds zeros that somebody wrote where 0 is the sign that nothing was
// said: the rooms cannot tell the two apart.
func (r *Run) zeros(doc *conf.Doc) []conf.Problem {
	var found []conf.Problem
	zero := func(path string, is bool) {
		if is && doc.Has(path) {
			found = append(found, conf.Problem{Path: path, Text: "must be more than 0"})
		}
	}
	zero("schedule.rate", !(r.Schedule.Rate > 0 || r.Schedule.Rate < 0))
	zero("schedule.burstiness", !(r.Schedule.Burstiness > 0 || r.Schedule.Burstiness < 0))
	zero("schedule.shape", !(r.Schedule.Shape > 0 || r.Schedule.Shape < 0))
	zero("schedule.speedup", !(r.Schedule.Speedup > 0 || r.Schedule.Speedup < 0))
	zero("schedule.concurrency", r.Schedule.Concurrency == 0)
	zero("schedule.requests", r.Schedule.Requests == 0)
	zero("schedule.streams", r.Schedule.Streams == 0)
	zero("schedule.duration", r.Schedule.Duration == 0)
	zero("workload.turns", r.Workload.Turns == 0)
	zero("workload.session_share", !(r.Workload.SessionShare > 0 || r.Workload.SessionShare < 0))
	if p := r.Workload.Prefix; p != nil {
		zero("workload.prefix.share", !(p.Share > 0 || p.Share < 0))
		zero("workload.prefix.groups", p.Groups == 0)
	}
	zero("load.time_scale", !(r.Load.TimeScale > 0 || r.Load.TimeScale < 0))
	zero("load.timeout", r.Load.Timeout == 0)
	zero("load.silence_timeout", r.Load.SilenceTimeout == 0)
	return append(found, r.judgingZeros(doc)...)
}

// judgingZeros are those zeros that judging a recording again may bring.
func (r *Run) judgingZeros(doc *conf.Doc) []conf.Problem {
	var found []conf.Problem
	zero := func(path string, is bool) {
		if is && doc.Has(path) {
			found = append(found, conf.Problem{Path: path, Text: "must be more than 0"})
		}
	}
	zero("judge.pace", !(r.Judging.Pace > 0 || r.Judging.Pace < 0))
	zero("judge.slow", r.Judging.Slow == 0)
	zero("mlperf.min_duration", r.MLPerf.MinDuration == 0)
	zero("mlperf.min_queries", r.MLPerf.MinQueries == 0)
	zero("judge.saturation", r.Judging.Saturation.unsaid())
	return found
}

// problems collects findings.
type problems []conf.Problem

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// report adds what every room finds in its options, and what only the whole
// shows.
func (r *Run) report(doc *conf.Doc) {
	found := r.Schedule.Check()
	if r.Schedule.Think != "" && r.Schedule.Concurrency == 0 && !r.mayConverse() {
		found = append(found, conf.Problem{Path: "think", Text: "is for closed loops and conversations; give concurrency, or workload.turns"})
	}
	if r.Schedule.Streams > 1 && r.Workload.Turns > 1 {
		found = append(found, conf.Problem{Path: "streams", Text: "cannot be given beside workload.turns: the requests of a query do not wait for each other"})
	}
	if r.timesFromData() || r.usersUnread(doc) {
		found = slices.DeleteFunc(found, func(p conf.Problem) bool { return p.Path == "rate" })
	}
	doc.Report("schedule", found)
	r.reportTargets(doc)
	doc.Report("workload", r.checkWorkload())
	doc.Report("load", r.checkLoad())
	doc.Report("connect", r.checkConnect())
	doc.Report("record", r.checkRecord())
	doc.Report("load", r.checkPrecision())
	r.reportMoney(doc)
	doc.Report("check", r.Check.Check())
	doc.Report("", r.checkUnchecked())
	if strings.ContainsAny(r.Name, "/\\") || r.Name == "." || r.Name == ".." || hasControl(r.Name) {
		doc.Report("", []conf.Problem{{Path: "name", Text: `becomes part of a folder's name, so that it cannot hold / or \ or control characters`}})
	}
	r.reportJudging(doc)
}

// reportJudging is report for what can be said anew of a recording.
func (r *Run) reportJudging(doc *conf.Doc) {
	doc.Report("judge", r.checkJudging())
	doc.Report("mlperf", r.MLPerf.Check())
	doc.Report("judge.deadlines", r.Judging.Deadlines.Check())
	doc.Report("", r.checkObjectives())
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (t *Target) check() []conf.Problem {
	var found problems
	u, err := parseURL(t.URL)
	switch {
	case err != nil:
		found.add("url", "%v", err)
	case wasRemoved(u):
		found.add("url", "its password or key was removed when this file was saved; give the whole URL again")
	}
	switch {
	case t.API != "" && t.API != "chat" && t.API != "completions":
		found.add("api", "must be chat or completions, not %q", t.API)
	case u != nil && t.API != "" && endpointSuffix(strings.TrimRight(u.Path, "/")) != "" && t.API != impliedAPI(t.URL):
		found.add("api", "is %s, but the URL ends in %s; change one of them", t.API, endpointSuffix(strings.TrimRight(u.Path, "/")))
	}
	switch {
	case t.Transport != "" && t.Transport != wire.FastName && t.Transport != wire.CompatibleName:
		found.add("transport", "must be fast or compatible, not %q", t.Transport)
	case t.Transport == wire.FastName && u != nil && u.Scheme != "http":
		found.add("transport", "is fast, which speaks plain http:// only; leave it out, or give compatible")
	}
	if t.APIKeyEnv != "" && !variableName.MatchString(t.APIKeyEnv) {
		// The value is not repeated: it may well be the key.
		found.add("api_key_env", "must be the name of an environment variable, such as OPENAI_API_KEY, never the key itself")
	}
	if t.APIKeyEnv != "" && t.APIKeyFile != "" {
		found.add("api_key_file", "is given together with api_key_env; give one of them")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Body)) {
		if why := workload.Decided(name); why != "" {
			found.add("body."+name, "cannot be given: %s", why)
		}
	}
	if lacksSecret(t.Body) {
		found.add("body", "a secret in it was removed when this file was saved; give it again")
	}
	return append(found, t.checkHeaders()...)
}

func (t *Target) checkHeaders() []conf.Problem {
	var found problems
	var seen []string
	name := func(path, name string) {
		switch same := func(other string) bool { return sameHeader(name, other) }; {
		case !validHeaderName(name):
			found.add(path, "a header's name has only letters, digits and - _ . and the like, no spaces or control characters")
		case slices.ContainsFunc([]string{"Content-Length", "Transfer-Encoding", "Connection"}, same):
			found.add(path, "cannot be given: it follows from the request")
		case slices.ContainsFunc(seen, same):
			found.add(path, "is given twice; names of headers are the same in upper and lower case")
		case sameHeader(name, "Authorization") && (t.APIKeyEnv != "" || t.APIKeyFile != ""):
			found.add(path, "cannot be given together with api_key_env or api_key_file, which set this header")
		}
		seen = append(seen, name)
	}
	for _, h := range slices.Sorted(maps.Keys(t.Headers)) {
		path := "headers." + h
		name(path, h)
		switch value := t.Headers[h]; {
		case value == Removed:
			found.add(path, "its value was removed when this file was saved; give it again, such as --header \"%s: …\", or name an environment variable under headers_env", h)
		case load.StrangePlaceholder(value) != "":
			word := load.StrangePlaceholder(value)
			found.add(path, "%s is not known; there are %s (as it stands it is written {%s})", word, strings.Join(load.Placeholders, ", "), word)
		case hasControl(value):
			found.add(path, "its value holds a line break or another control character")
		}
	}
	for _, h := range slices.Sorted(maps.Keys(t.HeadersEnv)) {
		path := "headers_env." + h
		name(path, h)
		if !variableName.MatchString(t.HeadersEnv[h]) {
			found.add(path, "must be the name of an environment variable, never the value itself")
		}
	}
	return found
}

// checkWorkload adds to the room's own check what needs a look at the disk.
func (r *Run) checkWorkload() []conf.Problem {
	found := problems(r.Workload.Check())
	if r.Workload.Dataset == "" {
		return found
	}
	if info, err := os.Stat(r.Workload.Dataset); err != nil {
		found.add("dataset", "cannot be read: %v", err)
	} else if info.IsDir() {
		found.add("dataset", "must be a file, and %s is a folder", r.Workload.Dataset)
	}
	return found
}

// usersUnread says that users were given and could not be read: nobody lacks a rate.
func (r *Run) usersUnread(doc *conf.Doc) bool {
	return r.Schedule.Concurrency == 0 && doc.Has("schedule.concurrency")
}

// mostRetries is more than anybody's patience.
const mostRetries = 100

func (r *Run) checkLoad() []conf.Problem {
	var found problems
	l := &r.Load
	if l.MaxInFlight < 0 {
		found.add("max_in_flight", "must not be negative, not %d; 0 means no limit", l.MaxInFlight)
	}
	if l.Retries < 0 || l.Retries > mostRetries {
		found.add("retries", "must be between 0, which means that no request is tried again, and %d, not %d", mostRetries, l.Retries)
	}
	if s := l.TimeScale; s < 0 || s > 0 && (s < 0.001 || s > 1000) {
		found.add("time_scale", "must be from 0.001 to 1000 simulated seconds a second, not %v", s)
	}
	if l.ProbeSaturation {
		const path = "probe_saturation"
		switch {
		case len(r.Targets) > 1:
			found.add(path, "finds the rate that one system serves, and this run has %d targets: run them one by one", len(r.Targets))
		case r.Schedule.Kind == schedule.Closed || r.Schedule.Concurrency > 0 || r.Schedule.Kind == schedule.All:
			found.add(path, "is for runs that offer a rate, and this one offers none: leave it out")
		case r.Workload.Turns > 0 || r.Workload.SessionShare > 0:
			found.add(path, "asks single requests, and this run has conversations: leave it out")
		case l.MaxCost != "":
			found.add(path, "and max_cost exclude each other: what the probe costs would not be counted")
		}
	}
	for path, d := range map[string]time.Duration{"timeout": l.Timeout, "silence_timeout": l.SilenceTimeout, "wait_ready": l.WaitReady} {
		if d < 0 {
			found.add(path, "must not be negative, not %s", conf.Duration(d))
		}
	}
	if s := l.StopIfFailed; s != "" {
		share, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if err != nil || !strings.HasSuffix(s, "%") || !(share > 0 && share <= 100) {
			found.add("stop_if_failed", "must be a share of the requests such as 50%%, not %q", s)
		}
	}
	return found
}

// reportMoney finds what is wrong with prices and what is to be spent.
func (r *Run) reportMoney(doc *conf.Doc) {
	var found problems
	if most := r.Load.MaxCost; most != "" {
		if _, err := cost.ParseAmount(most); err != nil {
			found.add("max_cost", "%v", err)
		}
		if !r.Prices.Given() {
			found.add("max_cost", "needs prices: give a file of them with prices")
		}
	}
	doc.Report("load", found)
	r.reportPrices(doc)
}

// reportPrices reads the files of prices and of a capacity, so that a saved run
// file has what they say.
func (r *Run) reportPrices(doc *conf.Doc) {
	unread := func(path string, err error) {
		doc.Report("", []conf.Problem{{Path: path, Text: "cannot be read: " + strings.ReplaceAll(err.Error(), "\n", "; ")}})
	}
	switch {
	case !r.Prices.Given():
	case r.Prices.File == "":
		doc.Report("prices", r.Prices.Check())
	default:
		if err := r.Prices.Load(); err != nil {
			unread("prices", err)
		} else if err := r.Prices.CheckProvider(r.Judging.Provider); err != nil {
			doc.Report("", []conf.Problem{{Path: "judge.provider", Text: err.Error()}})
		}
	}
	if err := r.Judging.Capacity.Load(r.promises); err != nil {
		unread("judge.capacity", err)
	}
	doc.Report("judge", r.Judging.Options.Check(&r.Prices))
}

// promises says that an objective is one of the run's.
func (r *Run) promises(text string) bool {
	return slices.ContainsFunc(r.SLO, func(own string) bool { return metrics.SameObjective(own, text) })
}

func (r *Run) checkPrecision() []conf.Problem {
	var found problems
	for i, text := range r.Load.StopAtPrecision {
		if _, err := metrics.ParseAim(text); err != nil {
			found.add(item("stop_at_precision", i), "%v", err)
		}
	}
	s := &r.Schedule
	switch {
	case len(r.Load.StopAtPrecision) == 0:
	case s.Kind == schedule.All:
		found.add("stop_at_precision", "is for load that goes on, and with schedule all everything is due at once")
	case s.Requests == 0 && s.Duration == 0 && s.Ramp == nil && len(s.Steps) == 0 && s.Kind != schedule.Given && s.File == "" && !r.timesFromData():
		found.add("stop_at_precision", "needs the most that the run may take, should the precision not come: give requests or duration")
	}
	return found
}

// longest bounds what recordings are judged by; metrics holds more than that
// exactly.
const longest = 100 * 24 * time.Hour

func (r *Run) checkJudging() []conf.Problem {
	var found problems
	j := &r.Judging
	for i, gap := range j.TargetGap {
		if gap <= 0 || gap > longest {
			found.add(item("target_gap", i), "must be more than 0 and at most %s, not %s", conf.Duration(longest), conf.Duration(gap))
		}
	}
	for i, bound := range j.Over {
		if bound <= 0 || bound > longest {
			found.add(item("over", i), "must be more than 0 and at most %s, not %s", conf.Duration(longest), conf.Duration(bound))
		}
	}
	if j.Slow < 0 {
		found.add("slow", "must be more than 0, not %s", conf.Duration(j.Slow))
	}
	switch {
	case j.Pace < 0:
		found.add("pace", "must be more than 0 tokens a second, not %v", j.Pace)
	case j.Pace > 0 && (j.Pace < 1e-3 || j.Pace > 1e6):
		found.add("pace", "must be between 0.001 and 1000000 tokens a second, not %v", j.Pace)
	}
	switch rps := j.Saturation.RPS; {
	case rps < 0 || math.IsInf(rps, 0) || math.IsNaN(rps):
		found.add("saturation", "must be a rate of more than 0 requests a second, not %v", rps)
	case rps > 0 && len(r.Targets) > 1:
		found.add("saturation", "is the rate that one system can serve, and this run has %d targets: run them one by one", len(r.Targets))
	case rps > 0 && r.Schedule.Kind == schedule.Closed:
		found.add("saturation", "is compared with an offered rate, and a closed loop has none")
	}
	if j.Verdict != "" && j.Verdict != "interval" && j.Verdict != "point" {
		found.add("verdict", "must be interval or point, not %q", j.Verdict)
	}
	return found
}

// checkUnchecked finds objectives on checks in a run that makes none. A recording
// from elsewhere may have some all the same.
func (r *Run) checkUnchecked() []conf.Problem {
	var found problems
	for i, text := range r.SLO {
		objective, err := metrics.ParseObjective(text)
		if err != nil || r.Check.Kind() != "" {
			continue // that is said elsewhere
		}
		for _, term := range objective.Terms {
			if term.Name == "schema" {
				found.add(item("slo", i), "is about answers that pass their check, and there is none: give check, such as schema:FILE")
			}
		}
	}
	return found
}

func (r *Run) checkObjectives() []conf.Problem {
	var found problems
	for i, text := range r.SLO {
		objective, err := metrics.ParseObjective(text)
		if err != nil {
			found.add(item("slo", i), "%v", err)
		}
		for _, term := range objective.Terms {
			if term.Name == "fluidity" && term.Stat == "first" && !r.Judging.Deadlines.Given() {
				found.add(item("slo", i), "fluidity.first needs deadlines of first tokens: give judge.deadlines, such as fixed:300ms, or write fluidity.decode")
			}
		}
	}
	if r.Expect != "" && r.Expect != "stop" && r.Expect != "length" && r.Expect != "any" {
		found.add("expect", "must be stop, length or any, not %q", r.Expect)
	}
	return found
}
