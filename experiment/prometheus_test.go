package experiment

import (
	"math"
	"testing"

	"fermata/recording"
)

// Pages in the words of the four servers.
func TestServerFigures(t *testing.T) {
	of := func(v *float64) float64 {
		if v == nil {
			return -1
		}
		return *v
	}
	for _, c := range []struct {
		name, page string
		server     string
		want       [7]float64 // running, waiting, cache, preemptions, queries, hits, share; -1 where nothing is told
	}{
		{"vLLM, two engines", `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } \"b\""} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_preemptions_total{engine="0",model_name="m"} 5.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1.2e+03
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 300 1700000000000
vllm:num_preemptions_created{engine="0"} 1.7e9
`, "vllm", [7]float64{7, 1, 0.5, 5, 1200, 300, -1}},
		{
			"older vLLM", "vllm:num_requests_running 2\nvllm:gpu_cache_usage_perc 0.5\nvllm:num_preemptions 1\nvllm:gpu_prefix_cache_queries 8\nvllm:gpu_prefix_cache_hits 4\n",
			"vllm",
			[7]float64{2, -1, 0.5, 1, 8, 4, -1},
		},
		{
			"llama.cpp", "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 4\nllamacpp:requests_deferred 2\nllamacpp:n_decode_total 77\r\n",
			"llama.cpp",
			[7]float64{4, 2, -1, -1, -1, -1, -1},
		},
		{
			"SGLang", "sglang:num_running_reqs{tp_rank=\"0\"} 6\nsglang:num_queue_reqs 1\nsglang:token_usage 0.125\nsglang:cache_hit_rate 0.5\nsglang:num_retracted_reqs NaN\n",
			"sglang",
			[7]float64{6, 1, 0.125, -1, -1, -1, 0.5},
		},
		{"TGI", "tgi_batch_current_size 5\ntgi_queue_size 9\n", "tgi", [7]float64{5, 9, -1, -1, -1, -1, -1}},
		{"another server", "process_cpu_seconds_total 1\n", "", [7]float64{-1, -1, -1, -1, -1, -1, -1}},
		{"no page", "<html>{}{{{\n{\nvllm:num_requests_running{ 3\nvllm:num_requests_running\n", "", [7]float64{-1, -1, -1, -1, -1, -1, -1}},
	} {
		var s recording.Sample
		ok := serverFigures([]byte(c.page), &s)
		got := [7]float64{of(s.ServerRunning), of(s.ServerWaiting), of(s.ServerKV), of(s.ServerPreemptions), of(s.ServerPrefixQueries), of(s.ServerPrefixHits), of(s.ServerPrefixShare)}
		if ok != (c.server != "") || ok && *s.Server != c.server {
			t.Errorf("%s: %v, %v", c.name, ok, s.Server)
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

func FuzzServerFigures(f *testing.F) {
	f.Add("vllm:num_requests_running{a=\"b\\\"}\"} 3.0\n")
	f.Add("x{} \n{")
	f.Fuzz(func(t *testing.T, page string) {
		var s recording.Sample
		serverFigures([]byte(page), &s)
		for _, v := range []*float64{s.ServerRunning, s.ServerWaiting, s.ServerKV} {
			if v != nil && math.IsNaN(*v) {
				t.Errorf("%q gives a figure that is no number", page)
			}
		}
	})
}
