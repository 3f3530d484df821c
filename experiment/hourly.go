package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/internal/seed"
	"fermata/metrics"
	"fermata/recording"
	"fermata/report"
	"fermata/spec"
)

// HourlySchema is that of the file that a study of endpoints begins its folder
// with, so that it can be gone on with.
const HourlySchema = "fermata.hourly/1"

// An hourlyHead says what the rounds of a folder have in common.
type hourlyHead struct {
	Schema    string    `json:"schema"`
	Began     time.Time `json:"began"`
	Seed      uint64    `json:"seed"`
	EveryNs   int64     `json:"every_ns"`
	Endpoints []string  `json:"endpoints"`
}

// An hourly is a study of endpoints under way: each is asked once in every stretch
// of time, one after the other.
type hourly struct {
	study *spec.Study
	o     Options
	dir   string
	head  hourlyHead
}

// AskHourly asks the endpoints of a study in turn, again and again, and sets them
// side by side. The folder keeps every round; one that has rounds already is gone
// on with, without those whose time is over.
func AskHourly(ctx context.Context, s *spec.Study, o Options) (*report.Study, error) {
	o.fill()
	h := &hourly{study: s, o: o, dir: o.Out}
	statistics, err := h.check()
	if err != nil {
		return nil, err
	}
	if h.dir == "" {
		if h.dir, err = folder("", "study"); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the study's folder: %w", err)
	}
	held, err := alone(h.dir)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if err := h.open(); err != nil {
		return nil, err
	}
	if err := h.play(ctx); err != nil {
		return nil, err
	}
	out := report.NewStudy(o.Version, s.Title)
	out.Caveat = s.Caveat
	recorded := false
	for i := range s.Endpoints {
		one, pooled, err := h.endpoint(i)
		if err != nil {
			return nil, err
		}
		recorded = recorded || pooled != nil
		out.AddEndpoint(one, statistics, pooled)
	}
	if !recorded {
		return nil, &Failure{"no round of any endpoint was recorded", "Look at " + h.dir + ", and begin again in another folder."}
	}
	for _, c := range s.Claims {
		out.Claims = append(out.Claims, claim(out, &c))
	}
	return out, nil
}

// MissingKeys says which endpoints of a study lack an API key, or another header that
// is kept elsewhere.
type MissingKeys string

// Error names them all.
func (m MissingKeys) Error() string { return string(m) }

var hourlyStatistics = []string{"ttft_sent.p50", "ttft_sent.p99", "tpot.p50", "tbt.p99", "rates.tpot", "rates.tail_tbt", "rates.fluid"}

// check reads all that is asked before anything is.
func (h *hourly) check() ([]report.Statistic, error) {
	var lacking []string
	for i := range h.study.Endpoints {
		r, err := spec.Read("", nil, h.settings(i, 0))
		if err != nil {
			return nil, err
		}
		if _, _, err := r.Credentials(os.Getenv); err != nil {
			lacking = append(lacking, h.study.Endpoints[i].Name+": "+err.Error())
		}
	}
	if len(lacking) > 0 {
		return nil, MissingKeys("the study lacks what it is to sign in with: " + strings.Join(lacking, "; "))
	}
	return parseStatistics("statistics", statisticsOf(h.study, hourlyStatistics))
}

// settings are the run file's of one round of an endpoint.
func (h *hourly) settings(i, round int) []conf.Setting {
	one := &h.study.Endpoints[i]
	sets := []conf.Setting{
		{Path: "target.url", Value: one.URL},
		{Path: "schedule.concurrency", Value: "1"},
		{Path: "workload.input", Value: "uniform:256,8192"},
		{Path: "workload.output", Value: "256"},
		{Path: "schedule.requests", Value: "20"},
		{Path: "schedule.warmup", Value: "0"},
		{Path: "expect", Value: "any"},
		{Path: "judge.target_gap", Value: "5ms,10ms,25ms,50ms,100ms"},
	}
	if one.Model != "" {
		sets = append(sets, conf.Setting{Path: "target.model", Value: one.Model})
	}
	if one.APIKeyEnv != "" {
		sets = append(sets, conf.Setting{Path: "target.api_key_env", Value: one.APIKeyEnv})
	}
	for _, set := range []map[string]string{h.study.Set, one.Set} {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			if key == "schedule.rate" || key == "schedule.kind" {
				sets = slices.DeleteFunc(sets, func(s conf.Setting) bool { return s.Path == "schedule.concurrency" })
			}
			sets = append(slices.DeleteFunc(sets, func(s conf.Setting) bool { return s.Path == key }), conf.Setting{Path: key, Value: set[key], From: "the study"})
		}
	}
	// The same prompts for all endpoints, other ones in each round.
	return append(sets, conf.Setting{Path: "seed", Value: strconv.FormatUint(seed.Derive(h.head.Seed, "study: round "+strconv.Itoa(round))%1e9, 10)})
}

// open takes up what the folder has, or begins it.
func (h *hourly) open() error {
	var names []string
	for _, one := range h.study.Endpoints {
		names = append(names, one.Name+" "+one.URL)
	}
	h.head = hourlyHead{Schema: HourlySchema, Began: time.Now().UTC(), Seed: seedOf(nil), EveryNs: int64(h.study.Every), Endpoints: names}
	path := filepath.Join(h.dir, "hourly.json")
	data, err := os.ReadFile(path)
	if err == nil {
		var had hourlyHead
		if err := json.Unmarshal(data, &had); err != nil || had.Schema != HourlySchema {
			return misusef("%s is not of a study of endpoints: give another folder with --out", path)
		}
		if had.EveryNs != h.head.EveryNs || !slices.Equal(had.Endpoints, names) {
			return misusef("%s holds rounds of other endpoints, or at other times: give another folder with --out", h.dir)
		}
		h.head = had
		h.o.Step("going on with %s, begun at %s", h.dir, had.Began.Format(time.RFC3339))
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the study's folder: %w", err)
	}
	if entries, _ := os.ReadDir(h.dir); len(entries) > 0 {
		return misusef("%s is not empty: give another folder with --out, or leave --out away", h.dir)
	}
	if data, err = json.Marshal(&h.head); err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("beginning the study: %w", err)
	}
	return nil
}

// play asks all endpoints in each round whose time has come.
func (h *hourly) play(ctx context.Context) error {
	rounds := h.study.Rounds()
	h.o.Step("%d endpoints, every %s for %s: %d rounds, kept in %s", len(h.study.Endpoints), conf.Duration(h.study.Every), conf.Duration(h.study.For), rounds, h.dir)
	for round := range rounds {
		due := h.head.Began.Add(time.Duration(round) * h.study.Every)
		if time.Now().After(due.Add(h.study.Every)) {
			continue // its time is over: what of it is there is there
		}
		if err := sleepUntil(ctx, h.o.Stop, due); err != nil {
			return h.cut(round, err)
		}
		// In another order each time: nobody is always asked after the same one.
		for _, i := range seed.Rand(h.head.Seed, "study: order "+strconv.Itoa(round)).Perm(len(h.study.Endpoints)) {
			if err := h.ask(ctx, i, round); err != nil {
				return h.cut(round, err)
			}
		}
		h.o.Step("round %d of %d is over", round+1, rounds)
	}
	return nil
}

func sleepUntil(ctx context.Context, stop <-chan struct{}, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stop:
	case <-ctx.Done():
	}
	return ErrInterrupted
}

// cut says how to go on after an interruption.
func (h *hourly) cut(round int, err error) error {
	if !errors.Is(err, ErrInterrupted) {
		return err
	}
	return hourlyCut{h.dir, round, h.study.Rounds()}
}

// hourlyCut says that a study was interrupted.
type hourlyCut struct {
	dir       string
	done, all int
}

func (c hourlyCut) Error() string {
	return fmt.Sprintf("interrupted in round %d of %d; what was recorded is kept in %s, and the same command with --out %s goes on", c.done+1, c.all, c.dir, c.dir)
}

// Is makes it an interruption like others.
func (c hourlyCut) Is(target error) bool { return target == ErrInterrupted }

func (h *hourly) folder(i, round int) string {
	return filepath.Join(h.dir, h.study.Endpoints[i].Name, fmt.Sprintf("%03d", round))
}

// ask runs a round of an endpoint, unless it has been run. An endpoint that cannot
// be asked is data: the study goes on without that round.
func (h *hourly) ask(ctx context.Context, i, round int) error {
	dir, name := h.folder(i, round), h.study.Endpoints[i].Name
	if exists(filepath.Join(dir, "result.json")) {
		return nil
	}
	if exists(dir) { // a process was killed in it
		if err := os.Rename(dir, dir+".cut-"+strconv.FormatInt(time.Now().Unix(), 10)); err != nil {
			return fmt.Errorf("putting a cut round aside: %w", err)
		}
	}
	s, err := spec.Read("", nil, h.settings(i, round))
	if err != nil {
		return err
	}
	o := h.o
	o.Out, o.Live = dir, nil
	o.Say, o.Step = func(string, ...any) {}, nil
	done, err := Run(ctx, s, o)
	var f *Failure
	switch {
	case errors.Is(err, ErrInterrupted), err == nil && done.End.Interrupted != "" && !done.End.ByFailures:
		_ = os.Remove(filepath.Join(dir, "result.json")) // the round is to be run again
		return ErrInterrupted
	case errors.As(err, &f):
		h.o.Say("%s, round %d: %s", name, round+1, f.Saw)
		return nil
	case err != nil:
		return fmt.Errorf("%s, round %d: %w", name, round+1, err)
	}
	return nil
}

// endpoint sums an endpoint up over all its rounds; nil where there is none.
func (h *hourly) endpoint(i int) (report.StudyEndpoint, *metrics.Result, error) {
	one := &h.study.Endpoints[i]
	out := report.StudyEndpoint{Name: one.Name, Target: one.URL, Model: one.Model, Planned: h.study.Rounds()}
	var all recording.Slice
	var judge metrics.Options
	scale := 1.0
	for round := range h.study.Rounds() {
		dir := h.folder(i, round)
		if !exists(filepath.Join(dir, "result.json")) {
			continue
		}
		a, err := reopen(dir, nil)
		if err != nil {
			return out, nil, err
		}
		judge = a.judge
		scale = max(scale, a.meta.TimeScale)
		out.Target, out.Model = a.spec.PublicURL(), a.spec.Target.Model
		at := h.head.Began.Add(time.Duration(round) * h.study.Every)
		if zero := a.meta.ZeroWallNs; zero.OK {
			at = time.Unix(0, zero.V).UTC()
		}
		var mine recording.Slice
		for t := range a.rec.Traces(recording.AllColumns) {
			if t.Phase == recording.Measured {
				mine = append(mine, shifted(&t, int64(len(all)+len(mine)), int64(round)*int64(h.study.Every)))
			}
		}
		r, err := a.result(h.o.Version)
		if err == nil {
			err = a.rec.Err()
		}
		a.rec.Close()
		if err != nil {
			return out, nil, fmt.Errorf("reading %s: %w", dir, err)
		}
		out.AddRound(at, r)
		all = append(all, mine...)
	}
	if len(all) == 0 {
		out.Rates, out.TTFT, out.Fluidity = []report.StudyRate{}, []report.StudyTTFT{}, []report.StudyFluidity{}
		return out, nil, nil
	}
	judge.ClosedLoop = true // a pause of an hour lies between rounds: no rate says how near saturation is
	pooled, err := metrics.Evaluate(all, recording.Meta{TimeScale: scale}, nil, judge)
	if err != nil {
		return out, nil, fmt.Errorf("judging all rounds of %s: %w", one.Name, err)
	}
	out.Sum(pooled, all, scale)
	return out, pooled, nil
}

// shifted is a request of one round in the numbering and on the clock of all.
func shifted(t *recording.Trace, index, by int64) recording.Trace {
	out := *t
	out.Index, out.Due = index, t.Due+by
	for _, at := range []*recording.Maybe[int64]{&out.Sent, &out.Connected, &out.FirstByte, &out.End, &out.ServerReceived} {
		if at.OK {
			at.V += by
		}
	}
	a := &out.Arrivals
	a.DeltaNs, a.Tokens, a.Read = slices.Clone(a.DeltaNs), slices.Clone(a.Tokens), slices.Clone(a.Read)
	a.StampErrorNs, a.Channel, a.TextBytes = slices.Clone(a.StampErrorNs), slices.Clone(a.Channel), slices.Clone(a.TextBytes)
	return out
}
