package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fermata/capacity"
	"fermata/cost"
	"fermata/internal/term"
	"fermata/metrics"
	"fermata/spec"
	"fermata/workload"
)

// A CapacitySite is a system whose capacity is sought: a simulated one, or a server.
// Each search gets a plant of its own.
type CapacitySite interface {
	// Judge says how requests are judged, with the objectives to search for.
	Judge() (metrics.Options, error)
	// Seed is that of the first search; others take those after it.
	Seed() uint64
	// System says in a few words what is searched.
	System() string
	// Time is what minutes of the search are called: "simulated", or empty for those
	// of a clock on the wall.
	Time() string
	// Scale is how many times faster than the judged time the clock of the plants'
	// traces runs; 1 unless a simulation is served faster.
	Scale() float64
	// Plant makes the plant of one search, whose options are filled in. A search that
	// goes on has asked for so many requests before: others come now. Close ends what
	// the plant has begun, after the search, and says how that went.
	Plant(ctx context.Context, q CapacityPlan) (p capacity.Plant, close func() (CapacityEnd, error), err error)
}

// A CapacityEnd is how a plant's load ended.
type CapacityEnd struct {
	Why         string // where the plant took no more requests
	Interrupted bool   // by somebody who wanted it to stop
	BoundBy     string // why whoever asked was the bottleneck; empty where not
}

// A CapacityPlan is one search: what a site needs to make its plant.
type CapacityPlan struct {
	Number    int // from 0
	Objective metrics.Objective
	Meets     *metrics.Predicate
	Seed      uint64
	Asked     int64
	// SaturationRPS is that of a search that goes on; 0 before the burst.
	SaturationRPS float64
	Options       *capacity.Options // a site may set Enough, such as for money
}

// CapacityOptions say how a capacity is sought. The zero value searches once for
// each objective, to 5 %.
type CapacityOptions struct {
	Search capacity.Options // all but Allowed and Patience, which the objectives say
	Seeds  int              // searches of each objective, with other arrivals and prompts; 0 means 1
	State  string           // file that keeps what is known, from which an interrupted search goes on; empty for none

	Begin    func() error // called when nothing is wrong, before anything is asked; nil for nothing
	Say      func(format string, args ...any)
	Step     func(format string, args ...any) // told what the search takes and how it goes, which nobody has to know; nil for Say
	Progress func(objective string, s *capacity.State, budget capacity.Budget)
}

// Capacity finds the highest rate at which each objective holds, one search after
// the other: for each objective as many as there are seeds. Results come also when
// it ends before, such as when it is interrupted; the error is then of one that has
// none.
func Capacity(ctx context.Context, site CapacitySite, o CapacityOptions) ([]*capacity.Result, error) {
	judge, err := site.Judge()
	if err != nil {
		return nil, err
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Step == nil {
		o.Step = o.Say
	}
	if len(judge.SLO) == 0 {
		return nil, &Misuse{Failure{"a capacity needs an objective, and there is none", `Give one with --slo, such as --slo "ttft<=2s @p99" or --slo "fluidity>=0.9 gap=25ms @99%".`}}
	}
	plans, err := o.plans(site, judge)
	if err != nil {
		return nil, misused(err)
	}
	if s, ok := site.(interface{ askable() error }); ok {
		if err := s.askable(); err != nil {
			return nil, err
		}
	}
	kept, err := readStates(o.State)
	if err != nil {
		return nil, err
	}
	if s, ok := site.(*ServerSite); ok {
		if err := kept.only(s.dir, plans); err != nil {
			return nil, err
		}
	}
	o.announce(plans, site.Time())
	if s, ok := site.(interface{ Cost(int) (string, error) }); ok {
		text, err := s.Cost(total(plans))
		if err != nil {
			return nil, err
		}
		if text != "" {
			o.Step("cost: %s", text)
		}
	}
	if o.Begin != nil {
		if err := o.Begin(); err != nil {
			return nil, err
		}
	}
	if err := kept.writable(); err != nil {
		return nil, err
	}
	all, err := o.searchAll(ctx, site, plans, kept)
	if s, ok := site.(interface{ forget() error }); ok && err != nil && len(all) == 0 {
		err = errors.Join(err, s.forget())
	}
	return all, err
}

func (o *CapacityOptions) searchAll(ctx context.Context, site CapacitySite, plans []CapacityPlan, kept *states) (all []*capacity.Result, err error) {
	for i := range plans {
		r, err := o.search(ctx, site, &plans[i], kept)
		if r != nil {
			all = append(all, r)
		}
		if err != nil {
			return all, err
		}
		if r.Ending == capacity.Interrupted || r.Ending == capacity.Stopped {
			break
		}
	}
	return all, nil
}

// misused is an error of how the search was asked for.
func misused(err error) error {
	m := &Misuse{Failure{Saw: err.Error()}}
	var told *Failure
	if errors.As(err, &told) {
		m.Help = told.Help
	}
	return m
}

// askable says why a workload cannot be asked at a rate that somebody sets.
func askable(w *workload.Workload) error {
	if !w.Conversing() {
		return nil
	}
	return &Misuse{Failure{
		Saw:  "the workload has conversations, whose later turns come when answers end, so that nobody can set their rate",
		Help: "Give single requests: a workload without turns, or a data set of lengths; or sweep the rate of conversations.",
	}}
}

// plans are the searches, checked before the first begins. An objective that is given
// twice is searched for once.
func (o *CapacityOptions) plans(site CapacitySite, judge metrics.Options) ([]CapacityPlan, error) {
	var plans []CapacityPlan
	for i, objective := range judge.SLO {
		if slices.ContainsFunc(judge.SLO[:i], func(b metrics.Objective) bool { return b.Text == objective.Text }) {
			o.Say("%s was given twice, and is searched for once", objective.Text)
			continue
		}
		meets, err := metrics.NewPredicate(objective, judge, site.Scale())
		if err != nil {
			return nil, err
		}
		search := o.Search
		search.Allowed = meets.Allowed()
		search.Patience = patience(objective)
		search, err = search.Filled()
		if err != nil {
			return nil, fmt.Errorf("objective %q: %w", objective.Text, err)
		}
		for k := range max(1, o.Seeds) {
			own := search
			plans = append(plans, CapacityPlan{
				Number: len(plans), Objective: objective, Meets: meets, Seed: site.Seed() + uint64(k), Options: &own,
			})
		}
	}
	return plans, nil
}

// patience is how long a request can wait for its first token by an objective; 0
// where nothing says.
func patience(o metrics.Objective) time.Duration {
	least := time.Duration(0)
	for _, t := range o.Terms {
		if (t.Name == "ttft" || t.Name == "e2e") && (least == 0 || time.Duration(t.AtNs) < least) {
			least = time.Duration(t.AtNs)
		}
	}
	return least
}

// announce says what the searches will take, before they begin.
func (o *CapacityOptions) announce(plans []CapacityPlan, clock string) {
	total := total(plans)
	first := plans[0].Options
	b := first.Budget()
	if first.Method == capacity.Bisect {
		o.Step("budget: up to %s requests in trials of %s, each from an empty system", term.Count(int64(total)), term.Count(int64(first.TrialRequests)))
		return
	}
	text := fmt.Sprintf("%s at once for the saturation (as many as %s in larger bursts where those fit into one batch), %s that steer the rate, %s at the rate found, %s of warm-up", term.Count(int64(b.Probe)), term.Count(int64(first.MostProbe())), term.Count(int64(b.Search)), term.Count(int64(b.Fixed)), term.Count(int64(b.Warmup)))
	if len(plans) > 1 {
		o.Step("budget: %s requests in %d searches, of which the first takes %s: %s", term.Count(int64(total)), len(plans), term.Count(int64(b.Total)), text)
	} else {
		o.Step("budget: %s requests: %s", term.Count(int64(total)), text)
	}
	if clock != "" {
		clock += " "
	}
	o.Step("in %sminutes that is known once the saturation is", clock)
}

// total is how many requests the searches take.
func total(plans []CapacityPlan) (n int) {
	for i := range plans {
		n += plans[i].Options.Budget().Total
	}
	return n
}

// search is one of them, from a state that was kept where there is one.
func (o *CapacityOptions) search(ctx context.Context, site CapacitySite, q *CapacityPlan, kept *states) (*capacity.Result, error) {
	s := kept.of(q)
	q.Asked = s.Sent
	if s.Probe != nil {
		q.SaturationRPS = s.Probe.RPS
	}
	if s.Over() {
		return o.told(q.Options.Result(s), site, q), nil
	}
	plant, shut, err := site.Plant(ctx, *q)
	if err != nil {
		return nil, err
	}
	told := s.Probe != nil
	q.Options.Progress = func(s *capacity.State) {
		if s.Probe != nil && !told && q.Options.Method == capacity.HTRM {
			told = true
			b := q.Options.Budget()
			minutes := float64(b.Total-b.Probe) / s.Probe.RPS / 60
			o.Step("%s: saturated at %.4g requests/s by %s at once; the search takes %s at that rate, and twice as long where the objective holds at half of it", q.Objective.Text, s.Probe.RPS, term.Count(int64(s.Probe.Asked)), minutesText(minutes, site.Time()))
		}
		if o.Progress != nil {
			o.Progress(q.Objective.Text, s, q.Options.Budget())
		}
		kept.note()
	}
	r, err := capacity.Search(ctx, plant, *q.Options, s)
	end, ended := shut()
	s.BoundBy = end.BoundBy
	switch {
	case s.Over():
	case end.Interrupted:
		s.Ending, s.Why, err = capacity.Interrupted, "it was interrupted", nil
	case errors.Is(err, errPlantOver):
		s.Ending, s.Why, err = capacity.Stopped, end.Why, nil
	case err != nil && s.Sent == 0:
		return nil, errors.Join(err, ended) // nothing was asked, and nothing is known
	case err != nil:
		s.Ending, s.Why = capacity.Stopped, err.Error()
	}
	if r != nil {
		r = q.Options.Result(s)
	}
	err = errors.Join(err, ended, kept.write())
	if r == nil {
		return nil, err
	}
	return o.told(r, site, q), err
}

// told is a result with what the search itself does not know.
func (o *CapacityOptions) told(r *capacity.Result, site CapacitySite, q *CapacityPlan) *capacity.Result {
	r.Objective, r.Joint, r.Target = q.Objective.Text, len(q.Objective.Terms) > 1, site.System()
	seed := q.Seed
	r.Seed = &seed
	if s, ok := site.(interface{ terms() *cost.Terms }); ok {
		r.Cost = costOfPromise(s.terms(), r)
	}
	return r
}

// costOfPromise is what an objective costs; nil without prices of GPUs.
func costOfPromise(terms *cost.Terms, r *capacity.Result) *cost.AtCapacity {
	c := r.Capacity
	if c == nil || c.TokensPerS == nil {
		return nil
	}
	known := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	of := cost.Capacity{RPS: c.RPS, Low: known(c.Low), High: known(c.High), TokensPerS: *c.TokensPerS}
	if r.Ending == capacity.NeverMissed {
		of.Caveats = []string{cost.CaveatLowerBound}
	}
	return terms.AtCapacity(of, known(r.SaturationRPS))
}

func minutesText(minutes float64, clock string) string {
	unit := strings.TrimSpace(clock + " minutes")
	if minutes >= 120 {
		minutes, unit = minutes/60, strings.TrimSpace(clock+" hours")
	}
	return fmt.Sprintf("%.3g %s", minutes, unit)
}

// states are what a file keeps of searches, by objective and seed.
type states struct {
	path  string
	all   map[string]*capacity.State
	saved time.Time
}

// saveEvery is how often a search that goes on is written down.
const saveEvery = 2 * time.Second

func readStates(path string) (*states, error) {
	s := &states{path: path, all: map[string]*capacity.State{}, saved: time.Now()}
	if path == "" {
		return s, nil
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("reading the state of a search: %w", err)
	}
	if err := json.Unmarshal(data, &s.all); err != nil {
		return nil, &Misuse{Failure{Saw: fmt.Sprintf("%s holds no state of a search: %s", path, err), Help: "Remove it to begin anew."}}
	}
	return s, nil
}

// key is what a search is kept by.
func (q *CapacityPlan) key() string {
	o := q.Options
	return fmt.Sprintf("%s, seed %d, %s, %g, %d", q.Objective.Text, q.Seed, o.Method, o.Precision, o.TrialRequests)
}

// only refuses a folder that keeps other searches than those that are asked for: their
// results would be overwritten.
func (s *states) only(dir string, plans []CapacityPlan) error {
	for key, state := range s.all {
		if state.Sent > 0 && !slices.ContainsFunc(plans, func(q CapacityPlan) bool { return q.key() == key }) {
			return &Misuse{Failure{
				Saw:  fmt.Sprintf("%s holds another search (%s)", dir, key),
				Help: "Give another folder with --out, or the --slo, --precision, --method and --seed of before.",
			}}
		}
	}
	return nil
}

// writable says why the state could not be written, before anything is asked.
func (s *states) writable() error {
	if s.path == "" {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".fermata-")
	if err != nil {
		return &Misuse{Failure{Saw: fmt.Sprintf("the state of the search cannot be kept in %s: %s", s.path, err), Help: "Give a file in a folder that is there and can be written."}}
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// of is the state of a search, a new one where none was kept.
func (s *states) of(q *CapacityPlan) *capacity.State {
	key := q.key()
	if s.all[key] == nil {
		s.all[key] = &capacity.State{}
	}
	return s.all[key]
}

// note writes once in a while.
func (s *states) note() {
	if s.path != "" && time.Since(s.saved) > saveEvery {
		_ = s.write() // the last one's error is told
	}
}

// write replaces the file as a whole, so that it is there and right at any time.
func (s *states) write() error {
	if s.path == "" {
		return nil
	}
	s.saved = time.Now()
	data, err := json.Marshal(s.all)
	if err != nil {
		return fmt.Errorf("writing the state of a search: %w", err)
	}
	if err := os.WriteFile(s.path+".new", data, 0o644); err != nil {
		return fmt.Errorf("writing the state of a search: %w", err)
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		return fmt.Errorf("writing the state of a search: %w", err)
	}
	return nil
}

// SimulatedSite is the system of a simulator's spec, in virtual time.
func SimulatedSite(s *spec.Sim) CapacitySite { return simulatedSite{s} }

type simulatedSite struct{ spec *spec.Sim }

// Judge implements CapacitySite. A simulator writes no answers that a check could
// read.
func (s simulatedSite) Judge() (metrics.Options, error) {
	o, err := s.spec.Run().Judge()
	if err != nil {
		return o, err
	}
	for i := range o.SLO {
		if slices.ContainsFunc(o.SLO[i].Terms, func(t metrics.Term) bool { return t.Name == "schema" }) {
			return o, &Misuse{Failure{
				Saw:  fmt.Sprintf("%q is about answers that pass their check, and a simulator writes none", o.SLO[i].Text),
				Help: "Search a server, with --check; or give another objective.",
			}}
		}
	}
	return o, nil
}

func (s simulatedSite) askable() error {
	w, err := workload.Open(s.spec.Workload.Options, s.spec.Seed)
	if err != nil {
		return err
	}
	return askable(w)
}

func (s simulatedSite) terms() *cost.Terms { return termsOf(s.spec.Run()) }
func (s simulatedSite) Seed() uint64       { return s.spec.Seed }
func (s simulatedSite) System() string     { return s.spec.System() }
func (s simulatedSite) Time() string       { return "simulated" }
func (s simulatedSite) Scale() float64     { return 1 }

func (s simulatedSite) Plant(_ context.Context, q CapacityPlan) (capacity.Plant, func() (CapacityEnd, error), error) {
	p, err := newVirtualPlant(s.spec, q.Meets, q.Seed, q.Asked)
	if err != nil {
		return nil, nil, err
	}
	return p, func() (CapacityEnd, error) { return CapacityEnd{}, nil }, nil
}
