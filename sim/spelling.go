package sim

import (
	"path/filepath"
	"strings"

	"fermata/internal/conf"
)

// Aliases are options by the names that vLLM's flags have, for files that begin
// as somebody's command line.
type Aliases struct {
	TensorParallelSize   int     `yaml:"tensor_parallel_size"`
	KVCacheDtype         string  `yaml:"kv_cache_dtype"`
	GPUMemoryUtilization float64 `yaml:"gpu_memory_utilization"`
	BlockSize            int     `yaml:"block_size"`
	MaxNumSeqs           int     `yaml:"max_num_seqs"`
	MaxNumBatchedTokens  int     `yaml:"max_num_batched_tokens"`
	LongPrefillThreshold int     `yaml:"long_prefill_token_threshold"`
	SchedulingPolicy     string  `yaml:"scheduling_policy"`
	EnablePrefixCaching  bool    `yaml:"enable_prefix_caching"`
	DataParallelSize     int     `yaml:"data_parallel_size"`
}

// Into puts aliases that were given into o. Has says whether a file has a key; one
// that is given under both names is a problem.
func (a *Aliases) Into(o *Options, has func(path string) bool) []conf.Problem {
	c := &check{}
	for _, one := range []struct {
		alias, path string
		set         func()
	}{
		{"tensor_parallel_size", "tp", func() { o.TP = a.TensorParallelSize }},
		{"kv_cache_dtype", "kv_dtype", func() { o.KVDtype = strings.TrimSuffix(a.KVCacheDtype, "_e4m3") }},
		{"gpu_memory_utilization", "memory.fraction", func() { o.Memory.Fraction = a.GPUMemoryUtilization }},
		{"block_size", "memory.block_size", func() { o.Memory.BlockSize = a.BlockSize }},
		{"max_num_seqs", "scheduler.max_num_seqs", func() { o.Scheduler.MaxNumSeqs = a.MaxNumSeqs }},
		{"max_num_batched_tokens", "scheduler.max_num_batched_tokens", func() { o.Scheduler.MaxNumBatchedTokens = a.MaxNumBatchedTokens }},
		{"long_prefill_token_threshold", "scheduler.long_prefill_threshold", func() { o.Scheduler.LongPrefill = a.LongPrefillThreshold }},
		{"scheduling_policy", "scheduler.order", func() { o.Scheduler.Order = a.SchedulingPolicy }},
		{"enable_prefix_caching", "prefix_cache", func() { o.PrefixCache = a.EnablePrefixCaching }},
		{"data_parallel_size", "replicas", func() { o.Replicas = a.DataParallelSize }},
	} {
		switch {
		case !has(one.alias):
		case has(one.path):
			c.add(one.alias, "is %s, which is given too: remove one of them", one.path)
		default:
			one.set()
		}
	}
	return c.problems
}

// In is o with the paths of its files taken from a folder.
func (o Options) In(dir string) Options {
	return o.Paths(func(path string) string {
		if dir == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	})
}

// Paths is o with the paths of its files changed.
func (o Options) Paths(change func(path string) string) Options {
	from := func(path string) string {
		if path == "" {
			return path
		}
		return change(path)
	}
	model := func(name string) string {
		if strings.HasSuffix(name, ".json") || strings.ContainsRune(name, filepath.Separator) {
			return from(name)
		}
		return name
	}
	o.Model, o.Cost.Fitted = model(o.Model), from(o.Cost.Fitted)
	if o.Speculation != nil {
		s := *o.Speculation
		s.Draft = model(s.Draft)
		o.Speculation = &s
	}
	return o
}
