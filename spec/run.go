// Package spec is the run file: an experiment as data. It composes the rooms'
// own options, reads them strictly with all mistakes at once, and writes them
// back with defaults filled in and without anything secret.
package spec

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"fermata/check"
	"fermata/cost"
	"fermata/deadline"
	"fermata/dialect"
	"fermata/internal/conf"
	"fermata/load"
	"fermata/metrics"
	"fermata/schedule"
	"fermata/wire"
	"fermata/workload"
)

// A Run is one run: what is asked of whom, when, and how it is judged. Read
// makes one with its defaults filled in. Paths of files are as the process sees
// them, not relative to the run file.
type Run struct {
	Name     string                `yaml:"name"` // part of the run's folder name
	Target   Target                `yaml:"target"`
	Targets  []Candidate           `yaml:"targets"`    // several in one run, instead of Target
	Among    string                `yaml:"interleave"` // how requests go to them: random (default) or block
	Workload workload.Options      `yaml:"workload"`
	Schedule schedule.Options      `yaml:"schedule"`
	Load     load.Options          `yaml:"load"`
	Connect  wire.Options          `yaml:"connect"` // how the servers are reached
	SLO      []string              `yaml:"slo"`     // objectives, as metrics.ParseObjective takes them
	Judging  Judging               `yaml:"judge"`
	MLPerf   metrics.MLPerfOptions `yaml:"mlperf"` // the scenario that the load is and by which it is judged too; default none
	Expect   string                `yaml:"expect"` // how a good answer ends: stop, length or any (default)
	Check    check.Options         `yaml:"check"`  // by which a right answer is known; default none
	Record   Record                `yaml:"record"`
	Prices   cost.Prices           `yaml:"prices"`    // a file of prices, or prices; the saved run file has the prices
	Labels   map[string]string     `yaml:"labels"`    // free words that go into results
	Seed     uint64                `yaml:"seed,zero"` // of everything random; default a fresh one

	Simulated string `yaml:"-"` // the system, where Again read the spec of a simulated run
}

// Target is who is asked. Credentials are named, never given.
type Target struct {
	URL             string `yaml:"url"` // base (http://h:1), up to /v1, or the endpoint's full path
	dialect.Options `yaml:",inline"`
	Transport       string `yaml:"transport"` // fast or compatible; default by what the server needs

	APIKeyEnv  string            `yaml:"api_key_env"`  // environment variable that holds the key
	APIKeyFile string            `yaml:"api_key_file"` // file that holds the key and nothing else
	Headers    map[string]string `yaml:"headers"`      // sent with every request; values are never saved
	HeadersEnv map[string]string `yaml:"headers_env"`  // header name to environment variable
}

// A Candidate is one of several targets.
type Candidate struct {
	Name   string  `yaml:"name"`   // in column target and in results
	Weight float64 `yaml:"weight"` // its share of the requests beside those of the others; default 1
	Target `yaml:",inline"`
}

// How requests go to several targets.
const (
	Random = "random" // each by itself, by the weights
	Block  = "block"  // each block of requests to every target as often as its weight says
)

// Judging says how the recording is judged.
type Judging struct {
	TargetGap []time.Duration  `yaml:"target_gap"` // of the fluidity index; default 25, 50 and 100 ms
	Pace      float64          `yaml:"pace"`       // reading pace, tokens a second; default 6
	Deadlines deadline.Options `yaml:"deadlines"`  // of first tokens; default none
	Over      []time.Duration  `yaml:"over"`       // exceedance bounds besides 1, 5, 15 and 25 s
	Slow      time.Duration    `yaml:"slow"`       // answers that took longer are slow; default not declared
	Verdict   string           `yaml:"verdict"`    // interval (default) or point

	Saturation Saturation `yaml:"saturation"` // highest rate that is served, requests/s; default unknown

	cost.Options `yaml:",inline"` // how prices become costs
}

// Record says what the recording keeps besides arrivals.
type Record struct {
	KeepText bool   `yaml:"keep_text,zero"` // keep prompts and answers, in text.parquet
	Scrape   string `yaml:"scrape"`         // what the server says of itself: auto (default), off or the URL of its Prometheus page
}

// Read reads a run file with settings put over it. The error is nil or
// conf.Mistakes, all of them. With an empty file name, data may be empty: then
// the settings are the run.
//
// With a data set and a schedule that says nothing of when to ask, Schedule
// stays as it is: the data set's own times may decide, see schedule.Unset.
//
// Of two keys that exclude each other, such as schedule.requests and
// schedule.duration, a setting of one replaces the file's other.
func Read(file string, data []byte, sets []conf.Setting) (*Run, error) {
	r := &Run{}
	doc, _ := conf.ReadWith(file, data, sets, r)
	doc.Report("", r.zeros(doc))
	doc.Report("judge.deadlines", r.Judging.Deadlines.Load())
	doc.Report("", r.Judging.Saturation.load())
	r.prefer(sets)
	r.stage(doc)
	r.report(doc)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	r.fill(doc)
	return r, nil
}

// Again reads the run file beside a recording, to judge the recording again with
// settings put over it: objectives among them replace those of the run. Only
// what concerns judging is checked, so that it does not matter that secrets were
// removed or that a data set is gone. Data may be empty, for a recording without
// a run file.
func Again(file string, data []byte, sets []conf.Setting) (*Run, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		file = ""
	}
	if slices.ContainsFunc(sets, func(s conf.Setting) bool { return s.Path == "slo" }) {
		sets = slices.Insert(slices.Clone(sets), 0, conf.Setting{Path: "slo", Value: "[]"})
	}
	if isSim(data) {
		return againSim(file, data, sets)
	}
	r := &Run{}
	doc, _ := conf.ReadWith(file, data, sets, r)
	doc.Report("", r.judgingZeros(doc))
	doc.Report("judge.deadlines", r.Judging.Deadlines.Load())
	doc.Report("", r.Judging.Saturation.load())
	r.reportPrices(doc)
	r.reportJudging(doc)
	if slices.ContainsFunc(sets, func(s conf.Setting) bool { return s.Path == "judge.saturation" }) {
		r.Load.ProbeSaturation = false // what the run found out counts no more
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	r.fill(doc)
	return r, nil
}

// prefer drops the file's value where a setting chose its alternative.
func (r *Run) prefer(sets []conf.Setting) {
	set := func(path string) bool {
		return slices.ContainsFunc(sets, func(s conf.Setting) bool { return s.Path == path })
	}
	preferWhen(&r.Schedule, r.mayConverse(), func(path string) bool {
		return slices.ContainsFunc(sets, func(s conf.Setting) bool { return below(s.Path, path) })
	})
	preferScenario(r, set)
	preferWhat(&r.Workload, set)
	preferCheck(&r.Check, set)
}

// fill gives what was not said its default.
func (r *Run) fill(doc *conf.Doc) {
	if !r.timesFromData() {
		r.Schedule = r.Schedule.Filled()
		fillWarmup(&r.Schedule)
	}
	r.Workload = r.Workload.Filled()
	if len(r.Targets) == 0 {
		defaults(&r.Target.API, impliedAPI(r.Target.URL))
	} else {
		defaults(&r.Among, Random)
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		defaults(&t.API, impliedAPI(t.URL))
		defaults(&t.Weight, 1)
	}
	defaults(&r.Load.Timeout, 10*time.Minute)
	defaults(&r.Load.SilenceTimeout, time.Minute)
	if len(r.Judging.TargetGap) == 0 {
		r.Judging.TargetGap = []time.Duration{25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}
	}
	defaults(&r.Judging.Pace, 6)
	defaults(&r.Judging.Verdict, "interval")
	defaults(&r.Expect, "any")
	if !doc.Has("seed") {
		r.Seed = freshSeed()
	}
}

// fillWarmup writes the default of the warm-up out, except where it is the
// earlier of a time and a number of requests, which no value says.
func fillWarmup(s *schedule.Options) {
	switch {
	case s.Warmup != "":
	case s.Kind == schedule.Given, s.Kind == schedule.All, s.Ramp != nil, len(s.Steps) > 0:
		s.Warmup = "0"
	case s.Requests > 2000:
		s.Warmup = "200"
	case s.Requests > 0:
		s.Warmup = "10%"
	}
}

// mayConverse says that requests may follow the answers of others: of a data set
// only its rows tell.
func (r *Run) mayConverse() bool { return r.Workload.Turns > 1 || r.Workload.Dataset != "" }

// timesFromData says that only the data set can tell whether the schedule needs
// anything: its lines may have times of their own.
func (r *Run) timesFromData() bool {
	return r.Workload.Dataset != "" && r.Schedule.Unset()
}

// freshSeed is the seed of a run that was given none. A fixed one would ask a
// server the same prompts in every run, and its prefix cache would answer. It is
// short, as people pass it on.
func freshSeed() uint64 { return uint64(rand.Uint32N(1e6)) }

// defaults sets v where it is zero.
func defaults[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Judge is how metrics judge the run's recording.
func (r *Run) Judge() (metrics.Options, error) {
	o := metrics.Options{
		TargetGapsNs: nanoseconds(r.Judging.TargetGap),
		OverNs:       nanoseconds(r.Judging.Over),
		ExpectStop:   r.Expect == "stop",
		SlowNs:       int64(r.Judging.Slow),
		Check:        r.Check.Kind(),
		PointVerdict: r.Judging.Verdict == "point",

		SaturationRPS: r.Judging.Saturation.RPS,
		Doubts:        r.Judging.Saturation.Doubts,
		Probed:        r.Load.ProbeSaturation,
		AllAtOnce:     r.Schedule.Kind == schedule.All,
		ClosedLoop:    r.Schedule.Kind == schedule.Closed,
	}
	if r.Judging.Pace > 0 {
		o.PaceNs = int64(math.Round(1e9 / r.Judging.Pace))
	}
	var mistakes conf.Mistakes
	d, err := r.Judging.Deadlines.Deadlines()
	if err != nil {
		mistakes = append(mistakes, conf.Mistake{Path: "judge.deadlines", Text: err.Error()})
	}
	o.Deadlines = d
	o.MLPerf = r.MLPerf.Filled()
	o.MLPerf.Otherwise = r.otherwise()
	for i, text := range r.Load.StopAtPrecision {
		aim, err := metrics.ParseAim(text)
		if err != nil {
			mistakes = append(mistakes, conf.Mistake{Path: item("load.stop_at_precision", i), Text: err.Error()})
			continue
		}
		o.Aims = append(o.Aims, aim)
	}
	for i, text := range r.SLO {
		objective, err := metrics.ParseObjective(text)
		if err != nil {
			mistakes = append(mistakes, conf.Mistake{Path: item("slo", i), Text: err.Error()})
			continue
		}
		o.SLO = append(o.SLO, objective)
	}
	return o, mistakes.Err()
}

func nanoseconds(ds []time.Duration) []int64 {
	ns := make([]int64, len(ds))
	for i, d := range ds {
		ns[i] = int64(d)
	}
	return ns
}

// YAML is the run file that says the same with every default filled in. The
// values of headers, and user names, passwords and keys inside URLs, are
// replaced by Removed; Read refuses a file with one of those and says so.
func (r *Run) YAML() []byte {
	safe := *r
	safe.Target = r.Target.public()
	safe.Connect.Proxy = publicProxy(r.Connect.Proxy)
	safe.Record.Scrape = publicScrape(r.Record.Scrape)
	safe.Targets = slices.Clone(r.Targets)
	for i := range safe.Targets {
		safe.Targets[i].Target = safe.Targets[i].public()
	}
	data, err := conf.Write(safe)
	if err != nil {
		// Only a value that no reader makes, such as a channel in the body.
		return []byte("# this run cannot be written: " + strings.ReplaceAll(err.Error(), "\n", " ") + "\n")
	}
	return data
}
