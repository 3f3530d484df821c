package sim

import "fermata/internal/conf"

// Zeros finds zeros that somebody wrote where 0 is the sign that nothing was said,
// and would run as the default. Has says whether a file has a key, under either of
// its names.
func (o *Options) Zeros(has func(path string) bool) []conf.Problem {
	c := &check{}
	zero := func(path string, is bool) {
		for _, name := range []string{path, aliasOf[path]} {
			if is && name != "" && has(name) {
				c.add(name, "must be more than 0; leave it out for the default")
			}
		}
	}
	none := func(v float64) bool { return !(v > 0 || v < 0) }
	zero("tp", o.TP == 0)
	zero("max_model_len", o.MaxModelLen == 0)
	zero("replicas", o.Replicas == 0)
	zero("queue_limit", o.QueueLimit == 0)
	zero("efficiency.compute", none(o.Efficiency.Compute))
	zero("efficiency.streaming", none(o.Efficiency.Streaming))
	zero("efficiency.attention", none(o.Efficiency.Attention))
	zero("efficiency.kv_reading", none(o.Efficiency.KVReading))
	zero("efficiency.link_gbps", none(o.Efficiency.LinkGBps))
	zero("memory.fraction", none(o.Memory.Fraction))
	zero("memory.tokens", o.Memory.Tokens == 0)
	zero("memory.block_size", o.Memory.BlockSize == 0)
	zero("scheduler.max_num_seqs", o.Scheduler.MaxNumSeqs == 0)
	zero("scheduler.max_num_batched_tokens", o.Scheduler.MaxNumBatchedTokens == 0)
	zero("scheduler.chunk", o.Scheduler.Chunk == 0)
	zero("scheduler.chunk_low", o.Scheduler.ChunkLow == 0)
	if h := o.Hiccup; h != nil {
		zero("hiccup.shape", none(h.Shape))
	}
	if s := o.Speculation; s != nil {
		zero("speculation.beta", none(s.Beta))
		zero("speculation.off_above", s.OffAbove == 0)
	}
	if d := o.Disaggregation; d != nil {
		zero("disaggregation.prefill", d.Prefill == 0)
		zero("disaggregation.decode", d.Decode == 0)
		zero("disaggregation.bandwidth_gbps", none(d.Bandwidth))
	}
	return c.problems
}

// aliasOf has the name that vLLM's flag gives an option that cannot be 0.
var aliasOf = map[string]string{
	"tp":                               "tensor_parallel_size",
	"replicas":                         "data_parallel_size",
	"memory.fraction":                  "gpu_memory_utilization",
	"memory.block_size":                "block_size",
	"scheduler.max_num_seqs":           "max_num_seqs",
	"scheduler.max_num_batched_tokens": "max_num_batched_tokens",
}
