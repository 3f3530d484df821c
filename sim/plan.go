package sim

import (
	"cmp"
	"fmt"
	"math"

	"fermata/internal/conf"
)

// unlimited is the number of blocks where memory plays no part.
const unlimited = 1 << 40

// A plan is what options come to: defaults filled in, files read.
type plan struct {
	Options
	cost      Cost
	draft     Cost // nil where drafting takes DraftStep
	blocks    int  // of one instance
	blockSize int
	watermark int
	kvBytes   int64 // of a token; 0 where nobody knows
}

// plan fills in defaults. It supposes that Check has found no problem so far that
// is planned.
func (o Options) plan() (*plan, *conf.Problem) {
	p := &plan{Options: o}
	s := &p.Scheduler
	p.TP = cmp.Or(o.TP, 1)
	p.Replicas = cmp.Or(o.Replicas, 1)
	p.Router = cmp.Or(o.Router, RoundRobin)
	p.Admit = cmp.Or(o.Admit, AdmitFull)
	s.Policy = cmp.Or(s.Policy, Unified)
	s.Order = cmp.Or(s.Order, FCFS)
	s.MaxNumSeqs = cmp.Or(s.MaxNumSeqs, 256)
	s.Chunk = cmp.Or(s.Chunk, 512)
	s.ChunkLow = cmp.Or(s.ChunkLow, s.Chunk)
	p.blockSize = cmp.Or(o.Memory.BlockSize, 16)
	if problem := p.costs(); problem != nil {
		return nil, problem
	}
	if d := o.Disaggregation; d != nil {
		filled := *d
		filled.Prefill, filled.Decode = cmp.Or(d.Prefill, 1), cmp.Or(d.Decode, 1)
		p.Disaggregation, s.Policy = &filled, PrefillFirst
	}
	if s.MaxNumBatchedTokens == 0 {
		s.MaxNumBatchedTokens = 2048
		if s.Policy == PrefillFirst {
			s.MaxNumBatchedTokens = cmp.Or(p.MaxModelLen, 16384)
		}
	}
	if s.Policy == StallFree && s.ChunkLow != s.Chunk && p.MaxModelLen == 0 {
		return nil, &conf.Problem{Path: "max_model_len", Text: "is needed with scheduler.chunk_low: the budget falls over so many tokens of a prompt"}
	}
	p.watermark = int(float64(p.blocks) * orElse(o.Memory.Watermark, .01))
	if p.blocks == unlimited {
		p.watermark = 0
	}
	if most := p.blocks - p.watermark; p.MaxModelLen > 0 && s.Policy == Orca && p.blocksFor(p.MaxModelLen) > most {
		return nil, &conf.Problem{Path: "max_model_len", Text: fmt.Sprintf("of %d tokens, which policy orca reserves for each request, is more than the %d that memory has room for", p.MaxModelLen, most*p.blockSize)}
	}
	return p, nil
}

func orElse(p *float64, other float64) float64 {
	if p == nil {
		return other
	}
	return *p
}

// costs sets what iterations cost, and from the same model how much fits.
func (p *plan) costs() *conf.Problem {
	if p.Cost.Flat != nil {
		p.cost, p.blocks = p.Cost.Flat, unlimited
		return nil
	}
	host := hostPresets["modern"]
	if p.Host != nil {
		host = *p.Host
	}
	roof, problem := p.roofline(cmp.Or(p.Model, "Llama-3-8B"), "model", host)
	if problem != nil {
		return problem
	}
	p.cost = roof
	p.kvBytes = roof.Model.KVBytes(roof.KV)
	p.MaxModelLen = cmp.Or(p.MaxModelLen, roof.Model.MaxLen)
	if p.Cost.Fitted != "" {
		f, err := ReadFitted(p.Cost.Fitted)
		if err != nil {
			return &conf.Problem{Path: "cost.fitted", Text: "cannot be used: " + err.Error()}
		}
		p.cost = f
	}
	if s := p.Speculation; s != nil && s.Draft != "" {
		draft, problem := p.roofline(s.Draft, "speculation.draft", Host{})
		if problem != nil {
			return problem
		}
		p.draft = draft
	}
	return p.room(roof)
}

// room works out how many blocks there are.
func (p *plan) room(roof *Roofline) *conf.Problem {
	tokens := p.Memory.Tokens
	if tokens == 0 {
		fraction, reserved := cmp.Or(p.Memory.Fraction, .9), orElse(p.Memory.ReservedGiB, 3)
		tokens = roof.Capacity(fraction, reserved*gib)
		if tokens < int64(p.blockSize) {
			return &conf.Problem{Path: "model", Text: fmt.Sprintf("%s needs %.1f GiB for weights on each of %d %s, of which %.1f GiB may be used: take more GPUs (tp), larger ones, or dtype fp8",
				roof.Model.Name, float64(roof.Weight)*float64(roof.Model.Params())/float64(p.TP)/gib, p.TP, roof.GPU.Name, float64(fraction*roof.GPU.Memory/gib)-reserved)}
		}
	}
	p.blocks = int(min(tokens/int64(p.blockSize), math.MaxInt32))
	if p.blocks < 1 {
		return &conf.Problem{Path: "memory.tokens", Text: fmt.Sprintf("must be at least one block of %d tokens, not %d", p.blockSize, tokens)}
	}
	return nil
}

func (p *plan) roofline(model, path string, host Host) (*Roofline, *conf.Problem) {
	m, err := FindModel(model)
	if err != nil {
		return nil, &conf.Problem{Path: path, Text: "cannot be used: " + err.Error()}
	}
	g, err := FindGPU(cmp.Or(p.GPU, "H100"))
	if err != nil {
		return nil, &conf.Problem{Path: "gpu", Text: "cannot be used: " + err.Error()}
	}
	if p.Cost.Roofline == Kernels {
		g = g.kernels()
	}
	e := p.Efficiency
	g.Compute, g.Streaming = cmp.Or(e.Compute, g.Compute), cmp.Or(e.Streaming, g.Streaming)
	g.Attention, g.KVReading = cmp.Or(e.Attention, g.Attention), cmp.Or(e.KVReading, g.KVReading)
	g.Link = cmp.Or(e.LinkGBps*1e9, g.Link)
	if m.Heads%p.TP != 0 {
		return nil, &conf.Problem{Path: "tp", Text: fmt.Sprintf("must divide the %d attention heads of %s, not %d", m.Heads, m.Name, p.TP)}
	}
	r := &Roofline{Model: m, GPU: g, TP: p.TP, Weight: 2, KV: 2, Host: host}
	if p.Dtype == "fp8" {
		if !g.FP8 {
			return nil, &conf.Problem{Path: "dtype", Text: fmt.Sprintf("must be bf16 on %s, which has no FP8 units", g.Name)}
		}
		r.Weight = 1
	}
	if p.KVDtype == "fp8" {
		r.KV = 1
	}
	r.prepare()
	return r, nil
}

func (p *plan) blocksFor(tokens int) int { return (tokens + p.blockSize - 1) / p.blockSize }

// drafts is the largest number of drafted tokens of a step.
func (p *plan) drafts() int {
	if p.Speculation == nil {
		return 0
	}
	return p.Speculation.Gamma
}

// fits says whether a request can ever be served.
func (p *plan) fits(r *Request) error {
	unfit := func(format string, args ...any) error {
		return &UnfitError{r.Index, r.Prompt, r.Output, fmt.Sprintf(format, args...)}
	}
	if r.Prompt < 1 || r.Output < 1 {
		return unfit("a prompt and an answer have at least one token each")
	}
	if r.Prompt > math.MaxInt32 || r.Output > math.MaxInt32 {
		return unfit("lengths go up to %d tokens", math.MaxInt32)
	}
	total := r.Prompt + r.Output
	if p.MaxModelLen > 0 && total > p.MaxModelLen {
		return unfit("together they exceed max_model_len, %d tokens", p.MaxModelLen)
	}
	if most := p.blocks - p.watermark; p.blocksFor(total+p.drafts()) > most {
		more := "give the system more GPUs (tp), or a larger memory.fraction"
		if p.Memory.Tokens > 0 {
			more = "or give the system a larger memory.tokens"
		}
		return unfit("memory has room for %d tokens in one request: shorten it, %s", most*p.blockSize, more)
	}
	return nil
}
