package serve

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"fermata/sim"
)

// vllmMetrics are what a simulator tells of itself, under vLLM's names and with
// its buckets, in simulated seconds.
type vllmMetrics struct {
	labels string

	mu                                                           sync.Mutex
	running, waiting                                             int
	usage                                                        float64
	preemptions, queries, hits, prompts, tokens, length, aborted int64
	ttft, itl, e2e, queue, prefill, decode                       *histogram
	promptTokens, outputTokens, iterationTokens                  *histogram
}

var (
	firstBuckets   = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenBuckets   = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBuckets = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	sizeBuckets    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
	batchBuckets   = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

func newVLLMMetrics(model string) *vllmMetrics {
	h := func(buckets []float64) *histogram {
		return &histogram{buckets: buckets, counts: make([]int64, len(buckets)+1)}
	}
	return &vllmMetrics{
		labels: `engine="0",model_name=` + strconv.Quote(model),
		ttft:   h(firstBuckets), itl: h(tokenBuckets), e2e: h(requestBuckets), queue: h(requestBuckets), prefill: h(requestBuckets), decode: h(requestBuckets),
		promptTokens: h(sizeBuckets), outputTokens: h(sizeBuckets), iterationTokens: h(batchBuckets),
	}
}

// A histogram is one of Prometheus's.
type histogram struct {
	buckets []float64
	counts  []int64
	sum     float64
}

func (h *histogram) add(v float64) {
	i := 0
	for i < len(h.buckets) && v > h.buckets[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
}

func (h *histogram) seconds(ns int64) { h.add(float64(ns) / 1e9) }

// state takes what the instances hold at the moment.
func (m *vllmMetrics) state(all []sim.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running, m.waiting, m.usage = 0, 0, 0
	held, blocks := 0, 0
	for _, s := range all {
		m.running += s.Running
		m.waiting += s.Waiting
		held += s.BlocksAll - s.BlocksFree
		blocks += s.BlocksAll
	}
	if blocks > 0 {
		m.usage = float64(held) / float64(blocks)
	}
}

func (m *vllmMetrics) iteration(it *sim.Iteration) {
	tokens := it.Decodes
	for i := range it.Chunks {
		tokens += it.Chunks[i].Tokens
	}
	m.mu.Lock()
	m.iterationTokens.add(float64(tokens))
	m.mu.Unlock()
}

// emitted takes tokens of an answer; l still has the time of those before.
func (m *vllmMetrics) emitted(l *stream, e *sim.Emission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens += int64(e.Tokens)
	if e.First {
		m.ttft.seconds(e.At - l.request.Arrival)
		return
	}
	m.itl.seconds(e.At - l.last)
}

// ended takes a request that has ended.
func (m *vllmMetrics) ended(r *sim.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.preemptions += int64(r.Evictions)
	if r.FirstScheduled >= 0 {
		m.prompts += int64(r.Request.Prompt)
		m.queries += int64(r.Request.Prompt)
		m.hits += int64(r.Cached)
	}
	if r.Ending != sim.Finished {
		m.aborted++
		return
	}
	m.length++
	m.e2e.seconds(r.End - r.Request.Arrival)
	m.queue.seconds(r.FirstScheduled - r.Request.Arrival)
	m.prefill.seconds(r.PrefillEnd - r.FirstScheduled)
	m.decode.seconds(r.End - r.PrefillEnd)
	m.promptTokens.add(float64(r.Request.Prompt))
	m.outputTokens.add(float64(len(r.Tokens)))
}

// write writes everything in Prometheus's text format.
func (m *vllmMetrics) write(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	one := func(kind, name, help, more string, value float64) {
		fmt.Fprintf(&b, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\nvllm:%s{%s%s} %s\n", name, help, name, kind, name, m.labels, more, strconv.FormatFloat(value, 'g', -1, 64))
	}
	one("gauge", "num_requests_running", "Requests in execution batches.", "", float64(m.running))
	one("gauge", "num_requests_waiting", "Requests that wait to be processed.", "", float64(m.waiting))
	one("gauge", "kv_cache_usage_perc", "Share of the room for keys and values that is held; 1 is all.", "", m.usage)
	one("gauge", "gpu_cache_usage_perc", "The same under its older name.", "", m.usage)
	one("counter", "num_preemptions_total", "Evictions of ended requests.", "", float64(m.preemptions))
	one("counter", "prefix_cache_queries_total", "Prompt tokens that were looked up.", "", float64(m.queries))
	one("counter", "prefix_cache_hits_total", "Prompt tokens that were cached.", "", float64(m.hits))
	one("counter", "prompt_tokens_total", "Prompt tokens of ended requests.", "", float64(m.prompts))
	one("counter", "generation_tokens_total", "Tokens generated.", "", float64(m.tokens))
	one("counter", "request_success_total", "Requests that ended well.", `,finished_reason="length"`, float64(m.length))
	fmt.Fprintf(&b, "vllm:request_success_total{%s,finished_reason=\"abort\"} %d\n", m.labels, m.aborted)
	for _, h := range []struct {
		name, help string
		*histogram
	}{
		{"time_to_first_token_seconds", "From arrival to the first token.", m.ttft},
		{"inter_token_latency_seconds", "Between tokens; those of one step count once.", m.itl},
		{"time_per_output_token_seconds", "The same under its older name.", m.itl},
		{"e2e_request_latency_seconds", "From arrival to the end.", m.e2e},
		{"request_queue_time_seconds", "From arrival to the first iteration.", m.queue},
		{"request_prefill_time_seconds", "From there to the first token.", m.prefill},
		{"request_decode_time_seconds", "From there to the end.", m.decode},
		{"request_prompt_tokens", "Prompt tokens of requests that ended well.", m.promptTokens},
		{"request_generation_tokens", "Tokens of their answers.", m.outputTokens},
		{"iteration_tokens_total", "Tokens of an iteration.", m.iterationTokens},
	} {
		fmt.Fprintf(&b, "# HELP vllm:%s %s\n# TYPE vllm:%s histogram\n", h.name, h.help, h.name)
		sum := int64(0)
		for i, n := range h.counts {
			sum += n
			bound := "+Inf"
			if i < len(h.buckets) {
				bound = strconv.FormatFloat(h.buckets[i], 'g', -1, 64)
			}
			fmt.Fprintf(&b, "vllm:%s_bucket{%s,le=%q} %d\n", h.name, m.labels, bound, sum)
		}
		fmt.Fprintf(&b, "vllm:%s_sum{%s} %s\nvllm:%s_count{%s} %d\n", h.name, m.labels, strconv.FormatFloat(h.sum, 'g', -1, 64), h.name, m.labels, sum)
	}
	io.WriteString(w, b.String()) // an error is the scraper's having left
}
