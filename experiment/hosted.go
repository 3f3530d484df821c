package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"fermata/cost"
	"fermata/deadline"
	"fermata/internal/conf"
	"fermata/internal/seed"
	"fermata/internal/term"
	"fermata/recording"
	"fermata/spec"
)

// A HostedPlan says how an endpoint is probed whose queue cannot be seen: short
// canaries at random times, one in each stretch of equal length, and a long prompt
// at once where the canary was fast (see deadline.Gate), never two at a time. The
// zero value is 100 requests over 24 hours. It ends early where the band is narrow
// enough and nothing speaks against the curve.
type HostedPlan struct {
	Requests int
	Over     time.Duration
	Begin    func(budget string) error // asked before anything is; nil to begin at once
}

const (
	hostedShortest = 512
	hostedLongest  = 32768
	hostedRequests = 100
	hostedOver     = 24 * time.Hour
	lengthJitter   = 0.1 // of long prompts, so that steps between two lengths are seen
	pauseLeast     = 5 * time.Second
	pauseTTFTs     = 3 // of the last probe, before the next session
	oneBlock       = time.Hour
	blocksOver     = 24 // of a plan that lasts less than a day
	mostInARow     = 10 // failures, after which nobody is asked any more
)

// looks are after how many requests the curve is looked at.
var looks = []int{28, 42, 63, 98, 147, 210, 300, 450, 650}

func (p *HostedPlan) fill() {
	if p.Requests == 0 {
		p.Requests = hostedRequests
	}
	if p.Over == 0 {
		p.Over = hostedOver
	}
}

func (p *HostedPlan) check() error {
	switch {
	case p.Requests < looks[0] || p.Requests > 10_000:
		return fmt.Errorf("--requests %d: it must be %d to 10000", p.Requests, looks[0])
	case p.Over < time.Second || p.Over > 14*24*time.Hour:
		return fmt.Errorf("--over %s: it must be 1s to 336h (14 days); older probes may be of another server", p.Over)
	}
	return nil
}

// stride is the length of the stretches that have a canary each.
func (p *HostedPlan) stride() time.Duration {
	return time.Duration(float64(p.Over) * (1 + deadline.Gate{}.Passes()) / float64(p.Requests))
}

// A prober is where a hosted plan plays: a clock, and an endpoint that is asked
// one prompt at a time.
type prober interface {
	now() time.Time
	wait(ctx context.Context, until time.Time) error
	// ask asks the prompt of that number, none of which begins like another.
	ask(ctx context.Context, number int64, tokens int32) (probed, error)
}

// Kinds of probes of a hosted plan.
const (
	canaryProbe = "canary" // short, at a random time
	gatedProbe  = "gated"  // long, because its canary was fast
	freeProbe   = "free"   // long, whatever its canary was
)

// A probed is one request of a hosted plan: a line of its folder's probes.jsonl.
type probed struct {
	At           time.Time         `json:"at"` // when it was begun
	Number       int64             `json:"number"`
	Kind         string            `json:"kind"`
	Wanted       int32             `json:"wanted_tokens"`
	PromptTokens int32             `json:"prompt_tokens,omitempty"`
	Counted      bool              `json:"counted,omitempty"` // by us: the server reported no usage
	CachedTokens int32             `json:"cached_tokens,omitempty"`
	TTFTNs       int64             `json:"ttft_ns,omitempty"` // from the sending
	PingNs       int64             `json:"ping_ns,omitempty"` // of a page that costs nothing, just before
	Outcome      recording.Outcome `json:"outcome"`
	HTTPStatus   int32             `json:"http_status,omitempty"`
	Error        string            `json:"error,omitempty"`
}

func (p *probed) ok() bool { return p.Outcome == recording.OK && p.TTFTNs > 0 && p.PromptTokens > 0 }

// A canaryPlay is a hosted plan under way.
type canaryPlay struct {
	*profiling
	world prober
	file  *probeFile

	all      []probed
	canaries []int64 // TTFTs of those that came, in order
	longs    int
	next     int64 // number of the next session, each of which has two numbers for prompts
}

// profileHosted is Profile by a hosted plan.
func profileHosted(ctx context.Context, sets []conf.Setting, p ProfilePlan, o Options) (*Profiled, error) {
	dir := o.Out
	if dir == "" {
		var err error
		if dir, err = folder("", "profile"); err != nil {
			return nil, err
		}
	}
	pr := &profiling{plan: p, o: o, dir: dir, sets: sets, seed: seedOf(sets)}
	s, err := pr.probeSpec()
	if err != nil {
		return nil, err
	}
	pr.run = s
	if pr.purse, err = purseOf(s); err != nil {
		return nil, err
	}
	if err := writable(dir); err != nil {
		return nil, err
	}
	c := &canaryPlay{profiling: pr}
	head := probeHeader{
		Schema: probesSchema, Target: s.PublicURL(), Model: s.Target.Model, Seed: pr.seed,
		Shortest: p.Shortest, Longest: p.Longest, Lengths: p.Lengths, Began: time.Now().UTC(),
	}
	if c.file, c.all, err = openProbes(dir, &head); err != nil {
		return nil, err
	}
	defer c.file.close()
	pr.seed, pr.began = head.Seed, head.Began
	pr.run.Seed = head.Seed
	if len(c.all) > 0 {
		o.Say("%d requests of this profile are in %s already: going on", len(c.all), dir)
	}
	c.resume()
	if len(c.all) < p.Hosted.Requests {
		if err := c.begin(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.probes(); err != nil {
		return nil, err
	}
	return pr.finish()
}

// begin says what the plan costs, finds out what the endpoint takes, and plays.
func (c *canaryPlay) begin(ctx context.Context) error {
	budget, err := c.budget()
	if err != nil {
		return err
	}
	c.o.Say("%s", budget)
	if begin := c.plan.Hosted.Begin; begin != nil {
		if err := begin(budget); err != nil {
			return err
		}
	}
	world, err := newEndpoint(ctx, c.run, c.o)
	if err != nil {
		return err
	}
	defer world.close()
	c.world = world
	if err := c.file.name(c.run.Target.Model); err != nil {
		return err
	}
	return c.play(ctx)
}

// seedOf is the seed that the settings give, else one by chance.
func seedOf(sets []conf.Setting) uint64 {
	n := rand.Uint64N(1e6)
	for _, s := range sets {
		if s.Path == "seed" {
			n, _ = strconv.ParseUint(s.Value, 10, 64)
		}
	}
	return n
}

// probeSpec is the run file of the probes: whom to ask, with prompts made up for
// their length.
func (pr *profiling) probeSpec() (*spec.Run, error) {
	middle := math.Sqrt(float64(pr.plan.Shortest) * float64(pr.plan.Longest))
	return spec.Read("", nil, slices.Concat(pr.sets, []conf.Setting{
		{Path: "workload.input", Value: strconv.Itoa(int(math.Min(middle, 2048)))},
		{Path: "workload.output", Value: "1"},
		{Path: "schedule.concurrency", Value: "1"},
		{Path: "schedule.requests", Value: "1"},
	}))
}

// budgetTokens are those of so many requests, at a guess and at most: where every canary
// has a long prompt after it, each of them as long as they get.
func (c *canaryPlay) budgetTokens(requests int) (guess, most int64, longs int) {
	passes := deadline.Gate{}.Passes()
	longs = int(math.Round(float64(requests) * passes / (1 + passes)))
	lengths := c.plan.lengths()
	var sum int64
	for _, l := range lengths[1:] {
		sum += int64(l)
	}
	mean := sum / int64(len(lengths)-1)
	tokens := func(longs int) int64 { return int64(requests-longs)*int64(c.plan.Shortest) + int64(longs)*mean }
	return tokens(longs), int64(float64(tokens(requests/2)) * (1 + lengthJitter)), longs
}

// budget says what is still to be asked and what that costs, at a guess and at
// most. An error says that the money would not do for a curve.
func (c *canaryPlay) budget() (string, error) {
	p := &c.plan
	left := max(0, p.Hosted.Requests-len(c.all))
	guess, most, longs := c.budgetTokens(left)
	text := fmt.Sprintf("hosted plan: about %d canaries of %s tokens and %d prompts of %s to %s over %s, one at a time, one token of answer each: about %s prompt tokens, at most %s",
		left-longs, term.Count(int64(p.Shortest)), longs, term.Count(int64(p.lengths()[1])), term.Count(int64(p.Longest)), conf.Duration(p.Hosted.Over), term.Count(guess), term.Count(most))
	if c.purse.rate == nil {
		return text, nil
	}
	costs, worst := c.purse.rate.Of(guess, int64(left)), c.purse.rate.Of(most, int64(left))
	text += c.purse.told(costs, worst)
	if c.purse.most == nil {
		return text, nil
	}
	first := max(0, looks[0]-len(c.all))
	tokens, _, _ := c.budgetTokens(first)
	spent := c.spent()
	if c.purse.passes(spent, c.purse.rate.Of(tokens, int64(first))) {
		return "", c.purse.refuse(spent.Plus(c.purse.rate.Of(tokens, int64(first))), spent.Plus(worst), fmt.Sprintf("the %d requests after which one is first looked for", looks[0]))
	}
	text += fmt.Sprintf("; it ends before %s is spent", c.purse.most.Short())
	switch {
	case c.purse.passes(spent, costs):
		text += fmt.Sprintf(", which will not do for all of them: with --max-cost %s it would for certain", spent.Plus(worst).Short())
	case c.purse.passes(spent, worst):
		text += fmt.Sprintf(", which will do unless more long prompts are asked than usual: with --max-cost %s it would for certain", spent.Plus(worst).Short())
	}
	return text, nil
}

// resume takes up what the folder knows.
func (c *canaryPlay) resume() {
	for i := range c.all {
		c.count(&c.all[i])
	}
	if len(c.all) > 0 {
		c.next++ // a prompt may have been on its way that no line tells of
	}
}

func (c *canaryPlay) count(p *probed) {
	c.next = max(c.next, p.Number/2+1)
	if p.Kind != canaryProbe {
		c.longs++
	} else if p.ok() && p.CachedTokens == 0 {
		c.canaries = append(c.canaries, p.TTFTNs)
	}
	if p.PingNs > 0 && (c.pingNs == 0 || p.PingNs < c.pingNs) {
		c.pingNs = p.PingNs
	}
}

// errEnough ends a play before all requests are made.
var errEnough = errors.New("enough")

// play asks until all requests are made, the curve is good enough, or the money is
// spent.
func (c *canaryPlay) play(ctx context.Context) error {
	p := c.plan.Hosted
	from, stride := c.world.now(), p.stride()
	stretch, inARow := 0, 0
	for len(c.all) < p.Requests {
		r := seed.Rand(c.seed, "profile: session "+strconv.FormatInt(c.next, 10))
		into := r.Float64()
		var due time.Time
		for due.Before(c.world.now()) { // a stretch that a pause has passed has none
			due = from.Add(time.Duration((float64(stretch) + into) * float64(stride)))
			stretch++
		}
		if c.broke() {
			c.o.Say("%s %s would be passed: no more is asked", c.purse.most.Short(), c.purse.currency)
			return nil
		}
		if err := c.world.wait(ctx, due); err != nil {
			return c.cut(err)
		}
		last, err := c.session(ctx, r)
		if err != nil {
			return c.cut(err)
		}
		if inARow++; last.ok() {
			inARow = 0
		}
		if inARow >= mostInARow {
			return &Failure{
				Saw:  fmt.Sprintf("the last %d probes failed: %s", inARow, last.why()),
				Help: "Nothing is lost: the same command with --out " + c.dir + " goes on.",
			}
		}
		if err := c.look(); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
		pause := max(min(pauseLeast, stride/4), pauseTTFTs*time.Duration(last.TTFTNs))
		if err := c.world.wait(ctx, c.world.now().Add(pause)); err != nil {
			return c.cut(err)
		}
	}
	return nil
}

// cut says how to go on after an interruption.
func (c *canaryPlay) cut(err error) error {
	if errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled) {
		return profileCut{c.dir, len(c.all), c.plan.Hosted.Requests}
	}
	return err
}

// profileCut says that a hosted profile was interrupted.
type profileCut struct {
	dir       string
	done, all int
}

func (c profileCut) Error() string {
	return fmt.Sprintf("interrupted after %d of %d requests, which are kept in %s; the same command with --out %s goes on", c.done, c.all, c.dir, c.dir)
}

// Is makes it an interruption like others.
func (c profileCut) Is(target error) bool { return target == ErrInterrupted }

// session asks a canary and, where the gate lets it, a long prompt at once. It
// gives the last of them.
func (c *canaryPlay) session(ctx context.Context, r *rand.Rand) (*probed, error) {
	number := 2 * c.next
	c.next++
	canary, err := c.ask(ctx, number, canaryProbe, c.plan.Shortest)
	if err != nil || !canary.ok() || canary.CachedTokens > 0 && canary.CachedTokens > c.template() {
		return canary, err
	}
	open, gated := deadline.Gate{}.Open(c.canaries, r.Float64())
	if !open || len(c.all) >= c.plan.Hosted.Requests {
		return canary, nil
	}
	kind := freeProbe
	if gated {
		kind = gatedProbe
	}
	lengths := c.plan.lengths()[1:]
	at := c.longs % len(lengths)
	order := seed.Rand(c.seed, "profile: lengths "+strconv.Itoa(c.longs/len(lengths))).Perm(len(lengths))
	tokens := float64(lengths[order[at]]) * (1 - lengthJitter + 2*lengthJitter*r.Float64())
	return c.ask(ctx, number+1, kind, int32(math.Round(tokens)))
}

// ask asks one prompt and keeps what came of it.
func (c *canaryPlay) ask(ctx context.Context, number int64, kind string, tokens int32) (*probed, error) {
	at := c.world.now()
	p, err := c.world.ask(ctx, number, tokens)
	if err != nil {
		return nil, err
	}
	p.At, p.Number, p.Kind, p.Wanted = at.UTC(), number, kind, tokens
	if err := c.file.add(&p); err != nil {
		return nil, err
	}
	c.all = append(c.all, p)
	c.count(&p)
	return &p, nil
}

// why says how a probe failed.
func (p *probed) why() string {
	text := fmt.Sprintf("a prompt of %d tokens ended as %s", p.Wanted, p.Outcome)
	if p.HTTPStatus > 0 && p.HTTPStatus != 200 {
		text += fmt.Sprintf(" %d", p.HTTPStatus)
	}
	if p.Error != "" {
		text += ": " + p.Error
	}
	return text
}

// broke says that another session could pass what the profile may cost.
func (c *canaryPlay) broke() bool {
	if c.purse.most == nil {
		return false
	}
	next := c.purse.rate.Of(int64(c.plan.Shortest)+int64((1+lengthJitter)*float64(c.plan.Longest)), 2)
	return c.purse.passes(c.spent(), next)
}

func (c *canaryPlay) spent() cost.Amount {
	var tokens, answers int64
	for i := range c.all {
		if p := &c.all[i]; p.ok() {
			tokens += int64(p.PromptTokens)
			answers++
		} else if p.HTTPStatus == 0 || p.HTTPStatus == 200 { // it may have been served
			tokens += int64(p.Wanted)
		}
	}
	return c.purse.rate.Of(tokens, answers)
}

// look fits the curve where it is time to, and says what it is like. errEnough
// says that it is good enough.
func (c *canaryPlay) look() error {
	n := len(c.all)
	if n >= c.plan.Hosted.Requests || !c.passed(n) {
		return nil
	}
	if err := c.probes(); err != nil {
		c.o.Say("%d requests: no curve yet (%v)", n, err)
		return nil
	}
	d := c.diagnosis
	c.o.Say("%d requests: the band is within %.1f %%%s", n, 100*d.HalfWidth, flagsText(d.Flags))
	if d.HalfWidth <= c.plan.Within && len(d.Flags) == 0 {
		return errEnough
	}
	return nil
}

// passed says whether the last session brought the number of requests to one at
// which the curve is looked at.
func (c *canaryPlay) passed(n int) bool {
	before := n - 1
	if n > 1 && c.all[n-1].Kind != canaryProbe {
		before--
	}
	return slices.ContainsFunc(looks, func(l int) bool { return before < l && l <= n })
}

// probes fits the curve to what is known, or says why there is none.
func (c *canaryPlay) probes() error {
	c.profiling.probes, c.tokens, c.counted = nil, 0, false
	block := min(oneBlock, c.plan.Hosted.Over/blocksOver)
	failed, first := 0, ""
	for i := range c.all {
		p := &c.all[i]
		one := deadline.Probe{
			PromptTokens: p.PromptTokens, TTFTNs: p.TTFTNs, CachedTokens: p.CachedTokens,
			Block: int64(p.At.Sub(c.all[0].At) / block), Gated: p.Kind == gatedProbe, Failed: !p.ok(),
		}
		if one.Failed {
			if failed++; first == "" {
				first = p.why()
			}
		}
		c.tokens += int64(p.PromptTokens)
		c.counted = c.counted || p.ok() && p.Counted
		c.profiling.probes = append(c.profiling.probes, one)
	}
	if n := len(c.all); n > 0 && 4*failed > n {
		return &Failure{
			Saw:  fmt.Sprintf("no curve: %d of %d probes failed; the first: %s", failed, n, first),
			Help: "Where the endpoint limits the rate, spread them over more time (--over); where it refuses long prompts, give a smaller --longest.",
		}
	}
	if n := len(c.all); n > 0 {
		c.began = c.all[0].At
		c.lasted = c.all[n-1].At.Sub(c.began)
	}
	return c.fit()
}
