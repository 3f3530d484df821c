package experiment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/cost"
	"fermata/deadline"
	"fermata/internal/conf"
	"fermata/internal/seed"
	"fermata/internal/term"
	"fermata/recording"
	"fermata/spec"
)

// A ProfilePlan says how a server is probed for its prefill curve.
//
// One's own is probed in rounds of one prompt of each length in random order, one
// after the other, one token of answer each: by default seven lengths from 256 to
// 8192 tokens, ten rounds and at most forty, until the band is within 5 %. That is
// the zero value. Hosted is for an endpoint that others use too (see HostedPlan).
type ProfilePlan struct {
	Shortest, Longest int32 // tokens of the prompts
	Lengths           int
	Rounds, Most      int         // before the curve is first looked at; in all
	Within            float64     // half width of the band that is narrow enough
	Hosted            *HostedPlan // nil for a server of one's own
	Slack             SlackPlan
}

const (
	leastRounds    = 10
	moreRounds     = 5       // from one look to the next
	longestPrompt  = 1 << 20 // tokens
	ownCountNoise  = 0.06    // of token counts that are ours alone
	leastHit       = 4       // cached tokens that matter
	mostTemplate   = 100     // tokens of a chat template, which every prompt shares
	isolatedServer = 0.8     // share of undelayed probes below which a server was not one's own
)

func (p *ProfilePlan) fill() {
	for _, d := range []struct {
		v  *int
		to int
	}{{&p.Lengths, 7}, {&p.Rounds, leastRounds}, {&p.Most, 4 * leastRounds}} {
		if *d.v == 0 {
			*d.v = d.to
		}
	}
	shortest, longest := int32(256), int32(8192)
	if p.Hosted != nil {
		p.Hosted.fill()
		shortest, longest = hostedShortest, hostedLongest
	}
	if p.Shortest == 0 {
		p.Shortest = shortest
	}
	if p.Longest == 0 {
		p.Longest = longest
	}
	if p.Within == 0 {
		p.Within = 0.05
	}
}

// Check says what is wrong with a plan, by the names of flags.
func (p ProfilePlan) Check() error {
	p.fill()
	switch {
	case p.Shortest < 1 || p.Longest > longestPrompt || p.Longest < 4*p.Shortest:
		return fmt.Errorf("--shortest %d, --longest %d: the longest prompt must have four times as many tokens as the shortest, and %d at most", p.Shortest, p.Longest, longestPrompt)
	case p.Lengths < 3 || p.Lengths > 12:
		return fmt.Errorf("--points %d: it must be 3 to 12 lengths", p.Lengths)
	case p.Rounds < leastRounds || p.Most < p.Rounds:
		return fmt.Errorf("--rounds %d, --most %d: at least %d rounds are needed, and no fewer in all", p.Rounds, p.Most, leastRounds)
	case !(p.Within > 0 && p.Within < 1):
		return fmt.Errorf("--within %v: it must be a share such as 5%%", p.Within)
	}
	if p.Hosted != nil {
		if err := p.Hosted.check(); err != nil {
			return err
		}
	}
	if s := &p.Slack; s.Class != "" {
		if _, err := deadline.Cap(s.Class); err != nil {
			return fmt.Errorf("--class: %w", err)
		}
	}
	return nil
}

// lengths are those of the prompts, each about as many times the one before.
func (p *ProfilePlan) lengths() []int32 {
	all := make([]int32, p.Lengths)
	for i := range all {
		all[i] = int32(math.Round(float64(p.Shortest) * math.Pow(float64(p.Longest)/float64(p.Shortest), float64(i)/float64(p.Lengths-1))))
	}
	return all
}

// cost is how many prompt tokens so many rounds take.
func (p *ProfilePlan) cost(rounds int) (tokens int64) {
	for _, l := range p.lengths() {
		tokens += int64(l) * int64(rounds)
	}
	return tokens
}

// A Profiled is a measured curve.
type Profiled struct {
	Dir       string
	Path      string // of the deadlines file
	File      *deadline.File
	Curve     *deadline.Curve
	Diagnosis *deadline.Diagnosis
	Lengths   []LengthSeen
	Narrow    bool // the band came out as narrow as was asked
}

// LengthSeen is what came of one length's probes.
type LengthSeen struct {
	Tokens         int32 // median of the server's count
	N              int
	LeastNs, Mid   int64 // TTFT from the sending: least and median
	Fit, Low, High int64 // the curve there
}

// Profile measures the prefill curve of a server and writes a deadlines file into
// the profile's folder, beside what is known of all probes. sets are settings of
// the run file that say whom to ask. A hosted plan whose folder has probes goes on
// with them.
func Profile(ctx context.Context, sets []conf.Setting, p ProfilePlan, o Options) (*Profiled, error) {
	o.fill()
	p.fill()
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Hosted != nil {
		return profileHosted(ctx, sets, p, o)
	}
	dir, err := folder(o.Out, "profile")
	if err != nil {
		return nil, err
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		return nil, misusef("%s is not empty: give another folder with --out, or leave --out away", dir)
	}
	pr := &profiling{plan: p, o: o, dir: dir, sets: sets, began: time.Now()}
	s, err := pr.probeSpec()
	if err != nil {
		return nil, err
	}
	if err := pr.announce(s); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the profile's folder: %w", err)
	}
	held, err := alone(dir)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	for pr.rounds < p.Most {
		more := p.Rounds
		if pr.rounds > 0 {
			more = min(moreRounds, p.Most-pr.rounds)
			if pr.broke(more) {
				o.Say("%s %s would be passed by %d more rounds: no more is asked", pr.purse.most.Short(), pr.purse.currency, more)
				break
			}
		}
		if err := pr.batch(ctx, more); err != nil {
			return nil, err
		}
		if err := pr.fit(); err != nil {
			return nil, err
		}
		o.Say("%d rounds: the band is within %.1f %%%s", pr.rounds, 100*pr.diagnosis.HalfWidth, flagsText(pr.diagnosis.Flags))
		if pr.diagnosis.HalfWidth <= p.Within {
			break
		}
	}
	pr.lasted = time.Since(pr.began)
	return pr.finish()
}

func flagsText(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return ", flagged " + strings.Join(flags, ", ")
}

// A profiling is a profile under way.
type profiling struct {
	plan   ProfilePlan
	o      Options
	dir    string
	sets   []conf.Setting
	began  time.Time
	lasted time.Duration // from the first probe to the last
	pingNs int64         // least round trip that was seen; 0 where none was looked for

	rounds, batches int
	probes          []deadline.Probe
	tokens          int64
	counted         bool // some prompt's length is not the server's count
	seed            uint64
	run             *spec.Run
	purse           profilePurse
	answers         int64

	curve     *deadline.Curve
	diagnosis *deadline.Diagnosis
}

// batch runs so many rounds as a run of its own: a closed loop of one user over a
// file of lengths, which stays beside the recording.
func (pr *profiling) batch(ctx context.Context, rounds int) error {
	pr.batches++
	name := filepath.Join(pr.dir, strconv.Itoa(pr.batches))
	file := name + ".csv"
	lengths := pr.plan.lengths()
	// The first of all may find a cold server: a whole round is thrown away then,
	// and the two shortest prompts later, for the connection.
	warmup := lengths[:2]
	if pr.batches == 1 {
		warmup = lengths
	}
	if pr.batches == 1 {
		pr.seed = rand.Uint64N(1e6)
		for _, s := range pr.sets {
			if s.Path == "seed" {
				pr.seed, _ = strconv.ParseUint(s.Value, 10, 64)
			}
		}
	}
	r := seed.Rand(pr.seed, "profile: order "+strconv.Itoa(pr.batches))
	rows := "prompt_tokens,output_tokens\n"
	for _, l := range warmup {
		rows += fmt.Sprintf("%d,1\n", l)
	}
	for range rounds {
		for _, i := range r.Perm(len(lengths)) {
			rows += fmt.Sprintf("%d,1\n", lengths[i])
		}
	}
	if err := os.WriteFile(file, []byte(rows), 0o644); err != nil {
		return fmt.Errorf("writing the lengths of the probes: %w", err)
	}
	own := []conf.Setting{
		{Path: "workload.dataset", Value: file},
		{Path: "workload.once", Value: "true"},
		{Path: "schedule.concurrency", Value: "1"},
		{Path: "schedule.requests", Value: strconv.Itoa(rounds * len(lengths))},
		{Path: "schedule.warmup", Value: strconv.Itoa(len(warmup))},
		{Path: "schedule.drain", Value: "quiet"},
		// Other prompts in each batch: a cache would know the ones before.
		{Path: "seed", Value: strconv.FormatUint(seed.Derive(pr.seed, "profile: prompts "+strconv.Itoa(pr.batches))%1e9, 10)},
	}
	s, err := spec.Read("", nil, slices.Concat(pr.sets, own))
	if err != nil {
		return err
	}
	if pr.purse.most != nil {
		s.Load.MaxCost = pr.purse.most.Minus(pr.spent()).String()
	}
	one := pr.o
	one.Out = name
	done, err := Run(ctx, s, one)
	if err != nil {
		return err
	}
	pr.run = s
	switch {
	case done.End.ByFailures:
		return &Failure{fmt.Sprintf("no curve: %s", done.End.Interrupted), "What was recorded is kept in " + pr.dir + "."}
	case done.End.Interrupted != "":
		return cutShort{pr.dir}
	}
	return pr.collect(name, rounds)
}

// cutShort says that a profile was interrupted while it measured.
type cutShort struct{ dir string }

func (c cutShort) Error() string {
	return "interrupted before there was a curve; what was recorded is kept in " + c.dir
}

// Is makes it an interruption like others.
func (c cutShort) Is(target error) bool { return target == ErrInterrupted }

// announce says what the plan costs before anything is asked. An error says that the
// money would not do for a curve.
func (pr *profiling) announce(s *spec.Run) (err error) {
	p := &pr.plan
	if pr.purse, err = purseOf(s); err != nil {
		return err
	}
	first, most := p.cost(p.Rounds+1), p.cost(p.Most+1)
	text := fmt.Sprintf("isolated plan: %d lengths from %s to %s tokens, %d rounds after one that is thrown away: about %s prompt tokens; at most %d rounds, about %s",
		p.Lengths, term.Count(int64(p.Shortest)), term.Count(int64(p.Longest)), p.Rounds, term.Count(first), p.Most, term.Count(most))
	if rate := pr.purse.rate; rate != nil {
		least, whole := rate.Of(first, int64(p.Rounds+1)*int64(p.Lengths)), rate.Of(most, int64(p.Most+1)*int64(p.Lengths))
		if pr.purse.passes(cost.Amount{}, least) {
			return pr.purse.refuse(least, whole, fmt.Sprintf("the %d rounds after which one is first looked for", p.Rounds))
		}
		text += pr.purse.told(least, whole)
		if pr.purse.passes(cost.Amount{}, whole) {
			text += fmt.Sprintf("; it ends before %s is spent", pr.purse.most.Short())
		}
	}
	pr.o.Say("%s", text)
	return nil
}

// broke says that so many more rounds could pass what the profile may cost.
func (pr *profiling) broke(rounds int) bool {
	if pr.purse.most == nil {
		return false
	}
	lengths := pr.plan.lengths()
	return pr.purse.passes(pr.spent(), pr.purse.rate.Of(pr.plan.cost(rounds)+int64(lengths[0])+int64(lengths[1]), int64(rounds*len(lengths))+2))
}

func (pr *profiling) spent() cost.Amount { return pr.purse.rate.Of(pr.tokens, pr.answers) }

// collect takes the probes of a batch from its recording.
func (pr *profiling) collect(dir string, rounds int) error {
	rec, err := recording.Open(dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	n, failed := 0, 0
	scale := max(1, rec.Meta().TimeScale) // of a simulated server, whose seconds are shorter
	var failure string
	for t := range rec.Traces(recording.AllColumns) {
		pr.tokens += int64(t.Prompt.Used.Or(t.Prompt.Intended.Or(0)))
		pr.answers++
		if t.Phase != recording.Measured {
			continue
		}
		block := int64(pr.rounds + n/pr.plan.Lengths)
		n++
		if t.Outcome != recording.OK || len(t.DeltaNs) == 0 || !t.Sent.OK || !t.Prompt.Used.OK {
			failed++
			pr.probes = append(pr.probes, deadline.Probe{Block: block, Failed: true})
			if failure == "" {
				failure = fmt.Sprintf("a prompt of %d tokens ended as %s: %s", t.Prompt.Intended.Or(0), t.Outcome, t.Error)
			}
			continue
		}
		pr.counted = pr.counted || !t.Prompt.Reported.OK
		pr.probes = append(pr.probes, deadline.Probe{
			PromptTokens: t.Prompt.Used.V, TTFTNs: int64(scale * float64(t.DeltaNs[0]+t.Due-t.Sent.V)), Block: block, CachedTokens: t.Cached.Or(0),
		})
	}
	if err := rec.Err(); err != nil {
		return fmt.Errorf("reading the probes: %w", err)
	}
	pr.rounds += rounds
	if n > 0 && 4*failed > n {
		return &Failure{
			Saw:  fmt.Sprintf("no curve: %d of %d probes failed; the first: %s", failed, n, failure),
			Help: "Where long prompts are refused, give a smaller --longest.",
		}
	}
	return nil
}

func (pr *profiling) fit() error {
	o := deadline.FitOptions{Isolated: true, Seed: pr.seed, Noise: deadline.LocalNoise()}
	if pr.plan.Hosted != nil {
		o.Isolated, o.Noise = false, deadline.DefaultNoise()
	}
	if pr.counted {
		o.Noise.ShareMax = max(o.Noise.ShareMax, ownCountNoise)
	}
	probes, hits := pr.uncached()
	var err error
	pr.curve, pr.diagnosis, err = deadline.Fit(probes, o)
	if err != nil && hits > 0 {
		return &Failure{
			Saw:  fmt.Sprintf("%v: the server had %d of %d prompts in its cache, at least in part", err, hits, len(pr.probes)),
			Help: "Prompts differ from their first word on: look what the server calls cached, or switch its prefix cache off.",
		}
	}
	return err
}

// uncached are the probes, of whose cached tokens those are forgotten that every
// prompt begins with, and how many had more than that in the cache.
func (pr *profiling) uncached() (probes []deadline.Probe, hits int) {
	probes = slices.Clone(pr.probes)
	template := pr.template()
	for i := range probes {
		p := &probes[i]
		extra := p.CachedTokens - template
		if p.CachedTokens = 0; extra > max(leastHit, p.PromptTokens/100) {
			p.CachedTokens = extra
			hits++
		}
	}
	return probes, hits
}

// template is how many tokens of prompts the server has in its cache, as far as a
// chat template can have so many: of nine prompts in ten at least, since a server of
// several slots has it in each only after its first prompt there.
func (pr *profiling) template() int32 {
	var cached []int32
	for _, p := range pr.probes {
		if !p.Failed {
			cached = append(cached, p.CachedTokens)
		}
	}
	slices.Sort(cached)
	if len(cached) == 0 || cached[len(cached)/10] > mostTemplate {
		return 0
	}
	return cached[len(cached)/10]
}

// name is what the plan is called.
func (p *ProfilePlan) name() string {
	if p.Hosted != nil {
		return "hosted"
	}
	return "isolated"
}

// finish writes the deadlines file.
func (pr *profiling) finish() (*Profiled, error) {
	f := pr.curve.File(pr.diagnosis)
	f.Source = &deadline.Source{
		Plan: pr.plan.name(), Target: pr.run.PublicURL(), Model: pr.run.Target.Model, Measured: pr.began.UTC().Format(time.RFC3339),
		Tool: "fermata " + pr.o.Version, Probes: pr.diagnosis.Probes, LeftOut: pr.diagnosis.LeftOut + pr.diagnosis.Failed, Tokens: pr.tokens,
		Hours: math.Round(1e6*pr.lasted.Hours()) / 1e6, Seed: pr.seed,
	}
	if err := pr.slacken(f); err != nil {
		return nil, err
	}
	data, err := f.Write()
	if err != nil {
		return nil, err
	}
	out := &Profiled{
		Dir: pr.dir, Path: filepath.Join(pr.dir, "deadlines.yaml"), File: f, Curve: pr.curve, Diagnosis: pr.diagnosis,
		Lengths: pr.seen(), Narrow: pr.diagnosis.HalfWidth <= pr.plan.Within,
	}
	if err := os.WriteFile(out.Path, data, 0o644); err != nil {
		return nil, fmt.Errorf("writing the deadlines: %w", err)
	}
	pr.remark(out)
	return out, nil
}

// remark says what must be known of the curve.
func (pr *profiling) remark(out *Profiled) {
	d := pr.diagnosis
	if n := pr.template(); n > 0 {
		pr.o.Say("the server has the first %d tokens of prompts in its cache, such as a chat template: they are part of the curve's beginning", n)
	}
	if _, hits := pr.uncached(); hits > 0 {
		pr.o.Say("%d probes were left out: the server had part of their prompts in its cache", hits)
	}
	if d.Failed > 0 {
		pr.o.Say("%d probes failed and are left out", d.Failed)
	}
	if pr.counted {
		pr.o.Say("the server reports no usage: prompt lengths are counted by words, and the noise may be wider for it")
	}
	if pr.plan.Hosted == nil && d.Undelayed < isolatedServer {
		pr.o.Say("%.0f %% of the probes took longer than the curve and its noise (%s and %.1f %%) explain: the server's own time varies so much, this machine was busy, or others ask the server too; for a server that others use there is --plan hosted", 100*(1-d.Undelayed), time.Duration(d.NoiseNs).Round(10*time.Microsecond), 100*d.NoiseShare)
	}
	for _, flag := range d.Flags {
		why, help := deadline.Words(flag)
		pr.o.Say("%s: %s. %s", flag, why, help)
	}
	if !out.Narrow {
		pr.o.Say("after %s the band is still within %.1f %%, not %.1f", pr.effort(), 100*d.HalfWidth, 100*pr.plan.Within)
	}
}

// effort is what was done, in words.
func (pr *profiling) effort() string {
	if pr.plan.Hosted != nil {
		return fmt.Sprintf("%d requests", len(pr.probes))
	}
	return fmt.Sprintf("%d rounds", pr.rounds)
}

// seen sums the probes up by length.
func (pr *profiling) seen() []LengthSeen {
	var all []LengthSeen
	targets := pr.plan.lengths()
	by := make([][]deadline.Probe, len(targets))
	probes, _ := pr.uncached()
	for _, p := range probes {
		if p.Failed {
			continue
		}
		near := 0
		for i, t := range targets {
			if math.Abs(math.Log(float64(p.PromptTokens)/float64(t))) < math.Abs(math.Log(float64(p.PromptTokens)/float64(targets[near]))) {
				near = i
			}
		}
		if p.CachedTokens == 0 {
			by[near] = append(by[near], p)
		}
	}
	for _, probes := range by {
		if len(probes) == 0 {
			continue
		}
		var tokens []int32
		var times []int64
		for _, p := range probes {
			tokens, times = append(tokens, p.PromptTokens), append(times, p.TTFTNs)
		}
		slices.Sort(tokens)
		slices.Sort(times)
		mid := tokens[len(tokens)/2]
		low, high := pr.curve.Band(float64(mid))
		all = append(all, LengthSeen{
			mid, len(probes), times[0], times[(len(times)-1)/2],
			int64(pr.curve.At(float64(mid))), int64(low), int64(high),
		})
	}
	return all
}
