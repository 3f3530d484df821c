package experiment

import (
	"math"
	"strconv"
	"strings"

	"fermata/recording"
)

// figures are those that servers tell of themselves on a Prometheus page: names by
// server, newer ones first. Counters are written with and without "_total".
var figures = []struct {
	server  string
	running []string // whose presence tells the server
	of      func(s *recording.Sample) []figure
}{
	{"vllm", []string{"vllm:num_requests_running"}, func(s *recording.Sample) []figure {
		return []figure{
			{&s.ServerWaiting, []string{"vllm:num_requests_waiting"}, false},
			{&s.ServerKV, []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}, true},
			{&s.ServerPreemptions, []string{"vllm:num_preemptions"}, false},
			{&s.ServerPrefixQueries, []string{"vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"}, false},
			{&s.ServerPrefixHits, []string{"vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"}, false},
		}
	}},
	{"llama.cpp", []string{"llamacpp:requests_processing"}, func(s *recording.Sample) []figure {
		return []figure{
			{&s.ServerWaiting, []string{"llamacpp:requests_deferred"}, false},
			{&s.ServerKV, []string{"llamacpp:kv_cache_usage_ratio"}, true},
		}
	}},
	{"sglang", []string{"sglang:num_running_reqs"}, func(s *recording.Sample) []figure {
		return []figure{
			{&s.ServerWaiting, []string{"sglang:num_queue_reqs"}, false},
			{&s.ServerKV, []string{"sglang:token_usage"}, true},
			{&s.ServerPreemptions, []string{"sglang:num_retracted_reqs"}, false},
			{&s.ServerPrefixShare, []string{"sglang:cache_hit_rate"}, true},
		}
	}},
	{"tgi", []string{"tgi_batch_current_size"}, func(s *recording.Sample) []figure {
		return []figure{{&s.ServerWaiting, []string{"tgi_queue_size"}, false}}
	}},
}

// A figure is where a value belongs and by which names it is told. Over several
// series of one name (models, engines) it is the sum, or the mean of a share.
type figure struct {
	into  **float64
	names []string
	share bool
}

// serverFigures fills in what a Prometheus page says; false if it is of no server
// whose names are known.
func serverFigures(page []byte, s *recording.Sample) bool {
	values := prometheus(string(page))
	for _, f := range figures {
		running := figure{&s.ServerRunning, f.running, false}
		if !running.fill(values) {
			continue
		}
		name := f.server
		s.Server = &name
		for _, one := range f.of(s) {
			one.fill(values)
		}
		return true
	}
	return false
}

func (f figure) fill(values map[string][]float64) bool {
	for _, name := range f.names {
		all := values[name]
		if all == nil {
			all = values[name+"_total"]
		}
		if all == nil {
			continue
		}
		sum := 0.0
		for _, v := range all {
			sum += v
		}
		if f.share {
			sum /= float64(len(all))
		}
		*f.into = &sum
		return true
	}
	return false
}

// prometheus reads the text format: the finite values of each name, whatever the
// labels.
func prometheus(page string) map[string][]float64 {
	values := map[string][]float64{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, "{ \t")
		if end <= 0 {
			continue
		}
		name, rest := line[:end], line[end:]
		if rest[0] == '{' {
			if rest = afterLabels(rest); rest == "" {
				continue
			}
		}
		fields := strings.Fields(rest) // the value, and perhaps a time
		if len(fields) == 0 {
			continue
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values[name] = append(values[name], v)
		}
	}
	return values
}

// afterLabels is what follows {name="value",…}; values may hold } and, behind a
// backslash, quotes.
func afterLabels(s string) string {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return s[i+1:]
		}
	}
	return ""
}
