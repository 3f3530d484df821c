package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fermata/cost"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/schedule"
	"fermata/sim"
	"fermata/workload"
)

// A Sim is a run of the simulator: the system that is simulated, and what is
// asked of it when, as in a Run. ReadSim makes one.
type Sim struct {
	Name        string `yaml:"name"`
	sim.Options `yaml:",inline"`
	Flags       sim.Aliases           `yaml:",inline"`
	Workload    SimWorkload           `yaml:"workload"`
	Schedule    schedule.Options      `yaml:"schedule"` // needless where the workload's file has arrivals
	SLO         []string              `yaml:"slo"`
	Judging     Judging               `yaml:"judge"`
	MLPerf      metrics.MLPerfOptions `yaml:"mlperf"`
	Prices      cost.Prices           `yaml:"prices"` // what its GPUs or tokens cost, as in a Run
	Labels      map[string]string     `yaml:"labels"`
	Serve       map[string]any        `yaml:"serve"` // of the server alone, see serve.NewSim

	steered bool   // by somebody who sets the rate
	written *Sim   // before paths were resolved
	dir     string // of the spec, which those are relative to
	text    []byte // the same with defaults, its paths as they were written
}

// A SimWorkload is a workload, whose data set a simulator's spec may call a file.
type SimWorkload struct {
	workload.Options `yaml:",inline"`
	File             string `yaml:"file"` // CSV of arrival_s,prompt_tokens,output_tokens, or any other data set
}

// defaultSimSeed makes a spec without a seed the same run every time: nothing in
// a simulator remembers the prompts of the last one.
const defaultSimSeed = 1

// ReadSim reads a simulator's spec with settings put over it. The error is nil or
// conf.Mistakes, all of them. Paths of files are relative to the spec.
func ReadSim(file string, data []byte, sets []conf.Setting) (*Sim, error) {
	return readSim(&Sim{}, file, data, sets)
}

// ReadSteeredSim is ReadSim for a system whose rate somebody else sets: of its
// schedule only the scatter of its gaps matters.
func ReadSteeredSim(file string, data []byte, sets []conf.Setting) (*Sim, error) {
	return readSim(&Sim{steered: true}, file, data, sets)
}

// NamesTarget says whether a file is a run file, which names a server, and no
// simulator's spec.
func NamesTarget(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("target:")) || bytes.HasPrefix(line, []byte("targets:")) {
			return true
		}
	}
	return false
}

func readSim(s *Sim, file string, data []byte, sets []conf.Setting) (*Sim, error) {
	doc, _ := conf.ReadWith(file, data, sets, s)
	doc.Report("", s.Flags.Into(&s.Options, doc.Has))
	doc.Report("", s.Zeros(doc.Has))
	s.Flags = sim.Aliases{}
	if s.Workload.File != "" {
		if doc.Has("workload.dataset") {
			doc.Report("", []conf.Problem{{Path: "workload.file", Text: "is workload.dataset, which is given too: remove one of them"}})
		}
		s.Workload.Dataset, s.Workload.File = s.Workload.File, ""
	}
	if !doc.Has("seed") {
		s.Seed = defaultSimSeed
	}
	if base := filepath.Base(file); s.Name == "" && file != "" {
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	written := *s
	s.written, s.dir = &written, filepath.Dir(file)
	if slices.ContainsFunc(sets, func(one conf.Setting) bool { return one.Path == "judge.saturation" }) {
		doc.Report("", s.Judging.Saturation.load()) // whoever gave it is not in the spec's folder
	}
	s.resolve(s.dir)
	r := s.Run()
	doc.Report("", r.zeros(doc))
	doc.Report("judge.deadlines", r.Judging.Deadlines.Load())
	doc.Report("", r.Judging.Saturation.load())
	r.prefer(sets)
	r.stage(doc)
	r.reportPrices(doc)
	reportByModel(doc, r)
	s.report(doc, r)
	err := doc.Err()
	if err != nil {
		return nil, err
	}
	r.fill(doc)
	s.Workload.Options, s.Schedule, s.Judging, s.MLPerf, s.Prices = r.Workload, r.Schedule, r.Judging, r.MLPerf, r.Prices
	s.text, err = s.write(&written)
	return s, err
}

// resolve takes paths from the spec's folder.
func (s *Sim) resolve(dir string) {
	if dir == "." {
		return
	}
	s.paths(func(path string) string { return filepath.Join(dir, path) })
	if d := filepath.Join(dir, s.Judging.Deadlines.Text); s.Judging.Deadlines.Text != "" {
		if _, err := os.Stat(d); err == nil {
			s.Judging.Deadlines.Text = d
		}
	}
}

// paths changes the relative ones.
func (s *Sim) paths(change func(path string) string) {
	relative := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return change(path)
	}
	from := func(path *string) { *path = relative(*path) }
	s.Options = s.Options.Paths(relative)
	from(&s.Workload.Dataset)
	from(&s.Schedule.File)
	from(&s.Prices.File)
	from(&s.Judging.Capacity.File)
	from(&s.Judging.Saturation.File)
	if k := s.Schedule.Kind; filepath.Ext(k) != "" || strings.ContainsRune(k, os.PathSeparator) {
		from(&s.Schedule.Kind)
	}
	for _, l := range []*workload.Lengths{&s.Workload.Input, &s.Workload.Output} {
		if path, ok := strings.CutPrefix(string(*l), "empirical:"); ok {
			from(&path)
			*l = workload.Lengths("empirical:" + path)
		}
	}
}

// Run is what a recording's reader needs of s: all but the system.
func (s *Sim) Run() *Run {
	return &Run{
		Name: s.Name, Workload: s.Workload.Options, Schedule: s.Schedule, SLO: s.SLO, Judging: s.Judging,
		MLPerf: s.MLPerf, Prices: s.Prices,
		Labels: s.Labels, Seed: s.Seed,
	}
}

func (s *Sim) report(doc *conf.Doc, r *Run) {
	found := r.Schedule.Check()
	if s.steered {
		found = slices.DeleteFunc(found, func(p conf.Problem) bool { return p.Path != "kind" && p.Path != "burstiness" && p.Path != "shape" })
	}
	switch {
	case r.MLPerf.Scenario == metrics.MultiStreamScenario:
		doc.Report("", []conf.Problem{{Path: "mlperf.scenario", Text: "multi-stream sends several requests of one user at once, and in virtual time each user has one in flight: run it against `fermata serve --sim`"}})
	case r.Schedule.Streams > 1:
		found = append(found, conf.Problem{Path: "streams", Text: "is for runs against a server (fermata serve --sim); in virtual time each user has one request in flight"})
	}
	if r.timesFromData() || r.usersUnread(doc) {
		found = slices.DeleteFunc(found, func(p conf.Problem) bool { return p.Path == "rate" })
	}
	doc.Report("schedule", found)
	doc.Report("workload", r.checkWorkload())
	doc.Report("", s.Options.Check())
	if strings.ContainsAny(s.Name, "/\\") || s.Name == "." || s.Name == ".." || hasControl(s.Name) {
		doc.Report("", []conf.Problem{{Path: "name", Text: `becomes part of a folder's name, so that it cannot hold / or \ or control characters`}})
	}
	r.reportJudging(doc)
}

// write is the spec with its defaults and the paths of written.
func (s *Sim) write(written *Sim) ([]byte, error) {
	w := *s
	w.Options, w.Serve = written.Options, nil
	w.Workload.Dataset, w.Workload.Input, w.Workload.Output = written.Workload.Dataset, cmp.Or(written.Workload.Input, s.Workload.Input), cmp.Or(written.Workload.Output, s.Workload.Output)
	w.Schedule.File = written.Schedule.File
	if w.Schedule.File == "" && w.Schedule.Kind == schedule.Given {
		w.Schedule.File = written.Schedule.Kind
	}
	if w.Cost.Flat == nil {
		w.Model, w.GPU, w.TP = cmp.Or(w.Model, "Llama-3-8B"), cmp.Or(w.GPU, "H100"), cmp.Or(w.TP, 1)
	}
	w.Scheduler.Policy = cmp.Or(w.Scheduler.Policy, sim.Unified)
	if w.Disaggregation != nil {
		w.Scheduler.Policy = sim.PrefillFirst
	}
	text, err := conf.Write(w)
	if err != nil {
		return nil, fmt.Errorf("writing the simulator's spec: %w", err)
	}
	return text, nil
}

// YAML is the spec that says the same with defaults filled in. Its paths are
// those of the file that was read: a recording holds it, which is the same on any
// machine.
func (s *Sim) YAML() []byte { return s.text }

// YAMLIn is YAML for a file in a folder: relative paths of the file that was read
// are relative to that one. Without a folder they are absolute.
func (s *Sim) YAMLIn(dir string) ([]byte, error) {
	from, err := filepath.Abs(s.dir)
	if err != nil {
		return nil, fmt.Errorf("writing the simulator's spec: %w", err)
	}
	to := ""
	if dir != "" {
		if to, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("writing the simulator's spec: %w", err)
		}
	}
	moved := *s.written
	moved.paths(func(path string) string {
		path = filepath.Join(from, path)
		if seen, err := filepath.Rel(to, path); to != "" && err == nil {
			return filepath.ToSlash(seen)
		}
		return path
	})
	return s.write(&moved)
}

// isSim says whether the run file of a recording is that of a simulated run.
func isSim(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("scheduler:")) {
			return true
		}
	}
	return false
}

// reportByModel refuses prices by provider and model for what is simulated, which has
// neither.
func reportByModel(doc *conf.Doc, r *Run) {
	if r.Prices.ByModel() {
		doc.Report("", []conf.Problem{{Path: "prices", Text: "are by provider and model, and a simulated system has neither: give prices with gpu, or with tokens"}})
	}
}

// againSim is Again for a simulated run.
func againSim(file string, data []byte, sets []conf.Setting) (*Run, error) {
	s := &Sim{}
	doc, _ := conf.ReadWith(file, data, sets, s)
	r := s.Run()
	doc.Report("", r.judgingZeros(doc))
	doc.Report("judge.deadlines", r.Judging.Deadlines.Load())
	doc.Report("", r.Judging.Saturation.load())
	r.reportPrices(doc)
	if slices.ContainsFunc(sets, func(one conf.Setting) bool { return one.Path == "prices" }) {
		reportByModel(doc, r) // of those that were saved a warning tells
	}
	r.reportJudging(doc)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	r.fill(doc)
	r.Target.API = ""
	r.Simulated = s.System()
	return r, nil
}

// System says in a few words what is simulated.
func (s *Sim) System() string {
	o := &s.Options
	policy := cmp.Or(o.Scheduler.Policy, sim.Unified)
	var parts []string
	if f := o.Cost.Flat; f != nil {
		parts = append(parts, fmt.Sprintf("flat cost %s + %s", f.TTFT, f.ITL))
	} else {
		parts = append(parts, cmp.Or(o.Model, "Llama-3-8B"))
		gpus := cmp.Or(o.GPU, "H100")
		if o.TP > 1 {
			gpus = fmt.Sprintf("%d × %s", o.TP, gpus)
		}
		parts = append(parts, gpus)
	}
	switch {
	case o.Disaggregation != nil:
		parts = append(parts, fmt.Sprintf("disaggregated %d + %d", cmp.Or(o.Disaggregation.Prefill, 1), cmp.Or(o.Disaggregation.Decode, 1)))
	case policy == sim.StallFree:
		parts = append(parts, fmt.Sprintf("%s %d", policy, cmp.Or(o.Scheduler.Chunk, 512)))
	case o.Scheduler.MaxNumBatchedTokens > 0:
		parts = append(parts, fmt.Sprintf("%s %d", policy, o.Scheduler.MaxNumBatchedTokens))
	default:
		parts = append(parts, policy)
	}
	if o.Replicas > 1 {
		parts = append(parts, fmt.Sprintf("%d replicas", o.Replicas))
	}
	if g := o.Speculation; g != nil && g.Gamma > 0 {
		parts = append(parts, fmt.Sprintf("speculation γ %d α %g", g.Gamma, g.Alpha))
	}
	return strings.Join(parts, ", ")
}

// OfServers says that a dotted path is of a run file, which asks a server, and
// means nothing to a simulator's spec.
func OfServers(path string) bool {
	of := func(v any) bool {
		return slices.ContainsFunc(conf.Keys(v), func(key string) bool { return head(key) == head(path) })
	}
	return of(Run{}) && !of(Sim{})
}

// head is the first key of a dotted path.
func head(path string) string {
	return path[:strings.IndexAny(path+".", ".[")]
}

// SimKey is the dotted path that a short name of a simulator's key means, such as
// scheduler.chunk for chunk; a name that is none is given back as it is.
func SimKey(name string) string {
	if strings.Contains(name, ".") || slices.Contains(conf.Keys(sim.Options{}), name) {
		return name
	}
	for _, room := range []struct {
		path string
		of   any
	}{
		{"scheduler", sim.Scheduler{}},
		{"memory", sim.Memory{}},
		{"schedule", schedule.Options{}},
		{"speculation", sim.Speculation{}},
		{"disaggregation", sim.Disaggregation{}},
		{"host", sim.Host{}},
		{"efficiency", sim.Efficiency{}},
		{"workload", workload.Options{}},
	} {
		if slices.Contains(conf.Keys(room.of), name) {
			return room.path + "." + name
		}
	}
	return name
}
