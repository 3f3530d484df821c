package workload

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// figures of a published file, computed from it by a Python script of thirty
// lines: order statistics, and Spearman's correlation with mean ranks of ties.
type figures struct {
	format      string
	rows        int64
	in, out     [4]int64 // p10, p50, p90, p99
	meanIn, rho float64
	lastNs      int64   // due time of the last row; 0 without times
	second      int64   // of the second
	cv, idc     float64 // of gaps; index of dispersion in windows of 100 mean gaps, 0 where there are not ten
	together    int64
}

func (want figures) check(t *testing.T, path string) {
	t.Helper()
	w := mustOpen(t, Options{Dataset: path}, 1)
	s, err := Describe(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if w.Format() != want.format || w.Rows() != want.rows || s.Requests != want.rows || s.Input.N != want.rows || s.Output.N != want.rows {
		t.Errorf("format %s, %d rows, %d described, %d with lengths", w.Format(), w.Rows(), s.Requests, s.Input.N)
	}
	if got := [4]int64{s.Input.P10, s.Input.P50, s.Input.P90, s.Input.P99}; got != want.in {
		t.Errorf("prompts %v, want %v", got, want.in)
	}
	if got := [4]int64{s.Output.P10, s.Output.P50, s.Output.P90, s.Output.P99}; got != want.out {
		t.Errorf("answers %v, want %v", got, want.out)
	}
	near("mean prompt", s.Input.Mean, want.meanIn)
	near("rank correlation", s.Correlation, want.rho)
	due := allTimes(w)
	if timed := due != nil; timed != (want.lastNs > 0) {
		t.Fatalf("times: %v", timed)
	}
	if due == nil {
		return
	}
	if due[0] != 0 || due[1] != want.second || due[len(due)-1] != want.lastNs {
		t.Errorf("times %d, %d … %d, want 0, %d … %d", due[0], due[1], due[len(due)-1], want.second, want.lastNs)
	}
	near("variation of gaps", s.Arrivals.GapCV, want.cv)
	near("index of dispersion", s.Arrivals.Dispersion, want.idc)
	if s.Arrivals.Together != want.together {
		t.Errorf("%d rows at the same time, want %d", s.Arrivals.Together, want.together)
	}
}

func TestPublishedExcerpts(t *testing.T) {
	for name, want := range map[string]figures{
		"azure_2023_conv.csv": {
			format: "azure", rows: 2000, in: [4]int64{203, 1032, 1989, 4100}, out: [4]int64{57, 238, 436, 625},
			meanIn: 1104.7825, rho: 0.192185, second: 4_314_579_000, lastNs: 424_259_457_000, cv: 1.138616, idc: 5.551269,
		},
		"azure_2023_code.csv": {
			format: "azure", rows: 2000, in: [4]int64{135, 1338, 4886, 7436}, out: [4]int64{7, 13, 55, 287},
			meanIn: 1986.5785, rho: -0.064362, second: 52_000_000, lastNs: 853_079_347_000, cv: 13.328743, idc: 197.412908,
		},
		"mooncake_conversation.jsonl": {
			format: "mooncake", rows: 300, in: [4]int64{1035, 8767, 28214, 87172}, out: [4]int64{28, 396, 615, 906},
			meanIn: 14233.236666666666, rho: 0.122074, lastNs: 102_000_000_000, cv: 2.796475, together: 265,
		},
		"sharegpt_lengths.csv": {
			format: "lengths", rows: 3000, in: [4]int64{72, 1701, 5661, 7435}, out: [4]int64{94, 435, 858, 997},
			meanIn: 2319.1226666666666, rho: 0.074134,
		},
		"arxiv_lengths.csv": {
			format: "lengths", rows: 3000, in: [4]int64{1134, 2696, 3695, 3933}, out: [4]int64{80, 166, 380, 3275},
			meanIn: 2553.664333333333, rho: -0.123852,
		},
	} {
		t.Run(name, func(t *testing.T) { want.check(t, filepath.Join("testdata", name)) })
	}
}

// The whole files, where FERMATA_DATA names the folder that has them.
func TestPublishedFiles(t *testing.T) {
	folder := os.Getenv("FERMATA_DATA")
	if folder == "" {
		t.Skip("FERMATA_DATA names no folder of published files")
	}
	for name, want := range map[string]figures{
		"azure_llm_2023_conv.csv": {
			format: "azure", rows: 19366, in: [4]int64{207, 1020, 2735, 4142}, out: [4]int64{54, 129, 424, 601},
			meanIn: 1154.6974078281523, rho: 0.072751, second: 4_314_579_000, lastNs: 3_501_721_937_000, cv: 1.094198, idc: 6.080989,
		},
		"azure_llm_2023_code.csv": {
			format: "azure", rows: 8819, in: [4]int64{147, 1469, 5194, 7436}, out: [4]int64{7, 13, 55, 252},
			meanIn: 2047.848282118154, rho: -0.021462, second: 52_000_000, lastNs: 3_435_948_056_000, cv: 13.152037, idc: 137.716456,
		},
		"mooncake_conversation_first2500.jsonl": {
			format: "mooncake", rows: 2500, in: [4]int64{990, 8137, 29460, 94991}, out: [4]int64{26, 362, 604, 1157},
			meanIn: 13620.3736, rho: 0.090542, lastNs: 822_000_000_000, cv: 2.850209, idc: 2.253315, together: 2225,
		},
		"sharegpt_8k_lengths.csv": {
			format: "lengths", rows: 30731, in: [4]int64{74, 1730, 5696, 7434}, out: [4]int64{84, 415, 834, 998},
			meanIn: 2340.0335491848623, rho: 0.050568,
		},
		"arxiv_summarization_4k_lengths.csv": {
			format: "lengths", rows: 28257, in: [4]int64{1242, 2730, 3702, 3934}, out: [4]int64{78, 167, 372, 3273},
			meanIn: 2588.0780337615456, rho: -0.113783,
		},
	} {
		t.Run(name, func(t *testing.T) { want.check(t, filepath.Join(folder, name)) })
	}
	// reference value of the studies behind the simulator: 0.306
	w := mustOpen(t, Options{Dataset: filepath.Join(folder, "mooncake_conversation_first2500.jsonl")}, 1)
	if s, err := Describe(w, 0); err != nil || s.Shared.Blocks != 67694 || s.Shared.Seen != 20364 || math.Abs(s.Shared.TokenShare-0.306061) > 1e-6 {
		t.Errorf("%+v %v", s.Shared, err)
	}
}

// What is asked has the trace's lengths, and prompts share as many words from
// their beginning as their blocks are equal.
func TestMooncakePrompts(t *testing.T) {
	w := mustOpen(t, Options{Dataset: "testdata/mooncake_conversation.jsonl"}, 7)
	s, err := Describe(w, 0)
	if err != nil || s.Shared.Blocks != 8490 || s.Shared.Seen != 676 || math.Abs(s.Shared.TokenShare-0.081023) > 1e-6 {
		t.Errorf("%+v %v", s.Shared, err)
	}
	words := func(i int64) []string {
		q := mustAt(t, w, i, 0, 0)
		f := strings.Fields(q.Prompt)
		if int(q.PromptTokens) != len(f) {
			t.Fatalf("request %d: %d words for %d tokens", i, len(f), q.PromptTokens)
		}
		return f
	}
	shared := func(a, b []string) (n int) {
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	// The first rows of the file: 6758, 7322 and 7236 tokens; all begin with
	// block 0, and the next blocks differ.
	first, second := words(0), words(1)
	if len(first) != 6758 || len(second) != 7322 {
		t.Errorf("lengths %d and %d", len(first), len(second))
	}
	if n := shared(first, second); n != 512 {
		t.Errorf("%d words shared, want one block of 512", n)
	}
	if again := words(300); len(again) != 6758 || shared(first, again) != 0 {
		t.Errorf("in the second round %d words of %d are those of the first", shared(first, again), len(again))
	}
	if n := shared(words(300), words(301)); n != 512 {
		t.Errorf("in the second round %d words shared, want 512", n)
	}
	// With two tokens a word a block is 256 words.
	w.Calibrate(Calibration{PerWord: 2})
	a, b := strings.Fields(mustAt(t, w, 0, 0, 0).Prompt), strings.Fields(mustAt(t, w, 1, 0, 0).Prompt)
	if len(a) != 3379 || shared(a, b) != 256 {
		t.Errorf("%d words, %d shared", len(a), shared(a, b))
	}
	if !w.Synthetic() || w.Words() != 8767/2+1 {
		t.Errorf("synthetic %v, %d words", w.Synthetic(), w.Words())
	}
}

func TestBurstGPT(t *testing.T) {
	w := mustOpen(t, Options{Dataset: "testdata/burstgpt.csv"}, 1)
	due := allTimes(w)
	want := []int64{7e9, 41e9, 120e9, 120.5e9, 244e9}
	for i, at := range due {
		if at != want[i] {
			t.Errorf("row %d at %d ns, want %d", i, at, want[i])
		}
	}
	if w.Format() != "burstgpt" || w.Rows() != 5 || w.Skipped().Empty != 1 {
		t.Errorf("%s, %d rows, %+v", w.Format(), w.Rows(), w.Skipped())
	}
	if q := mustAt(t, w, 2, 0, 0); q.PromptTokens != 410 || q.OutputTokens != 280 || len(strings.Fields(q.Prompt)) != 410 {
		t.Errorf("%d in, %d out", q.PromptTokens, q.OutputTokens)
	}
}

// Presets keep what was published of the tables they stand for: the figures of
// the whole files, within what 1,024 rows of them can.
func TestPresets(t *testing.T) {
	for name, want := range map[string]struct {
		in, out [2]float64 // p50, p90
		rho     float64
	}{
		"lmsys":      {[2]float64{417, 1418}, [2]float64{139, 484}, 0},
		"sharegpt":   {[2]float64{1730, 5696}, [2]float64{415, 834}, 0.050568},
		"arxiv":      {[2]float64{2730, 3702}, [2]float64{167, 372}, -0.113783},
		"azure-conv": {[2]float64{1020, 2735}, [2]float64{129, 424}, 0.072751},
		"azure-code": {[2]float64{1469, 5194}, [2]float64{13, 55}, -0.021462},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustOpen(t, Options{Lengths: name}, 3)
			s, err := Describe(w, 40_000)
			if err != nil {
				t.Fatal(err)
			}
			near := func(what string, got int64, want float64) {
				if math.Abs(float64(got)-want) > 0.04*want {
					t.Errorf("%s: %d, published %.0f", what, got, want)
				}
			}
			near("median prompt", s.Input.P50, want.in[0])
			near("p90 prompt", s.Input.P90, want.in[1])
			near("median answer", s.Output.P50, want.out[0])
			near("p90 answer", s.Output.P90, want.out[1])
			// Four standard errors of a rank correlation are 4/√40000.
			if math.Abs(s.Correlation-want.rho) > 0.022 {
				t.Errorf("correlation %.4f, published %.4f", s.Correlation, want.rho)
			}
			if !strings.Contains(s.Source, "answers") && !strings.Contains(s.Source, "pairs") || PresetSource(name) != s.Source {
				t.Errorf("source %q", s.Source)
			}
		})
	}
	if PresetSource("none") != "" {
		t.Error("a source of nothing")
	}
}
