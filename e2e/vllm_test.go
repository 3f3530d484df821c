package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/metrics"
)

// The job: four answers of 500 tokens under way, and three long prompts that come
// while they are.
const vllmJob = "at_s,prompt_tokens,output_tokens\n0,32,500\n0,32,500\n0,32,500\n0,32,500\n2,768,8\n5,1536,8\n10,3072,8\n"

// How vLLM computes a prompt beside running answers: all of it in one step, or 256
// tokens at most in each.
var vllmSettings = []struct {
	name    string
	options []string
}{
	{"whole", []string{"--no-enable-chunked-prefill", "--max-num-batched-tokens", "8192"}},
	{"chunked", []string{"--enable-chunked-prefill", "--max-num-batched-tokens", "256"}},
}

// vllmRuns is where the recordings stay, so that reports and pages can be made of
// them.
const vllmRuns = root + "/.cache/e2e-vllm"

// A playedJob is its result and what the server's own histograms say of it.
type playedJob struct {
	dir    string
	result *metrics.Result
	itl    map[float64]float64 // gaps up to a bound in seconds, as the server counted them
	steps  float64
}

// The published inversion on a real engine: p99 TBT ranks first the setting that
// stops everybody for longest, TPOT and the length of the run hardly differ, the
// server's histogram cannot tell, and the report finds that by itself.
func TestVLLM(t *testing.T) {
	if os.Getenv("FERMATA_VLLM") == "" {
		t.Skip("not run: this test needs vLLM; `make e2e-vllm` installs it (5.6 GB) and runs it")
	}
	var whole, chunked playedJob
	for try := 1; ; try++ {
		whole, chunked = playVLLM(t, 0), playVLLM(t, 1)
		found := slices.ContainsFunc(beside(t, whole, chunked)[0].BlindSpots, isInversion)
		tpot, took := apart(whole.tpot(), chunked.tpot()), apart(whole.took(), chunked.took())
		if found && tpot <= .06 && took <= .06 {
			break
		}
		if try == 2 {
			t.Fatalf("p99 TBT inverts: %t; TPOT differs by %.1f %%, the run's length by %.1f %%; the report finds %+v",
				found, 100*tpot, 100*took, beside(t, whole, chunked)[0].BlindSpots)
		}
		t.Log("once more: other work on this machine came between the two settings")
	}
	results := beside(t, whole, chunked)
	spot := results[0].BlindSpots[slices.IndexFunc(results[0].BlindSpots, isInversion)]
	t.Log(spot.Text)
	if slices.ContainsFunc(results[1].BlindSpots, isInversion) {
		t.Error("it is found the other way round too")
	}
	a, b := spot.Figures["tbt_p99_ns"], spot.Figures["tbt_p99_ns_against"]
	if !(a < b) || !(spot.Figures["gap_longest_max_ns"] > 2*spot.Figures["gap_longest_max_ns_against"]) {
		t.Errorf("figures %v", spot.Figures)
	}
	// The same by the server's histogram: it ranks as p99 does.
	if x, y := histogramQuantile(whole.itl, .99), histogramQuantile(chunked.itl, .99); !(x < y) {
		t.Errorf("by its own histogram p99 is %g and %g s", x, y)
	}
	write(t, whole, chunked, spot)
}

func isInversion(s metrics.BlindSpot) bool { return s.Code == metrics.P99Inverts }

func (p playedJob) tpot() float64 { return quantile(p.result.Metrics.TPOT, .5) }

// took is how long the last answer took to end, in ns: all the answers that last
// begin together.
func (p playedJob) took() float64 { return *p.result.Metrics.E2E.Max }

// quantile is a percentile of a result; NaN where it is not among those told.
func quantile(d *metrics.Dist, p float64) float64 {
	for _, q := range d.Quantiles {
		if math.Abs(q.P-p) < 1e-9 {
			return q.Value
		}
	}
	return math.NaN()
}

// apart is how far b is from a, as a share of a.
func apart(a, b float64) float64 { return math.Abs(b/a - 1) }

// beside reports both runs together.
func beside(t *testing.T, runs ...playedJob) []*metrics.Result {
	t.Helper()
	args := []string{"report", "-o", "json"}
	for _, r := range runs {
		args = append(args, r.dir)
	}
	out := fermata(t, args...)
	var all []*metrics.Result
	if err := json.Unmarshal([]byte(out.stdout), &all); err != nil {
		t.Fatalf("%v; it said %s", err, out.stderr)
	}
	return all
}

// playVLLM starts the server in one setting, plays the job and stops it.
func playVLLM(t *testing.T, setting int) playedJob {
	t.Helper()
	s := vllmSettings[setting]
	e, stop := startVLLM(t, s.options)
	defer stop()
	job := filepath.Join(t.TempDir(), "job.csv")
	if err := os.WriteFile(job, []byte(vllmJob), 0o644); err != nil {
		t.Fatal(err)
	}
	p := playedJob{dir: filepath.Join(vllmRuns, s.name)}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	// The first answers of a server pay for what later ones find ready.
	warm := fermata(t, "run", e.url, "--quiet", "--api", "completions", "--concurrency", "4", "--requests", "4", "--warmup", "0",
		"--input", "32", "--output", "16", "--out", filepath.Join(t.TempDir(), "warm"), "-o", "json")
	if warm.code != 0 && warm.code != exitUnclear {
		t.Fatalf("warming up: exit code %d: %s", warm.code, warm.stderr)
	}
	itl, steps := e.histograms(t)
	c := exec.Command(binary, "run", e.url, "--quiet", "--api", "completions", "--trace", job, "--seed", "1", "--name", s.name,
		"--timeout", "5m", "--silence-timeout", "3m", "--out", p.dir, "-o", "json")
	dieWithUs(c)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitUnclear) { // a busy machine is told in the result
		t.Fatalf("%v: %s", err, out)
	}
	p.result = readRun(t, p.dir).result
	after, stepsAfter := e.histograms(t)
	p.itl, p.steps = map[float64]float64{}, stepsAfter-steps
	for bound, n := range after {
		p.itl[bound] = n - itl[bound]
	}
	if n := p.result.Outcomes["ok"]; n != 7 {
		t.Fatalf("%d of 7 requests are ok: %v", n, p.result.Failures)
	}
	return p
}

func startVLLM(t *testing.T, options []string) (e *engine, stop func()) {
	t.Helper()
	port := freePort(t)
	e = &engine{url: fmt.Sprintf("http://127.0.0.1:%d", port), log: filepath.Join(t.TempDir(), "vllm.log")}
	log, err := os.Create(e.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command("./e2e/vllm.sh", append([]string{"run", strconv.Itoa(port), "--no-enable-prefix-caching"}, options...)...)
	c.Dir, c.Stdout, c.Stderr = root, log, log
	dieWithUs(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Wait() }()
	stop = func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			<-ended
		}
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if status, _, err := e.get("/health"); err == nil && status == http.StatusOK {
			return e, stop
		}
		select {
		case <-ended:
			t.Fatalf("vLLM died before it was ready; it said:\n%s", tail(e.log))
		default:
		}
		if time.Now().After(deadline) {
			stop()
			t.Fatalf("vLLM is not ready after 5 minutes; it said:\n%s", tail(e.log))
		}
	}
}

// histograms are the server's counts of gaps by bound, and of its steps.
func (e *engine) histograms(t *testing.T) (itl map[float64]float64, steps float64) {
	t.Helper()
	status, body, err := e.get("/metrics")
	if err != nil || status != http.StatusOK {
		t.Fatalf("GET /metrics: status %d, %v", status, err)
	}
	itl = map[float64]float64{}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			continue
		}
		if strings.HasPrefix(name, "vllm:inter_token_latency_seconds_bucket{") {
			_, le, _ := strings.Cut(name, `le="`)
			bound, err := strconv.ParseFloat(le[:strings.IndexByte(le, '"')], 64)
			if err == nil {
				itl[bound] += v
			}
		}
		if strings.HasPrefix(name, "vllm:iteration_tokens_total_count{") {
			steps += v
		}
	}
	return itl, steps
}

// histogramQuantile is Prometheus's: linear within the bucket.
func histogramQuantile(buckets map[float64]float64, p float64) float64 {
	var bounds []float64
	for b := range buckets {
		bounds = append(bounds, b)
	}
	slices.Sort(bounds)
	if len(bounds) == 0 {
		return math.NaN()
	}
	rank := p * buckets[bounds[len(bounds)-1]]
	low, below := 0.0, 0.0
	for _, b := range bounds {
		if n := buckets[b]; n >= rank && n > below {
			if math.IsInf(b, 1) {
				return low
			}
			return low + (b-low)*(rank-below)/(n-below)
		}
		low, below = b, buckets[b]
	}
	return low
}

// lastBucket is where the server saw its longest gap.
func lastBucket(buckets map[float64]float64) string {
	var bounds []float64
	for b := range buckets {
		bounds = append(bounds, b)
	}
	slices.Sort(bounds)
	low, below := 0.0, 0.0
	found := ""
	for _, b := range bounds {
		if buckets[b] > below {
			found = fmt.Sprintf("%g to %g s", low, b)
		}
		low, below = b, buckets[b]
	}
	return found
}

// write keeps the figures beside the docs.
func write(t *testing.T, whole, chunked playedJob, spot metrics.BlindSpot) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# What p99 TBT hides on a real engine\n\n" +
		"Written by `make e2e-vllm`: vLLM's CPU build (0.32.0) with SmolLM2-135M serves one job twice, computing prompts whole\n" +
		"or 256 tokens a step. Four answers of 500 tokens begin together; prompts of 768, 1,536 and 3,072 tokens come after 2, 5 and 10 s. One run\n" +
		"of each setting: these figures are what was recorded, on the machine at hand, and no claim about vLLM.\n\n" +
		"| | whole | chunked |\n| --- | ---: | ---: |\n")
	seconds := func(ns float64) string { return fmt.Sprintf("%.3g s", ns/1e9) }
	row := func(name string, of func(p playedJob) string) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, of(whole), of(chunked))
	}
	row("TBT, p50", func(p playedJob) string { return seconds(quantile(p.result.Metrics.TBT, .5)) })
	row("TBT, p99", func(p playedJob) string { return seconds(quantile(p.result.Metrics.TBT, .99)) })
	row("longest silence", func(p playedJob) string { return seconds(*p.result.Metrics.GapLongest.Max) })
	row("TPOT, p50", func(p playedJob) string { return seconds(p.tpot()) })
	row("last answer ended after", func(p playedJob) string { return seconds(p.took()) })
	row("longest stall at 6 tokens/s", func(p playedJob) string { return seconds(*p.result.Metrics.StallLongest.Max) })
	row("p99 of the server's own histogram of gaps", func(p playedJob) string { return fmt.Sprintf("%.3g s", histogramQuantile(p.itl, .99)) })
	row("its highest bucket with a gap in it", func(p playedJob) string { return lastBucket(p.itl) })
	row("its count of steps", func(p playedJob) string { return fmt.Sprintf("%.0f", p.steps) })
	row("the machine was too busy to offer the load in time", func(p playedJob) string {
		return map[bool]string{true: "yes", false: "no"}[p.result.Health.ClientBound]
	})
	b.WriteString("\nWhat `fermata report .cache/e2e-vllm/whole .cache/e2e-vllm/chunked` finds by itself, of *whole*:\n\n")
	for _, s := range beside(t, whole, chunked)[0].BlindSpots {
		fmt.Fprintf(&b, "* `%s`: %s.\n", s.Code, s.Text)
	}
	b.WriteString("\nThe page of the two, from a run of this test (`fermata report .cache/e2e-vllm/whole .cache/e2e-vllm/chunked --html vllm.html`):\n\n" +
		"![The report's page with its blind spots](vllm.png)\n")
	if err := os.WriteFile(root+"/docs/evidence/vllm.md", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("p99 %v", spot.Figures)
}
