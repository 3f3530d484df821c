package workload

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestLengthsText(t *testing.T) {
	for text, want := range map[string]string{
		"512":                  "always 512 tokens",
		"1_000":                "always 1000 tokens",
		"1e3":                  "always 1000 tokens",
		"uniform:100,500":      "uniform from 100 to 500 tokens",
		"normal:512, 64":       "normal with mean 512 and standard deviation 64 tokens",
		"lognormal:417,1418":   "lognormal with median 417 and 90th percentile 1418 tokens",
		"empirical:a,b:c.csv":  "from the rows of a,b:c.csv",
		"0":                    "error: must be between 1 and 16777216 tokens, not 0",
		"2.5":                  "error: must be between 1 and 16777216 tokens, not 2.5",
		"many":                 `error: must be a number of tokens, uniform:LOW,HIGH, normal:MEAN,SD, lognormal:MEDIAN,P90 or empirical:FILE, not "many"`,
		"zipf:1,2":             `error: must be a number of tokens, uniform:LOW,HIGH`,
		"uniform:100":          `error: uniform takes two numbers, such as uniform:100,500 (lowest and highest), not "100"`,
		"normal:a,1":           `error: normal takes two numbers, such as normal:512,64 (mean and standard deviation), not "a,1"`,
		"uniform:500,100":      "error: uniform goes from one whole number up to another of at most 16777216, not 500 to 100",
		"uniform:1.5,3":        "error: uniform goes from one whole number",
		"normal:0,1":           "error: normal begins with a length between 1 and",
		"normal:5,-1":          "error: a standard deviation is between 0 and",
		"lognormal:1418,417":   "error: a 90th percentile lies between the median and",
		"lognormal:NaN,1":      "error: lognormal begins with",
		"empirical:":           "error: empirical: needs a file of lengths",
		"uniform:1,1000000000": "error: uniform goes from",
	} {
		d, err := Lengths(text).parse()
		got := d.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if n, ok := Tokens(77).Fixed(); n != 77 || !ok {
		t.Errorf("Tokens(77) is %d, %v", n, ok)
	}
	for _, l := range []Lengths{"", "many", "uniform:3,4"} {
		if n, ok := l.Fixed(); ok {
			t.Errorf("%q is always %d", l, n)
		}
	}
}

// The drawn lengths have the distribution that was asked for: for n draws, mean
// and share below a point lie within five of their own standard errors.
func TestDistributions(t *testing.T) {
	const n = 40_000
	draws := func(l Lengths) []float64 {
		w := mustOpen(t, Options{Input: l, Output: "1"}, 5)
		all := make([]float64, n)
		for i := range all {
			all[i] = float64(w.drawer.at(int64(i)).input)
		}
		return all
	}
	mean := func(name string, all []float64, want, sd float64) {
		t.Helper()
		sum, squares := 0.0, 0.0
		for _, x := range all {
			sum += x
			squares += (x - want) * (x - want)
		}
		if got := sum / n; math.Abs(got-want) > 5*sd/math.Sqrt(n) {
			t.Errorf("%s: mean %.2f, want %.2f", name, got, want)
		}
		// The variance's own standard error is at most sd²·√(2/n) for these.
		if got := squares / n; math.Abs(got-sd*sd) > 5*sd*sd*math.Sqrt(2.0/n) {
			t.Errorf("%s: sd %.2f, want %.2f", name, math.Sqrt(got), sd)
		}
	}
	below := func(name string, all []float64, bound, want float64) {
		t.Helper()
		k := 0.0
		for _, x := range all {
			if x <= bound {
				k++
			}
		}
		if math.Abs(k/n-want) > 5*math.Sqrt(want*(1-want)/n)+0.001 { // rounding to whole tokens
			t.Errorf("%s: %.4f of the lengths up to %.0f, want %.4f", name, k/n, bound, want)
		}
	}
	// 401 equally likely values: variance (401² - 1)/12.
	u := draws("uniform:100,500")
	mean("uniform", u, 300, math.Sqrt((401*401-1)/12.0))
	below("uniform", u, 99, 0)
	below("uniform", u, 199, 100.0/401)
	below("uniform", u, 500, 1)
	// Rounding adds a variance of 1/12.
	mean("normal", draws("normal:5000,300"), 5000, math.Sqrt(300*300+1.0/12))
	// Half of a normal distribution around 1 is redrawn: what is left is never below 1.
	below("normal cut", draws("normal:1,5"), 0, 0)
	l := draws("lognormal:417,1418")
	below("lognormal", l, 417, 0.5)
	below("lognormal", l, 1418, 0.9)
	// The 99th percentile from the table value z = 2.326348: 417·(1418/417)^(2.326348/1.281552).
	below("lognormal", l, 417*math.Pow(1418.0/417, 2.326348/1.281552), 0.99)
}

// Rows of a file come together, unless answers are given lengths of their own.
func TestEmpirical(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lengths.csv")
	if err := os.WriteFile(path, []byte("prompt_tokens,output_tokens\n10,1\n20,2\n30,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := Lengths("empirical:" + path)
	for _, o := range []Options{{Input: file}, {Input: file, Output: file}} {
		w := mustOpen(t, o, 1)
		seen := map[int32]int{}
		for i := range int64(3000) {
			q := mustAt(t, w, i, 0, 0)
			if q.PromptTokens != 10*q.OutputTokens {
				t.Fatalf("%d in and %d out are no row", q.PromptTokens, q.OutputTokens)
			}
			seen[q.PromptTokens]++
		}
		for length, n := range seen { // 1000 each, standard deviation 26
			if n < 870 || n > 1130 {
				t.Errorf("%d prompts of %d tokens in 3000", n, length)
			}
		}
		if !strings.Contains(w.Source(), "together from "+path) {
			t.Errorf("source %s", w.Source())
		}
	}
	w := mustOpen(t, Options{Input: file, Output: "9"}, 1)
	if q := mustAt(t, w, 0, 0, 0); q.OutputTokens != 9 {
		t.Errorf("%d tokens of answer, want 9", q.OutputTokens)
	}
	w = mustOpen(t, Options{Output: file}, 1)
	if q := mustAt(t, w, 0, 0, 0); q.PromptTokens != 512 || q.OutputTokens < 1 || q.OutputTokens > 3 {
		t.Errorf("%d in, %d out", q.PromptTokens, q.OutputTokens)
	}
	if _, err := Open(Options{Input: "empirical:none.csv"}, 1); err == nil || !strings.HasPrefix(err.Error(), "reading lengths: there is no file none.csv, which workload.input (--input) names") {
		t.Error(err)
	}
	path = write(t, `{"prompt":"a"}`)
	if _, err := Open(Options{Input: Lengths("empirical:" + path)}, 1); err == nil || !strings.HasSuffix(err.Error(), "not every row has the length of an answer; give output") {
		t.Error(err)
	}
}

// The same seed asks the same, whatever asks and in whatever order.
func TestEveryWorkloadIsDeterministic(t *testing.T) {
	for _, o := range []Options{
		{Input: "lognormal:40,90", Output: "uniform:1,50", MaxInput: 100},
		{Lengths: "azure-code", MaxInput: 500},
		{Lengths: "lmsys", MaxTotal: 800},
		{Dataset: "testdata/azure_2023_code.csv", MaxInput: 200},
		{Dataset: "testdata/mooncake_conversation.jsonl", MaxInput: 2000},
		{Dataset: "testdata/lmsys.parquet"},
		{Dataset: "testdata/sharegpt.json", Output: "normal:50,9"},
	} {
		bytesOf := func(seed uint64, workers int) [32]byte {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			w := mustOpen(t, o, seed)
			lines := make([]string, 400)
			var wait sync.WaitGroup
			for k := range workers {
				wait.Go(func() {
					for i := len(lines) - 1 - k; i >= 0; i -= workers {
						q, ok := w.At(int64(i), 0, 0)
						data, err := json.Marshal(q)
						lines[i] = fmt.Sprint(string(data), ok, err)
					}
				})
			}
			wait.Wait()
			return sha256.Sum256([]byte(strings.Join(lines, "\n")))
		}
		want := bytesOf(5, 1)
		for _, workers := range []int{1, 2, 7} {
			if bytesOf(5, workers) != want {
				t.Errorf("%+v: another workload with %d at once", o, workers)
			}
		}
		if o.Dataset != "testdata/lmsys.parquet" && bytesOf(6, 1) == want {
			t.Errorf("%+v: the same workload with another seed", o)
		}
	}
}

// Of a normal distribution with mean 5 and deviation 10, cut at 1/2: a = -0.45,
// φ = 0.3605, 1-Φ = 0.6736, so that the mean is 10.35. So it comes out.
func TestRealisedMean(t *testing.T) {
	w := mustOpen(t, Options{Input: "normal:5,10", Output: "normal:500,10"}, 1)
	if s := w.Source(); !strings.Contains(s, "prompts normal with mean 5 and standard deviation 10 tokens, of which what is below 1 is drawn again: the mean is then 10.4; answers normal with mean 500 and standard deviation 10 tokens") {
		t.Error(s)
	}
	sum := 0.0
	const n = 40_000
	for i := range int64(n) {
		sum += float64(w.drawer.at(i).input)
	}
	if mean := sum / n; math.Abs(mean-10.35) > 0.15 { // four standard errors of 6.9/200
		t.Errorf("mean %v", mean)
	}
}
