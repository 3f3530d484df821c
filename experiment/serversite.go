package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"fermata/capacity"
	"fermata/cost"
	"fermata/metrics"
	"fermata/report"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

// Names within the folder of a search.
const (
	searchFile   = "search.json"   // from which it goes on
	capacityFile = "capacity.json" // what it found
	beforeFolder = "before-"       // and a number: the recording of an earlier sitting
)

// A ServerSite is a server whose capacity is sought. Each search is recorded, from
// its first request to its last, into one folder: that of the site, or a numbered
// one in it where there are several. OpenServer makes one.
type ServerSite struct {
	ctx     context.Context // its end cuts answers; that of a search only ends the search
	spec    *spec.Run
	options Options
	dir     string
	scale   float64
	system  string
	made    bool // Begin made the folder

	// Several says that there is more than one search.
	Several bool
}

// OpenServer finds out where the server is and how its time runs. Options.Out may be
// the folder of a search that was interrupted: it goes on there. Cancelling ctx cuts
// what is under way.
func OpenServer(ctx context.Context, s *spec.Run, o Options) (*ServerSite, error) {
	o.fill()
	if len(s.Targets) > 0 {
		return nil, &Misuse{Failure{Saw: "a search has one server, and this run file has several targets", Help: "Give one target, and search each of them by itself."}}
	}
	site := &ServerSite{ctx: ctx, spec: s, options: o, dir: o.Out}
	if !resumes(o.Out) {
		name := "capacity"
		if s.Name != "" {
			name += "-" + s.Name
		}
		var err error
		if site.dir, err = folder(o.Out, name); err != nil {
			return nil, err
		}
	}
	if err := site.goesOn(); err != nil {
		return nil, err
	}
	all, err := newTargets(s, o)
	if err != nil {
		return nil, err
	}
	if err := chooseTransport(s, all); err != nil {
		return nil, err
	}
	if err := site.meet(ctx, all[0]); err != nil {
		return nil, err
	}
	if site.scale, err = timeScale(s, all); err != nil {
		return nil, err
	}
	site.system = system(s)
	return site, nil
}

// meet waits for the server, if it is to, and asks what it is.
func (s *ServerSite) meet(ctx context.Context, t *target) error {
	clock := wire.NewClock()
	tr := t.choice.New(clock)
	defer tr.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.options.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := t.awaitReady(ctx, tr, clock)
	if err == nil {
		t.identify(ctx, tr)
	}
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// resumes says that a folder holds a search that can go on.
func resumes(dir string) bool { return dir != "" && exists(filepath.Join(dir, searchFile)) }

// SearchSeed is the seed of the search in a folder, for one that goes on there; ok is
// false where there is none.
func SearchSeed(dir string) (seed uint64, ok bool) {
	before := searchedIn(dir)
	if before == nil {
		return 0, false
	}
	return before.Seed, true
}

// searchedIn is the run file of the search in a folder; nil where there is none.
func searchedIn(dir string) *spec.Run {
	if !resumes(dir) {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, "run.yaml"))
	if err != nil {
		return nil
	}
	before, err := spec.Again("run.yaml", data, nil)
	if err != nil {
		return nil
	}
	return before
}

// goesOn refuses a folder whose search asked another server, or something else: its
// result would be taken for that of this one.
func (s *ServerSite) goesOn() error {
	before := searchedIn(s.options.Out)
	if before == nil {
		return nil
	}
	was, is := &before.Target, &s.spec.Target
	what := ""
	switch {
	case before.PublicURL() != s.spec.PublicURL():
		what = "asked " + before.PublicURL()
	case is.Model != "" && was.Model != is.Model:
		what = "asked for model " + was.Model
	case !reflect.DeepEqual(before.Workload, s.spec.Workload):
		what = "asked other prompts"
	default:
		return nil
	}
	return &Misuse{Failure{
		Saw:  fmt.Sprintf("the search in %s %s", s.options.Out, what),
		Help: "Give another folder with --out, or the URL, model and workload of before.",
	}}
}

// Dir is the folder of the site.
func (s *ServerSite) Dir() string { return s.dir }

// State is the file that keeps what its searches know.
func (s *ServerSite) State() string { return filepath.Join(s.dir, searchFile) }

// Judge implements CapacitySite.
func (s *ServerSite) Judge() (metrics.Options, error) { return s.spec.Judge() }

func (s *ServerSite) terms() *cost.Terms { return termsOf(s.spec) }

// Seed implements CapacitySite.
func (s *ServerSite) Seed() uint64 { return s.spec.Seed }

// System implements CapacitySite.
func (s *ServerSite) System() string { return s.system }

// Time implements CapacitySite.
func (s *ServerSite) Time() string {
	if same(s.scale, 1) {
		return ""
	}
	return "simulated"
}

// Scale implements CapacitySite.
func (s *ServerSite) Scale() float64 { return s.scale }

// Cost says what so many requests cost at most, and at the mean lengths where those
// are known; empty where no token has a price.
func (s *ServerSite) Cost(requests int) (string, error) {
	p := &s.spec.Prices
	if !p.Given() {
		return "", nil
	}
	rate, err := rateOf(s.spec, "", s.spec.Target.Model)
	if errors.Is(err, cost.ErrHourly) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	prompts, _, err := open(s.spec)
	if err != nil {
		return "", err
	}
	const looked = 200
	var sum cost.Amount
	n := 0
	for i := range int64(looked) {
		q, ok := prompts.At(i, 0, 0)
		if !ok {
			break
		}
		sum = sum.Plus(rate.Of(int64(q.PromptTokens), int64(q.OutputTokens)))
		n++
	}
	if n == 0 {
		return "", prompts.Err()
	}
	each, err := strconv.ParseFloat(sum.String(), 64)
	if err != nil {
		return "", fmt.Errorf("estimating the cost of a search: %w", err)
	}
	text := fmt.Sprintf("about %.3g %s", each/float64(n)*float64(requests), p.Currency)
	if most := s.spec.Load.MaxCost; most != "" {
		text += fmt.Sprintf(", and no more than %s (--max-cost)", most)
	}
	return text, nil
}

// Plant implements CapacitySite.
func (s *ServerSite) Plant(ctx context.Context, q CapacityPlan) (capacity.Plant, func() (CapacityEnd, error), error) {
	dir := s.dir
	if s.Several {
		dir = filepath.Join(dir, strconv.Itoa(q.Number+1))
	}
	if err := s.makeRoom(dir); err != nil {
		return nil, nil, err
	}
	own := *s.spec
	own.Seed, own.SLO = q.Seed, []string{q.Objective.Text}
	own.Judging.Saturation, own.Load.ProbeSaturation = spec.Saturation{RPS: q.SaturationRPS}, q.SaturationRPS > 0
	o := s.options
	o.Out = dir
	p, err := readyPlant(s.ctx, &own, o, q.Meets, q.Asked)
	if err != nil {
		return nil, nil, err
	}
	return p, func() (CapacityEnd, error) { return p.close(dir) }, nil
}

// makeRoom puts the recording of an earlier sitting aside: what died is finished
// first.
func (s *ServerSite) makeRoom(dir string) error {
	journal, whole := exists(filepath.Join(dir, "journal")), exists(filepath.Join(dir, "requests.parquet"))
	if !journal && !whole {
		return nil
	}
	if journal {
		held, err := alone(dir)
		if err != nil {
			return err
		}
		held.Close() // whoever recovers takes it
		told, err := Recover(dir, s.options.Version)
		for _, line := range told {
			s.options.Say("%s", line)
		}
		if err != nil {
			return fmt.Errorf("finishing the recording of an earlier sitting: %w", err)
		}
	}
	n := 1
	for exists(filepath.Join(dir, beforeFolder+strconv.Itoa(n))) {
		n++
	}
	before := filepath.Join(dir, beforeFolder+strconv.Itoa(n))
	files, err := os.ReadDir(dir)
	if err == nil {
		err = os.Mkdir(before, 0o755)
	}
	if err != nil {
		return fmt.Errorf("putting an earlier sitting aside: %w", err)
	}
	for _, f := range files {
		name := f.Name()
		if f.IsDir() && (strings.HasPrefix(name, beforeFolder) || s.Several && !strings.HasPrefix(name, "journal")) ||
			strings.HasPrefix(name, searchFile) || name == capacityFile {
			continue
		}
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(before, name)); err != nil {
			return fmt.Errorf("putting an earlier sitting aside: %w", err)
		}
	}
	s.options.Say("the recording of the sitting before is in %s", before)
	return nil
}

// Begin makes the folder, with a run file that says what is searched.
func (s *ServerSite) Begin() error {
	s.made = !exists(s.dir)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("making the search's folder: %w", err)
	}
	if s.Several || !exists(filepath.Join(s.dir, "run.yaml")) {
		_, err := writeRunFile(s.dir, s.spec)
		return err
	}
	return nil
}

// forget takes back what Begin made, where nothing has come into it.
func (s *ServerSite) forget() error {
	files, err := os.ReadDir(s.dir)
	if !s.made || err != nil || len(files) != 1 || files[0].Name() != "run.yaml" {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("removing the folder of a search that asked nothing: %w", err)
	}
	return nil
}

func (s *ServerSite) askable() error {
	w, err := workload.Open(s.spec.Workload, s.spec.Seed)
	if err != nil {
		return err
	}
	return askable(w)
}

// Keep writes what was found into the folder.
func (s *ServerSite) Keep(all []*capacity.Result) error {
	var b strings.Builder
	if err := report.WriteCapacity("json", &b, all, report.TerminalOptions{}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, capacityFile), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("writing what the search found: %w", err)
	}
	return nil
}

// close ends what the plant has under way, judges what was measured, and says how it
// went.
func (p *serverPlant) close(dir string) (CapacityEnd, error) {
	end, ok, err := p.finish()
	if err != nil || !ok {
		return CapacityEnd{Interrupted: p.stopped()}, err
	}
	e := CapacityEnd{Why: end.Why, Interrupted: end.Interrupted != "" && !end.ByFailures}
	if p.measured == 0 {
		return e, nil
	}
	r, err := Judge(dir, nil, p.run.options.Version)
	if err != nil {
		return e, err
	}
	if r.Health.ClientBound {
		e.BoundBy = strings.Join(r.Health.Reasons, "; ")
	}
	return e, writeResult(dir, r)
}

func (p *serverPlant) stopped() bool {
	select {
	case <-p.run.options.Stop:
		return true
	default:
		return false
	}
}
