package spec

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/internal/conf"
)

func TestFiveMistakes(t *testing.T) {
	data, err := os.ReadFile("testdata/five.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/five.golden")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Read("five.yaml", data, nil)
	var mistakes conf.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) != 5 {
		t.Fatalf("not five mistakes:\n%v", err)
	}
	// A line that ends in … leaves the rest of the sentence to the room.
	for i, want := range strings.Split(strings.TrimSpace(string(golden)), "\n") {
		got := mistakes[i].Error()
		if prefix, open := strings.CutSuffix(want, "…"); open && strings.HasPrefix(got, prefix) && len(got) > len(prefix) {
			continue
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

const base = "target: {url: 'http://h:1'}\nschedule: {rate: 4}\n"

func read(t *testing.T, file string, sets ...conf.Setting) *Run {
	t.Helper()
	r, err := Read("run.yaml", []byte(file), sets)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDefaults(t *testing.T) {
	const want = `target:
  url: http://h:1
  api: chat
workload:
  input: '512'
  output: '128'
schedule:
  kind: poisson
  rate: 4
  requests: 100
  warmup: 10%
  drain: load
load:
  timeout: 10m
  silence_timeout: 1m
judge:
  target_gap: [25ms, 50ms, 100ms]
  pace: 6
  verdict: interval
expect: any
record:
  keep_text: false
seed: 1
`
	if diff := cmp.Diff(want, string(read(t, base+"\nseed: 1\n").YAML())); diff != "" {
		t.Error(diff)
	}
}

// Without a seed every run asks something else, lest a prefix cache answer.
func TestSeedIsFresh(t *testing.T) {
	seeds := map[uint64]bool{}
	for range 20 {
		seeds[read(t, base).Seed] = true
	}
	if len(seeds) < 10 {
		t.Errorf("20 runs have the seeds %v", seeds)
	}
}

func TestDefaultsFollow(t *testing.T) {
	dataset := filepath.Join(t.TempDir(), "prompts.jsonl")
	if err := os.WriteFile(dataset, []byte(`{"prompt": "a"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, settings, want string }{
		{"closed", "schedule.concurrency=8", "kind: closed\n  concurrency: 8\n  requests: 100\n  warmup: 10%\n  drain: load\n"},
		{"long", "schedule.rate=4 schedule.requests=5000", "requests: 5000\n  warmup: \"200\"\n"},
		{"by time", "schedule.rate=4 schedule.duration=1m", "rate: 4\n  duration: 1m\n  drain: load\n"},
		{"all", "schedule.kind=all", "kind: all\n  requests: 100\n  warmup: \"0\"\n  drain: quiet\n"},
		{"given", "schedule.kind=times.csv", "kind: given\n  file: times.csv\n  warmup: \"0\"\n  drain: quiet\n"},
		{"data set decides", "workload.dataset=" + dataset, "workload:\n  dataset: " + dataset + "\nload:\n"},
		{"url says completions", "schedule.rate=1 target.url=http://h/v1/completions", "api: completions\n"},
		{"seed 0", "schedule.rate=1 seed=0", "seed: 0\n"},
		{"ramp", "schedule.ramp.to=8 schedule.ramp.over=90s", "kind: poisson\n  ramp:\n    from: 0\n    to: 8\n    over: 1m30s\n  duration: 1m30s\n  warmup: \"0\"\n  drain: load\n"},
		{"ramp after warm-up", "schedule.ramp.to=8 schedule.ramp.over=1m schedule.warmup=15s", "duration: 45s\n  warmup: 15s\n"},
		{"steps", "schedule.steps[0].rate=2 schedule.steps[0].for=50s schedule.steps[1].rate=8 schedule.steps[1].for=60s schedule.warmup=10%", "duration: 1m40s\n  warmup: 10%\n"},
		{"gamma", "schedule.rate=4 schedule.burstiness=0.25", "kind: gamma\n  rate: 4\n  burstiness: 0.25\n  requests: 100\n"},
		{"weibull", "schedule.rate=4 schedule.shape=2", "kind: weibull\n  rate: 4\n  shape: 2\n"},
		{"think", "schedule.concurrency=2 schedule.think=2s", "kind: closed\n  concurrency: 2\n  think: 2s\n"},
		{"speedup", "schedule.file=times.csv schedule.speedup=2", "kind: given\n  file: times.csv\n  speedup: 2\n  warmup: \"0\"\n"},
		{"speedup of a data set", "schedule.speedup=2 workload.dataset=" + dataset, "schedule:\n  speedup: 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sets := []conf.Setting{{Path: "target.url", Value: "http://h:1"}}
			for _, s := range strings.Fields(c.settings) {
				set, err := Set(s)
				if err != nil {
					t.Fatal(err)
				}
				sets = append(sets, set)
			}
			r, err := Read("", nil, sets)
			if err != nil {
				t.Fatal(err)
			}
			// Which quotes the YAML writer prefers is its own business.
			if got := strings.ReplaceAll(string(r.YAML()), "'", `"`); !strings.Contains(got, c.want) {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		})
	}
}

// roundTrip has a value other than the default for every key that may be saved.
var roundTrip = map[string]string{
	"name":                   "night run",
	"target.url":             "https://api.example.com/v1",
	"target.model":           "1.10",
	"target.api":             "completions",
	"target.transport":       "compatible",
	"target.body":            "{temperature: 0.5, stop: [\"1\", x], n: 1, deep: {yes: true, none: null}}",
	"target.api_key_env":     "KEY",
	"target.api_key_file":    "key.txt",
	"target.headers_env":     "{X-Team: TEAM}",
	"workload.input":         "1",
	"workload.output":        "7",
	"workload.dataset":       "testdata/prompts.jsonl",
	"workload.once":          "true",
	"workload.lengths":       "lmsys",
	"workload.format":        "fermata",
	"workload.skip_bad":      "true",
	"workload.min_input":     "2",
	"workload.max_input":     "600",
	"workload.min_output":    "2",
	"workload.max_output":    "200",
	"workload.max_total":     "700",
	"workload.turns":         "3",
	"workload.session_share": "0.3",
	"workload.prefix":        "{tokens: 512, groups: 4, share: 0.8}",
	"schedule.kind":          "constant",
	"schedule.file":          "times.csv",
	"schedule.rate":          "0.125",
	"schedule.speedup":       "2.5",
	"schedule.ramp":          "{from: 0, to: 8, over: 1m30s}",
	"schedule.steps":         "[{rate: 2, for: 20s}, {rate: 0, for: 1m}, {rate: 0.5}]",
	"schedule.burst":         "{rate: 40, every: 1m, for: 5s}",
	"schedule.burstiness":    "0.25",
	"schedule.shape":         "0.7",
	"schedule.concurrency":   "3",
	"schedule.think":         "exponential:2s",
	"schedule.streams":       "8",
	"schedule.at_least":      "10m",
	"schedule.requests":      "12345",
	"schedule.duration":      "1m30s",
	"schedule.warmup":        "30s",
	"schedule.drain":         "quiet",
	"load.max_in_flight":     "9",
	"load.timeout":           "1h",
	"load.silence_timeout":   "1500ms",
	"load.stop_if_failed":    "50%",
	"targets":                `[{name: a, url: "http://h:1", model: m}, {name: "b c", weight: 2, url: "http://h:2/v1/completions", headers_env: {X-Team: TEAM}}]`,
	"interleave":             "block",
	"load.stop_at_precision": `["ttft.p99<=5%"]`,
	"load.max_cost":          "2.50",
	"prices":                 `{currency: USD, date: 2026-08-01, source: list, models: {one: {m: {tokens: {input_per_million: "0.50", output_per_million: "1.50"}}, own: {gpu: {count: 8, per_hour: "2.50"}}}}}`,
	"load.retries":           "2",
	"load.wait_ready":        "2m",
	"load.time_scale":        "10",
	"load.probe_saturation":  "true",
	"slo":                    `["ttft<=2s and tbt.p99<=100ms @99%", "e2e<=20s"]`,
	"judge.target_gap":       "[20.833334ms, 1s]",
	"judge.pace":             "7.5",
	"judge.deadlines":        "fixed:300ms",
	"judge.over":             "[25s, 1h]",
	"judge.slow":             "30s",
	"judge.saturation":       "9.5",
	"judge.verdict":          "point",
	"judge.provider":         "one",
	"judge.capacity":         `{objective: "ttft<=2s @99%", rps: 4.5, low: 4, high: 5, tokens_per_s: 900}`,
	"judge.utilisation":      "0.6",
	"judge.billed_failures":  "0",
	"mlperf.scenario":        "server",
	"mlperf.benchmark":       "llama2-70b",
	"mlperf.ttft":            "1s",
	"mlperf.tpot":            "30ms",
	"mlperf.latency":         "12s",
	"mlperf.min_duration":    "1m",
	"mlperf.min_queries":     "300",
	"expect":                 "stop",
	"check":                  `regex:^{"a": \d+}`,
	"record.keep_text":       "true",
	"record.scrape":          "http://h:9/metrics",
	"connect.http2":          "true",
	"connect.proxy":          "http://proxy:3128",
	"connect.insecure":       "true",
	"connect.ca_file":        "testdata/ca.pem",
	"connect.unix_socket":    "/run/server.sock",
	"labels":                 `{gpu: H100, k8s.io/x: "true", date: 2026-01-02, text: "a: b # c"}`,
	"seed":                   "18446744073709551615",
}

func TestEveryKeyRoundTrips(t *testing.T) {
	for _, key := range conf.Keys(Run{}) {
		if key == "target.headers" { // never saved: TestNothingSecretIsSaved
			continue
		}
		value, ok := roundTrip[key]
		if !ok {
			t.Errorf("%s: no value to test with", key)
			continue
		}
		sets := []conf.Setting{{Path: "target.url", Value: "http://h:1"}}
		if key == "interleave" || key == "targets" {
			sets[0] = conf.Setting{Path: "targets", Value: "[{name: a, url: 'http://h:1'}]"}
		}
		if key == "connect.insecure" {
			sets[0].Value = "https://h:1"
		}
		switch key {
		case "schedule.rate", "schedule.file", "schedule.concurrency", "schedule.ramp":
		case "schedule.steps":
			sets = append(sets, conf.Setting{Path: "schedule.duration", Value: "30s"})
		case "schedule.speedup":
			sets = append(sets, conf.Setting{Path: "schedule.file", Value: "times.csv"})
		case "schedule.think", "schedule.streams":
			sets = append(sets, conf.Setting{Path: "schedule.concurrency", Value: "3"})
		case "workload.session_share":
			sets = append(sets, conf.Setting{Path: "workload.turns", Value: "3"}, conf.Setting{Path: "schedule.rate", Value: "4"})
		case "mlperf.scenario", "mlperf.benchmark", "mlperf.ttft", "mlperf.tpot", "mlperf.latency", "mlperf.min_duration", "mlperf.min_queries":
			sets = append(sets, conf.Setting{Path: "mlperf.scenario", Value: "interactive"},
				conf.Setting{Path: "mlperf.benchmark", Value: "llama3.1-8b"}, conf.Setting{Path: "schedule.rate", Value: "4"})
		case "load.max_cost":
			sets = append(sets, conf.Setting{Path: "prices", Value: roundTrip["prices"]}, conf.Setting{Path: "schedule.rate", Value: "4"})
		case "load.stop_at_precision":
			sets = append(sets, conf.Setting{Path: "schedule.requests", Value: "30000"}, conf.Setting{Path: "schedule.rate", Value: "4"})
		case "judge.provider", "judge.capacity", "judge.utilisation", "judge.billed_failures":
			sets = append(sets, conf.Setting{Path: "prices", Value: roundTrip["prices"]}, conf.Setting{Path: "schedule.rate", Value: "4"})
		case "workload.once", "workload.format", "workload.skip_bad":
			sets = append(sets, conf.Setting{Path: "workload.dataset", Value: roundTrip["workload.dataset"]})
			fallthrough
		default:
			sets = append(sets, conf.Setting{Path: "schedule.rate", Value: "4"})
		}
		without := slices.Clone(sets)
		if key != "schedule.speedup" && key != "schedule.think" && key != "schedule.streams" {
			without = append(without, conf.Setting{Path: "schedule.rate", Value: "4"})
		}
		plain, err := Read("", nil, without)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Read("", nil, append(sets, conf.Setting{Path: key, Value: value}))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if cmp.Equal(plain, r) {
			t.Errorf("%s: %s changes nothing", key, value)
		}
		back, err := Read("saved.yaml", r.YAML(), nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", key, err, r.YAML())
			continue
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"money without prices", "target: {url: 'http://h'}\nschedule: {rate: 1}\nload: {max_cost: 2}", "f:3:18: load.max_cost: needs prices: give a file of them with prices"},
		{"money", "target: {url: 'http://h'}\nschedule: {rate: 1}\nload: {max_cost: $2}\nprices: {currency: USD, date: 2026-08-01, source: x, tokens: {input_per_million: 1, output_per_million: 2}}", `f:3:18: load.max_cost: must be an amount such as 2.50, not "$2"`},
		{"capacity without prices", "target: {url: 'http://h'}\nschedule: {rate: 1}\njudge: {utilisation: 0.5}", "f:3:22: judge.utilisation: says something only beside prices: give a file of them with prices (--prices)"},
		{"utilisation of tokens", "target: {url: 'http://h'}\nschedule: {rate: 1}\njudge: {utilisation: 0.5}\nprices: {currency: USD, date: 2026-08-01, source: x, tokens: {input_per_million: 1, output_per_million: 2}}", "f:3:22: judge.utilisation: is for GPUs, which are paid when idle, and these prices are by the token: leave it out"},
		{"utilisation", "target: {url: 'http://h'}\nschedule: {rate: 1}\njudge: {utilisation: 60}\nprices: {currency: USD, date: 2026-08-01, source: x, gpu: {count: 1, per_hour: 2}}", "f:3:22: judge.utilisation: must be a share above 0 and at most 1, such as 0.6, not 60"},
		{"failures of hours", "target: {url: 'http://h'}\nschedule: {rate: 1}\njudge: {billed_failures: 1}\nprices: {currency: USD, date: 2026-08-01, source: x, gpu: {count: 1, per_hour: 2}}", "f:3:26: judge.billed_failures: is for prices by the token, or beside a capacity: the hours of a run pay for its failures already"},
		{"no capacity", "target: {url: 'http://h'}\nschedule: {rate: 1}\njudge: {capacity: none.json}\nprices: {currency: USD, date: 2026-08-01, source: x, gpu: {count: 1, per_hour: 2}}", "f:3:19: judge.capacity: cannot be read: open none.json: no such file or directory"},
		{"no prices", "target: {url: 'http://h'}\nschedule: {rate: 1}\nprices: none.yaml", "f:3:9: prices: cannot be read: open none.yaml: no such file or directory"},
		{"precision", "target: {url: 'http://h'}\nschedule: {rate: 1, requests: 900}\nload: {stop_at_precision: [tbt.p99<=5%]}", `f:3:28: load.stop_at_precision[0]: must be a percentile with the width of its interval, such as ttft.p99<=5%: "tbt" is not among ttft, ttft_sent, tpot, token_pace, normlat, e2e, even_gap, gap.longest`},
		{"precision without end", "target: {url: 'http://h'}\nschedule: {rate: 1}\nload: {stop_at_precision: [ttft.p50<=5%]}", "f:3:8: load.stop_at_precision: needs the most that the run may take, should the precision not come: give requests or duration"},
		{"no url", "schedule: {rate: 1}", "f:1:1: target.url: must be given: where the server is, such as http://127.0.0.1:8000"},
		{"scheme", "target: {url: 'ws://h'}\nschedule: {rate: 1}", `f:1:15: target.url: must begin with http:// or https://, not "ws://"`},
		{"no host", "target: {url: 'http://:80'}\nschedule: {rate: 1}", "f:1:15: target.url: names no host; write one, such as http://127.0.0.1:8000"},
		{"fragment", "target: {url: 'http://h/#x'}\nschedule: {rate: 1}", "f:1:15: target.url: has a part after #, which servers never see; leave it out"},
		{"password in a bad url", "target: {url: 'http://u:hunter2@h:x y'}\nschedule: {rate: 1}", "f:1:15: target.url: is not a URL, such as http://127.0.0.1:8000"},
		{"key by value", "target: {url: 'http://h', api_key: sk-1}\nschedule: {rate: 1}", `f:1:27: target.api_key: unknown key "api_key"; did you mean "api_key_env"?`},
		{"key instead of variable", "target: {url: 'http://h', api_key_env: sk-1}\nschedule: {rate: 1}", "f:1:40: target.api_key_env: must be the name of an environment variable, such as OPENAI_API_KEY, never the key itself"},
		{"two keys", "target: {url: 'http://h', api_key_env: A, api_key_file: b}\nschedule: {rate: 1}", "f:1:57: target.api_key_file: is given together with api_key_env; give one of them"},
		{"api", "target: {url: 'http://h', api: grpc}\nschedule: {rate: 1}", `f:1:32: target.api: must be chat or completions, not "grpc"`},
		{"api and url", "target: {url: 'http://h/v1/completions', api: chat}\nschedule: {rate: 1}", "f:1:47: target.api: is chat, but the URL ends in /completions; change one of them"},
		{"header name", "target: {url: 'http://h', headers: {\"a\\nb\": c}}\nschedule: {rate: 1}", `f:1:45: "target.headers.a\nb": a header's name has only letters, digits and - _ . and the like, no spaces or control characters`},
		{"header value", "target: {url: 'http://h', headers: {a: \"b\\nc\"}}\nschedule: {rate: 1}", "f:1:40: target.headers.a: its value holds a line break or another control character"},
		{"header twice", "target: {url: 'http://h', headers: {a: b}, headers_env: {A: B}}\nschedule: {rate: 1}", "f:1:61: target.headers_env.A: is given twice; names of headers are the same in upper and lower case"},
		{"header and key", "target: {url: 'http://h', headers: {Authorization: b}, api_key_env: K}\nschedule: {rate: 1}", "f:1:52: target.headers.Authorization: cannot be given together with api_key_env or api_key_file, which set this header"},
		{"length header", "target: {url: 'http://h', headers: {content-length: 1}}\nschedule: {rate: 1}", "f:1:53: target.headers.content-length: cannot be given: it follows from the request"},
		{"zero rate", "target: {url: 'http://h'}\nschedule: {rate: 0}", "f:2:18: schedule.rate: must be more than 0"},
		{"fewer than no retries", base + "load: {retries: -1}", "f:3:17: load.retries: must be between 0, which means that no request is tried again, and 100, not -1"},
		{"zero time-out", base + "load: {timeout: 0}", "f:3:17: load.timeout: must be more than 0"},
		{"proxy", base + "connect: {proxy: 'h:1'}", "f:3:18: connect.proxy: must be the URL of a proxy such as http://127.0.0.1:3128 (or https, socks5), or off"},
		{"proxy removed", base + "connect: {proxy: 'http://REMOVED@h:1'}", "f:3:18: connect.proxy: its password was removed when this file was saved; give the whole URL again"},
		{"insecure", base + "connect: {insecure: true}", "f:3:21: connect.insecure: is about certificates, and no target's URL begins with https://; leave it out"},
		{"authorities", base + "connect: {ca_file: testdata/prompts.jsonl}", "f:3:20: connect.ca_file: testdata/prompts.jsonl holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"},
		{"unix url", "target: {url: 'unix:///run/s'}\nschedule: {rate: 1}", "f:1:15: target.url: must begin with http:// or https://; for a Unix socket write http://localhost, and the socket's path with --unix-socket (connect.unix_socket)"},
		{"scrape", base + "record: {scrape: yes}", "f:3:18: record.scrape: must be auto, off or a URL such as http://127.0.0.1:8000/metrics"},
		{"negative", base + "load: {silence_timeout: -1s}", "f:3:25: load.silence_timeout: must not be negative, not -1s"},
		{"in flight", base + "load: {max_in_flight: -1}", "f:3:23: load.max_in_flight: must not be negative, not -1; 0 means no limit"},
		{"stop", base + "load: {stop_if_failed: 0.5}", `f:3:24: load.stop_if_failed: must be a share of the requests such as 50%, not "0.5"`},
		{"no data", base + "workload: {dataset: testdata/none.jsonl}", "f:3:21: workload.dataset: cannot be read: stat testdata/none.jsonl: no such file or directory"},
		{"folder", base + "workload: {dataset: testdata}", "f:3:21: workload.dataset: must be a file, and testdata is a folder"},
		{"gap", base + "judge: {target_gap: [25ms, 0]}", "f:3:28: judge.target_gap[1]: must be more than 0 and at most 2400h, not 0s"},
		{"over", base + "judge: {over: [-1s]}", "f:3:16: judge.over[0]: must be more than 0 and at most 2400h, not -1s"},
		{"pace", base + "judge: {pace: -6}", "f:3:15: judge.pace: must be more than 0 tokens a second, not -6"},
		{"saturation", base + "judge: {saturation: -1}", "f:3:21: judge.saturation: must be a rate of more than 0 requests a second, not -1"},
		{"verdict", base + "judge: {verdict: maybe}", `f:3:18: judge.verdict: must be interval or point, not "maybe"`},
		{"expect", base + "expect: end", `f:3:9: expect: must be stop, length or any, not "end"`},
		{"name", base + "name: a/b", `f:3:7: name: becomes part of a folder's name, so that it cannot hold / or \ or control characters`},
		{"misplaced", base + "rate: 4", `f:3:1: rate: unknown key "rate" here; did you mean schedule.rate?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("f", []byte(c.file), nil)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// The rooms word these; here it counts that they are found, and where.
func TestRoomsMistakes(t *testing.T) {
	const target = "target: {url: 'http://h'}\n"
	for file, want := range map[string]string{
		target:                           "f:1:1: schedule.rate: ",
		target + "schedule: {rate: -1}":  "f:2:18: schedule.rate: ",
		target + "schedule: {kind: odd}": "f:2:18: schedule.kind: ",
		target + "schedule: {kind: closed, rate: 1, concurrency: 2}":                   "f:2:32: schedule.rate: ",
		target + "schedule: {rate: 1, concurrency: 2}":                                 "f:2:18: schedule.rate: ",
		target + "schedule: {kind: poisson, rate: 1, concurrency: 2}":                  "f:2:49: schedule.concurrency: ",
		target + "schedule: {rate: 1, requests: 5, duration: 1s}":                      "f:2:31: schedule.requests: ",
		base + "workload: {dataset: testdata/prompts.jsonl, input: 5}":                 "f:3:52: workload.input: ",
		base + "workload: {once: true}":                                                "f:3:18: workload.once: ",
		base + "workload: {output: -1}":                                                "f:3:20: workload.output: ",
		target + "schedule: {rate: 1, speedup: 2}":                                     "f:2:30: schedule.speedup: ",
		target + "schedule: {burstiness: 0.5}":                                         "f:2:1: schedule.rate: ",
		target + "schedule: {rate: 1, burst: {rate: 4, every: 1s, for: 2s}}":           "f:2:54: schedule.burst.for: ",
		target + "schedule: {ramp: {from: 1, to: -1, over: 1s}}":                       "f:2:32: schedule.ramp.to: ",
		target + "schedule:\n  steps:\n  - {rate: 0, for: 1s}\n  - {rate: 0, for: 1s}": "f:5:12: schedule.steps[1].rate: ",
		target + "schedule: {concurrency: 1, think: some}":                             "f:2:35: schedule.think: ",
		target + "schedule: {rate: 1, think: 2s}":                                      "f:2:28: schedule.think: is for closed loops and conversations; give concurrency, or workload.turns",
		base + "workload: {turns: 1001}":                                               "f:3:19: workload.turns: must be between 1 and 1000",
		target + "schedule: {rate: 1, drain: slow}":                                    "f:2:28: schedule.drain: ",
		base + "slo: ['fluidity.first>=0.9 gap=25ms']":                                 "f:3:7: slo[0]: fluidity.first needs deadlines",
		target + "schedule: {rate: 1, warmup: some}":                                   "f:2:29: schedule.warmup: ",
		target + "schedule: {rate: 1}\nslo:\n- ttft<=2s\n- ttft<2 parsecs":             "f:5:3: slo[1]: ",
		target + "schedule: {rate: 1}\njudge: {deadlines: 'soon:1s'}":                  "f:3:20: judge.deadlines: ",
	} {
		_, err := Read("f", []byte(file), nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\ngot  %v\nwant %s", file, err, want)
		}
	}
}

func TestSettingsOverride(t *testing.T) {
	const file = base + "load: {timeout: 1m}\nslo: [ttft<=2s]\nlabels: {gpu: A100, site: x}\n"
	values := map[string][]string{
		"timeout": {"2m"}, "slo": {"e2e<=20s", "tpot<=40ms"}, "label": {"gpu=H100", "note=a=b: c"},
		"header": {"X-A: b=c", "Accept: */*"}, "target-gap": {"10ms,20ms"}, "keep-text": {"true"}, "warmup": {"5"}, "model": {"true"},
	}
	var sets []conf.Setting
	for _, f := range Flags() {
		for _, v := range values[f.Name] {
			sets = append(sets, f.Setting(v))
		}
	}
	r := read(t, file, sets...)
	if r.Load.Timeout != 2*time.Minute || r.Schedule.Warmup != "5" || r.Target.Model != "true" || !r.Record.KeepText {
		t.Errorf("%+v", r)
	}
	for _, diff := range []string{
		cmp.Diff([]string{"ttft<=2s", "e2e<=20s", "tpot<=40ms"}, r.SLO),
		cmp.Diff(map[string]string{"gpu": "H100", "site": "x", "note": "a=b: c"}, r.Labels),
		cmp.Diff(map[string]string{"X-A": "b=c", "Accept": "*/*"}, r.Target.Headers),
		cmp.Diff([]time.Duration{10 * time.Millisecond, 20 * time.Millisecond}, r.Judging.TargetGap),
	} {
		if diff != "" {
			t.Error(diff)
		}
	}
	_, err := Read("run.yaml", []byte(base), []conf.Setting{{Path: "schedule.rate", Value: "fast", From: "--rate"}})
	if want := `--rate: schedule.rate: must be a number, not "fast"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A flag wins over the file's alternative to it.
func TestSettingsReplaceAlternatives(t *testing.T) {
	const target = "target: {url: 'http://h'}\n"
	for _, c := range []struct{ file, set, absent, present string }{
		{"schedule: {rate: 4, requests: 5}", "schedule.duration=10s", "requests:", "duration: 10s"},
		{"schedule: {rate: 4, duration: 5s}", "schedule.requests=10", "duration:", "requests: 10"},
		{"schedule: {kind: poisson, rate: 4}", "schedule.concurrency=3", "rate:", "kind: closed"},
		{"schedule: {kind: closed, concurrency: 4}", "schedule.rate=3", "concurrency:", "kind: poisson"},
		{"schedule: {kind: closed, concurrency: 4, think: 2s}", "schedule.rate=3", "think:", "kind: poisson"},
		{"schedule: {kind: closed, concurrency: 4, think: 2s}\nworkload: {turns: 3}", "schedule.rate=3", "concurrency:", "think: 2s"},
		{"schedule: {kind: gamma, rate: 4, burstiness: 0.5}", "schedule.rate=3", "rate: 4", "burstiness: 0.5"},
		{"schedule: {kind: gamma, rate: 4, burstiness: 0.5}", "schedule.kind=poisson", "burstiness:", "rate: 4"},
		{"schedule: {kind: gamma, rate: 4, burstiness: 0.5}", "schedule.concurrency=3", "burstiness:", "kind: closed"},
		{"schedule: {kind: poisson, rate: 4}", "schedule.burstiness=0.5", "poisson", "kind: gamma"},
		{"schedule: {kind: weibull, rate: 4, shape: 2}", "schedule.burstiness=0.5", "shape", "kind: gamma"},
		{"schedule: {kind: gamma, rate: 4, burstiness: 0.5}", "schedule.shape=2", "burstiness", "kind: weibull"},
		{"schedule: {kind: poisson, rate: 4, drain: load}", "schedule.file=x.csv", "rate:", "kind: given\n  file: x.csv\n  warmup"},
		{"schedule: {kind: given, file: x.csv, speedup: 2}", "schedule.rate=3", "speedup", "kind: poisson"},
		{"schedule: {rate: 4, burst: {rate: 9, every: 9s, for: 1s}}", "schedule.rate=3", "rate: 4", "burst:"},
		{"schedule: {rate: 4, burst: {rate: 9, every: 9s, for: 1s}}", "schedule.ramp={from: 1, to: 2, over: 9s}", "burst:", "ramp:"},
		{"schedule: {ramp: {from: 1, to: 2, over: 9s}}", "schedule.rate=3", "ramp:", "rate: 3"},
		{"schedule: {ramp: {from: 1, to: 2, over: 9s}}", "schedule.ramp.to=3", "to: 2", "to: 3"},
		{"schedule: {steps: [{rate: 1, for: 2s}]}", "schedule.ramp={from: 1, to: 2, over: 9s}", "steps:", "ramp:"},
		{"schedule: {rate: 4}\nworkload: {prefix: {tokens: 5}}", "workload.dataset=testdata/prompts.jsonl", "prefix:", "dataset:"},
		{"schedule: {rate: 4}\nworkload: {dataset: gone.jsonl, once: true}", "workload.input=3", "dataset:", "input: '3'"},
		{"schedule: {rate: 4}\nworkload: {dataset: gone.jsonl, skip_bad: true}", "workload.lengths=arxiv", "dataset:", "lengths: arxiv"},
		{"schedule: {rate: 4}\nworkload: {input: 3, output: 4}", "workload.lengths=arxiv", "put:", "lengths: arxiv"},
		{"schedule: {rate: 4}\nworkload: {lengths: lmsys}", "workload.output=lognormal:100,200", "lengths:", "output: lognormal:100,200"},
		{"schedule: {rate: 4}\nworkload: {input: 3}", "workload.dataset=testdata/prompts.jsonl", "input:", "dataset:"},
	} {
		s, err := Set(c.set)
		if err != nil {
			t.Fatal(err)
		}
		got := string(read(t, target+c.file, s).YAML())
		if strings.Contains(got, c.absent) || !strings.Contains(got, c.present) {
			t.Errorf("%s with %s:\n%s", c.file, c.set, got)
		}
	}
	if _, err := Set("schedule.rate"); err == nil {
		t.Error("--set without = is no mistake")
	}
}

func TestJudge(t *testing.T) {
	r := read(t, base+"slo: [ttft<=2s]\nexpect: stop\njudge: {over: [25s], slow: 30s, verdict: point, deadlines: 'fixed:300ms'}\n")
	o, err := r.Judge()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{25e6, 50e6, 100e6}, o.TargetGapsNs); diff != "" {
		t.Error(diff)
	}
	// 6 tokens a second, to the nearest ns.
	if o.PaceNs != 166_666_667 || o.SlowNs != 30e9 || len(o.OverNs) != 1 || o.OverNs[0] != 25e9 {
		t.Errorf("%+v", o)
	}
	if !o.ExpectStop || !o.PointVerdict || len(o.SLO) != 1 || o.Deadlines.First(100) != 300e6 {
		t.Errorf("%+v", o)
	}
	r.SLO, r.Judging.Deadlines.Text = []string{"ttft<=2s", "what"}, "soon"
	_, err = r.Judge()
	if err == nil || !strings.Contains(err.Error(), "slo[1]: ") || !strings.Contains(err.Error(), "judge.deadlines: ") {
		t.Error(err)
	}
}

func TestAgain(t *testing.T) {
	saved := read(t, base+"slo: [ttft<=2s]\njudge: {pace: 7}\n").YAML()
	slo := conf.Setting{Path: "slo", Value: "e2e<=20s", From: "--slo", Append: true}
	r, err := Again("run.yaml", saved, []conf.Setting{slo, {Path: "slo", Value: "tpot<=40ms", Append: true}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"e2e<=20s", "tpot<=40ms"}, r.SLO); diff != "" || r.Judging.Pace != 7 {
		t.Errorf("pace %v, %s", r.Judging.Pace, diff)
	}
	if r, err := Again("run.yaml", nil, []conf.Setting{slo}); err != nil || len(r.SLO) != 1 || r.Judging.Pace != 6 {
		t.Errorf("without a run file: %+v, %v", r, err)
	}
	_, err = Again("run.yaml", saved, []conf.Setting{{Path: "judge.pace", Value: "-1", From: "--pace"}})
	if want := "--pace: judge.pace: must be more than 0 tokens a second, not -1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(base, "rate", "4")
	f.Add("target: {url: 'http://u:p@h/v1?key=x', body: {a: [1, {b: null}]}}\nslo: [1]", "header", "a: b")
	f.Add("schedule: {concurrency: 1e3, duration: 9223372036s}\ntarget: {url: 'http://h'}", "label", "=")
	f.Fuzz(func(t *testing.T, file, flag, value string) {
		var sets []conf.Setting
		for _, one := range Flags() {
			if one.Name == flag {
				sets = append(sets, one.Setting(value))
			}
		}
		r, err := Read("f", []byte(file), sets)
		if err != nil {
			return
		}
		back, err := Again("f", r.YAML(), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.YAML())
		}
		if string(back.YAML()) != string(r.YAML()) {
			t.Fatalf("was\n%s\nis\n%s", r.YAML(), back.YAML())
		}
	})
}
