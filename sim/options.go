package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
)

// Scheduling policies.
const (
	PrefillFirst = "prefill-first" // vLLM v0: waiting prompts go first, and nobody decodes meanwhile
	StallFree    = "stall-free"    // Sarathi-Serve: decodes first, prompts in chunks within one budget
	Unified      = "unified"       // vLLM v1: one budget for all, running before waiting
	Static       = "static"        // a batch begins and ends as one, as before continuous batching
	Orca         = "orca"          // whole prompts beside decodes, memory reserved for the longest answer
)

// Orders in which requests wait.
const (
	FCFS           = "fcfs"
	ByPriority     = "priority"        // then by arrival
	ShortestPrompt = "shortest-prompt" // then by arrival: shows starvation
)

// Admission of policy unified.
const (
	AdmitFull  = "full"  // a prompt that fits with all unfinished prompts
	AdmitChunk = "chunk" // a prompt whose first chunk fits: thrashes when memory is full
)

// Routers choose a replica for a request when it arrives.
const (
	RoundRobin     = "round-robin"
	LeastLoaded    = "least-loaded"
	BySession      = "session" // one replica for a session; requests without one by turns
	PrefixAffinity = "prefix"  // where most of its prompt is cached, else the least loaded
)

// Packings of the tokens that one speculative step brings.
const (
	PackEvent = "event" // all in one event
	PackWrite = "write" // an event each, in one write
)

// Options describe a serving system. The zero value is a Llama-3-8B on one H100
// under policy unified.
type Options struct {
	Model       string      `yaml:"model"`         // a name of Models, or the path of a config.json; default Llama-3-8B
	GPU         string      `yaml:"gpu"`           // a name of GPUs; default H100
	TP          int         `yaml:"tp"`            // GPUs that hold the model together; default 1
	Dtype       string      `yaml:"dtype"`         // of weights: bf16 (default) or fp8
	KVDtype     string      `yaml:"kv_dtype"`      // of keys and values: bf16 (default) or fp8
	Cost        CostOptions `yaml:"cost"`          // default the roofline with preset etalon
	Efficiency  Efficiency  `yaml:"efficiency"`    // shares of the GPU's peaks, over those of the preset
	Noise       float64     `yaml:"noise"`         // σ of the log-normal factor, of mean 1, on each iteration; default 0, none
	Hiccup      *Hiccup     `yaml:"hiccup"`        // rare delays of an iteration; default none
	Host        *Host       `yaml:"host"`          // a name of HostPresets, or its own numbers; default modern
	Memory      Memory      `yaml:"memory"`        // for keys and values
	MaxModelLen int         `yaml:"max_model_len"` // most tokens of prompt and answer; default the config.json's, else as many as fit

	Scheduler Scheduler `yaml:"scheduler"`
	Admit     string    `yaml:"admit"` // by policy unified: full (default) or chunk

	Speculation    *Speculation    `yaml:"speculation"`    // default none
	PrefixCache    bool            `yaml:"prefix_cache"`   // keep the keys and values of ended requests until their room is needed
	Replicas       int             `yaml:"replicas"`       // independent copies of the system; default 1
	Router         string          `yaml:"router"`         // between replicas: round-robin (default), least-loaded, session or prefix
	Disaggregation *Disaggregation `yaml:"disaggregation"` // prefill and decode on GPUs of their own, instead of replicas; default none
	QueueLimit     int             `yaml:"queue_limit"`    // requests that wait before others are refused; default no limit

	Seed uint64 `yaml:"seed,zero"` // of noise, hiccups and acceptance, each with a stream of its own
}

// CostOptions say what an iteration costs. Text is the preset of a roofline.
type CostOptions struct {
	Roofline string `yaml:"roofline"` // etalon (default) or kernels
	Flat     *Flat  `yaml:"flat"`     // known numbers instead, without memory or host
	Fitted   string `yaml:"fitted"`   // file of coefficients instead, see ReadFitted
}

// UnmarshalText takes the preset of a roofline.
func (c *CostOptions) UnmarshalText(text []byte) error {
	*c = CostOptions{Roofline: string(text)}
	return nil
}

// Efficiency overrides a GPU's shares; 0 leaves the preset's.
type Efficiency struct {
	Compute   float64 `yaml:"compute"`   // of FLOPS, by large matrix products
	Streaming float64 `yaml:"streaming"` // of bandwidth, by reading weights
	Attention float64 `yaml:"attention"` // of FLOPS, by prefill attention: .29 FlashAttention-2, .6 FlashAttention-3 on Hopper
	KVReading float64 `yaml:"kv_reading"`
	LinkGBps  float64 `yaml:"link_gbps"` // GB/s of an all-reduce, instead of the GPU's
}

// A Hiccup delays an iteration once in a while, by a Pareto-distributed time.
type Hiccup struct {
	Probability float64       `yaml:"probability"` // for each iteration
	AtLeast     time.Duration `yaml:"at_least"`
	Shape       float64       `yaml:"shape"` // of the tail; default 1.5
}

// hostPresets are what servers of several ages took. The one of 2024 is vLLM up
// to 0.5 with Ray workers; modern is vLLM's v1 with overlapped scheduling.
var hostPresets = map[string]Host{
	"2024":     {Fixed: 10 * time.Millisecond, PerSeq: 50 * time.Microsecond},
	"2024-tp1": {Fixed: 6 * time.Millisecond, PerSeq: 100 * time.Microsecond},
	"modern":   {Fixed: 2 * time.Millisecond, PerSeq: 20 * time.Microsecond},
	"ideal":    {},
}

// UnmarshalText takes the name of a preset.
func (h *Host) UnmarshalText(text []byte) error {
	preset, ok := hostPresets[string(text)]
	if !ok {
		return fmt.Errorf("must be 2024, 2024-tp1, modern, ideal or {fixed: 10ms, per_seq: 50us}, not %q", text)
	}
	*h = preset
	return nil
}

// Memory is what there is for keys and values.
type Memory struct {
	Fraction    float64  `yaml:"fraction"`     // of a GPU's memory that is used in all; default 0.9
	ReservedGiB *float64 `yaml:"reserved_gib"` // for activations, the CUDA context and collectives; default 3
	Tokens      int64    `yaml:"tokens"`       // room for so many tokens, instead of what the GPUs have
	BlockSize   int      `yaml:"block_size"`   // tokens a block; default 16
	Watermark   *float64 `yaml:"watermark"`    // share of blocks that stays free when a request is admitted; default 0.01
}

// Scheduler says who runs.
type Scheduler struct {
	Policy              string        `yaml:"policy"`                 // prefill-first, stall-free, unified (default), static or orca
	MaxNumSeqs          int           `yaml:"max_num_seqs"`           // running at once; of static, the size of a batch; default 256
	MaxNumBatchedTokens int           `yaml:"max_num_batched_tokens"` // budget of an iteration: of prefill-first for prompts, default max_model_len or else 16384; of unified, default 2048
	Chunk               int           `yaml:"chunk"`                  // budget of an iteration of stall-free; default 512
	ChunkLow            int           `yaml:"chunk_low"`              // of stall-free: the budget falls from chunk at a prompt's beginning to this at max_model_len; default chunk
	LongPrefill         int           `yaml:"long_prefill_threshold"` // of unified: most tokens of one prompt in an iteration; default no limit
	FillWait            time.Duration `yaml:"fill_wait"`              // of static: how long an idle system waits for a full batch; default 0
	Order               string        `yaml:"order"`                  // fcfs (default), priority or shortest-prompt
}

// Speculation is speculative decoding: a draft proposes tokens and the model
// verifies them in one step.
type Speculation struct {
	Gamma     int           `yaml:"gamma"`      // drafted tokens a step
	Alpha     float64       `yaml:"alpha"`      // chance that a drafted token is accepted, after all before it were
	Beta      float64       `yaml:"beta"`       // where given, each request draws its own chance from a Beta distribution of mean alpha and a + b = beta
	DraftStep time.Duration `yaml:"draft_step"` // of each drafted token; default 0, as of n-grams
	Draft     string        `yaml:"draft"`      // model that drafts on the same GPUs, instead of draft_step
	OffAbove  int           `yaml:"off_above"`  // batches of more sequences decode plainly; default never
	Packing   string        `yaml:"packing"`    // of a step's tokens: event (default) or write
}

// Disaggregation is prefill and decode on instances of their own (DistServe).
type Disaggregation struct {
	Prefill   int           `yaml:"prefill"`        // instances that prefill; default 1
	Decode    int           `yaml:"decode"`         // instances that decode; default 1
	Transfer  time.Duration `yaml:"transfer"`       // of a request's keys and values, whatever their size
	Bandwidth float64       `yaml:"bandwidth_gbps"` // GB/s of the link; default infinite
	Overlap   bool          `yaml:"overlap"`        // layers are sent while later ones are computed: only what the prefill did not hide takes time
}

// A check collects what is wrong with options.
type check struct{ problems []conf.Problem }

func (c *check) add(path, format string, args ...any) {
	c.problems = append(c.problems, conf.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (c *check) atLeast(path string, value, least int) {
	if value < least {
		c.add(path, "must be %d or more, not %d", least, value)
	}
}

func (c *check) within(path string, value, low, high float64) {
	if !(value >= low && value <= high) {
		c.add(path, "must be from %g to %g, not %g", low, high, value)
	}
}

func (c *check) duration(path string, d time.Duration) {
	if d < 0 {
		c.add(path, "must be 0 or more, not %s", d)
	}
}

func (c *check) oneOf(path, value string, names ...string) {
	for _, n := range names {
		if value == n || value == "" {
			return
		}
	}
	c.add(path, "must be %s or %s, not %q", strings.Join(names[:len(names)-1], ", "), names[len(names)-1], value)
}

// Check says what is wrong with the options, with paths relative to them. It
// reads the files that they name. A system that passes can be made with New.
func (o Options) Check() []conf.Problem {
	c := &check{}
	c.oneOf("dtype", o.Dtype, "bf16", "fp8")
	c.oneOf("kv_dtype", o.KVDtype, "bf16", "fp8")
	c.atLeast("tp", o.TP, 0)
	c.within("noise", o.Noise, 0, 2)
	c.atLeast("max_model_len", o.MaxModelLen, 0)
	c.oneOf("admit", o.Admit, AdmitFull, AdmitChunk)
	c.atLeast("replicas", o.Replicas, 0)
	c.oneOf("router", o.Router, RoundRobin, LeastLoaded, BySession, PrefixAffinity)
	c.atLeast("queue_limit", o.QueueLimit, 0)
	if h := o.Hiccup; h != nil {
		c.within("hiccup.probability", h.Probability, 0, 1)
		c.duration("hiccup.at_least", h.AtLeast)
		c.within("hiccup.shape", h.Shape, 0, 100)
	}
	if h := o.Host; h != nil {
		c.duration("host.fixed", h.Fixed)
		c.duration("host.per_seq", h.PerSeq)
	}
	o.checkCost(c)
	o.checkMemory(c)
	o.checkScheduler(c)
	o.checkSpeculation(c)
	o.checkDisaggregation(c)
	o.checkNames(c)
	if !slices.ContainsFunc(c.problems, planned) {
		if _, problem := o.plan(); problem != nil {
			c.problems = append(c.problems, *problem)
		}
	}
	return c.problems
}

// planned says that a problem is about what a plan is worked out from.
func planned(p conf.Problem) bool {
	room, _, _ := strings.Cut(p.Path, ".")
	return p.Path == "speculation.draft" || slices.Contains([]string{"model", "gpu", "tp", "dtype", "kv_dtype", "cost", "efficiency", "memory", "max_model_len"}, room)
}

// checkNames looks models and the GPU up.
func (o *Options) checkNames(c *check) {
	if o.Cost.Flat != nil {
		return
	}
	look := func(path, name string, find func(string) error) {
		if name == "" {
			return
		}
		if err := find(name); err != nil {
			c.add(path, "cannot be used: %v", err)
		}
	}
	model := func(name string) error { _, err := FindModel(name); return err }
	look("model", o.Model, model)
	look("gpu", o.GPU, func(name string) error { _, err := FindGPU(name); return err })
	if o.Speculation != nil {
		look("speculation.draft", o.Speculation.Draft, model)
	}
}

func (o *Options) checkCost(c *check) {
	given := 0
	for _, g := range []bool{o.Cost.Roofline != "", o.Cost.Flat != nil, o.Cost.Fitted != ""} {
		if g {
			given++
		}
	}
	if given > 1 {
		c.add("cost", "gives several models of cost: one of etalon, kernels, {flat: …} and {fitted: FILE} is enough")
	}
	c.oneOf("cost", o.Cost.Roofline, Etalon, Kernels)
	if f := o.Cost.Flat; f != nil {
		c.duration("cost.flat.ttft", f.TTFT)
		c.duration("cost.flat.itl", f.ITL)
	}
	e := o.Efficiency
	c.within("efficiency.compute", e.Compute, 0, 1)
	c.within("efficiency.streaming", e.Streaming, 0, 1)
	c.within("efficiency.attention", e.Attention, 0, 1)
	c.within("efficiency.kv_reading", e.KVReading, 0, 1)
	c.within("efficiency.link_gbps", e.LinkGBps, 0, 1e6)
}

func (o *Options) checkMemory(c *check) {
	m := o.Memory
	c.within("memory.fraction", m.Fraction, 0, 1)
	if m.ReservedGiB != nil {
		c.within("memory.reserved_gib", *m.ReservedGiB, 0, 1000)
	}
	c.atLeast("memory.block_size", m.BlockSize, 0)
	if m.Watermark != nil {
		c.within("memory.watermark", *m.Watermark, 0, .5)
	}
	if m.Tokens < 0 {
		c.add("memory.tokens", "must be 0 or more, not %d", m.Tokens)
	}
}

func (o *Options) checkScheduler(c *check) {
	s := o.Scheduler
	c.oneOf("scheduler.policy", s.Policy, PrefillFirst, StallFree, Unified, Static, Orca)
	c.oneOf("scheduler.order", s.Order, FCFS, ByPriority, ShortestPrompt)
	c.atLeast("scheduler.max_num_seqs", s.MaxNumSeqs, 0)
	c.atLeast("scheduler.max_num_batched_tokens", s.MaxNumBatchedTokens, 0)
	c.atLeast("scheduler.chunk", s.Chunk, 0)
	c.atLeast("scheduler.chunk_low", s.ChunkLow, 0)
	c.atLeast("scheduler.long_prefill_threshold", s.LongPrefill, 0)
	c.duration("scheduler.fill_wait", s.FillWait)
	policy := s.Policy
	if policy == "" {
		policy = Unified
	}
	only := func(path string, set bool, policies ...string) {
		for _, p := range policies {
			set = set && p != policy
		}
		if set {
			c.add(path, "is of policy %s and means nothing to %s: remove it, or change scheduler.policy", strings.Join(policies, " and "), policy)
		}
	}
	if o.Disaggregation == nil {
		only("scheduler.max_num_batched_tokens", s.MaxNumBatchedTokens > 0, PrefillFirst, Unified)
		only("scheduler.chunk", s.Chunk > 0, StallFree)
		only("scheduler.chunk_low", s.ChunkLow > 0, StallFree)
		only("scheduler.long_prefill_threshold", s.LongPrefill > 0, Unified)
		only("scheduler.fill_wait", s.FillWait > 0, Static)
		only("admit", o.Admit == AdmitChunk, Unified) // full is the default
	}
	if policy == Orca && o.MaxModelLen == 0 && o.Cost.Flat == nil {
		c.add("max_model_len", "is needed by policy orca, which reserves so many tokens for each request")
	}
}

func (o *Options) checkSpeculation(c *check) {
	s := o.Speculation
	if s == nil {
		return
	}
	c.atLeast("speculation.gamma", s.Gamma, 0)
	c.within("speculation.alpha", s.Alpha, 0, 1)
	c.within("speculation.beta", s.Beta, 0, 1e6)
	c.duration("speculation.draft_step", s.DraftStep)
	c.atLeast("speculation.off_above", s.OffAbove, 0)
	c.oneOf("speculation.packing", s.Packing, PackEvent, PackWrite)
	if s.Draft != "" && s.DraftStep > 0 {
		c.add("speculation.draft_step", "is what speculation.draft works out: give one of them")
	}
	if s.Beta > 0 && (s.Alpha <= 0 || s.Alpha >= 1) {
		c.add("speculation.alpha", "must be between 0 and 1 where beta spreads it, not %g", s.Alpha)
	}
	if o.Scheduler.Policy == Static && s.Gamma > 0 {
		c.add("speculation", "is not done by policy static: choose another, or gamma 0")
	}
}

func (o *Options) checkDisaggregation(c *check) {
	d := o.Disaggregation
	if d == nil {
		return
	}
	c.atLeast("disaggregation.prefill", d.Prefill, 0)
	c.atLeast("disaggregation.decode", d.Decode, 0)
	c.duration("disaggregation.transfer", d.Transfer)
	c.within("disaggregation.bandwidth_gbps", d.Bandwidth, 0, 1e9)
	if o.Replicas > 1 {
		c.add("replicas", "and disaggregation exclude each other: remove replicas, and say with disaggregation.prefill and disaggregation.decode how many instances there are in all")
	}
	if p := o.Scheduler.Policy; p != "" && p != PrefillFirst {
		c.add("scheduler.policy", "is always prefill-first for the prefill side of disaggregation: remove %s", p)
	}
}
