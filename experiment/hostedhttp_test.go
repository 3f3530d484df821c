package experiment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/internal/conf"
	"fermata/serve"
)

const (
	portedSystem  = "behind a port"
	portedHeading = "## Over HTTP\n"
	portedScale   = 10
	portedLoad    = 0.6
)

var portedLengths = []int32{256, 512, 1024, 2048, 4096, 8192}

// sections are the evidence without and that of the check over HTTP.
func sections(t *testing.T) (others, ported string) {
	t.Helper()
	data, err := os.ReadFile(hostedFile)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), "\n"+portedHeading)
	if at < 0 {
		return string(data), ""
	}
	return string(data[:at]), string(data[at:])
}

// What virtual time shows, once over real connections: a simulator behind a port,
// ten times as fast as its time, whose curve is measured alone and then, through the
// hosted plan, while a run of another's holds it at 0.6 of its capacity. The truth is
// the simulator's own. A curve that is off by more than a tenth anywhere, and beyond
// its band, must be flagged.
func TestHostedPlanOverHTTP(t *testing.T) {
	if os.Getenv("FERMATA_SLOW") == "" {
		t.Skip("FERMATA_SLOW is not set; TestHostedPlanOnABusyServer has the same in virtual time")
	}
	engine, err := serve.NewSim("ported.yaml", []byte(sharedSystem(portedSystem)), serve.SimOptions{TimeScale: portedScale})
	if err != nil {
		t.Fatal(err)
	}
	url := served(t, engine)
	full := saturation(t, portedSystem)
	dir := t.TempDir()
	sets := []conf.Setting{{Path: "target.url", Value: url}, {Path: "seed", Value: "11"}}
	plan := ProfilePlan{Shortest: 256, Longest: 8192, Rounds: 10, Most: 20}
	alone, err := Profile(t.Context(), sets, plan, Options{Out: filepath.Join(dir, "alone"), Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}

	stop, over := make(chan struct{}), make(chan error, 1)
	others := readSettings(t, map[string]string{
		"target.url": url, "workload.dataset": othersFile(t), "schedule.rate": fmt.Sprintf("%.4f", portedLoad*full),
		"schedule.duration": "1h", "seed": "12",
	})
	go func() {
		_, err := Run(context.WithoutCancel(t.Context()), others, Options{Out: filepath.Join(dir, "others"), Stop: stop, Say: func(string, ...any) {}})
		over <- err
	}()
	defer func() {
		close(stop)
		if err := <-over; err != nil {
			t.Error(err)
		}
	}()
	time.Sleep(6 * time.Second) // a minute of the server's, until it is as busy as ever
	plan.Rounds, plan.Most, plan.Hosted = 0, 0, &HostedPlan{Requests: 100, Over: 7 * time.Minute}
	busy, err := Profile(t.Context(), sets, plan, Options{Out: filepath.Join(dir, "busy"), Say: t.Logf})
	if err != nil {
		t.Logf("refused: %v", err)
	}

	idle, truth := newSharedServer(t, portedSystem, 0, 1), map[int32]float64{}
	for _, tokens := range portedLengths {
		truth[tokens] = idle.bare(t, tokens)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `
%s
Written by `+"`make slow`"+` (HostedPlanOverHTTP). Yi-34B on two H100, whole prompts first, behind a real port (`+"`serve --sim`"+`, %d simulated seconds a
second), on the machine that also asks: `+"`fermata profile`"+` alone, then `+"`--plan hosted`"+` (100 requests in 7 simulated minutes) while a run of another's holds the
server at %.1f of its capacity (%.2f requests/s; chat with 5 %% documents). The truth is the simulator's own, without a network.

| plan | 256 | 512 | 1024 | 2048 | 4096 | 8192 | band holds | undelayed | flags |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, strings.TrimSpace(portedHeading)+"\n", portedScale, portedLoad, full)
	for _, one := range []struct {
		name string
		got  *Profiled
	}{{"isolated, alone", alone}, {"hosted, beside others", busy}} {
		if one.got == nil {
			fmt.Fprintf(&b, "| %s | refused | | | | | | | | |\n", one.name)
			continue
		}
		fmt.Fprintf(&b, "| %s |", one.name)
		inside, silent := 0, len(one.got.Diagnosis.Flags) == 0
		for _, tokens := range portedLengths {
			off := one.got.Curve.At(float64(tokens))/truth[tokens] - 1
			low, high := one.got.Curve.Band(float64(tokens))
			held := low <= truth[tokens] && truth[tokens] <= high
			if held {
				inside++
			}
			if silent && math.Abs(off) > 0.1 && !held {
				t.Errorf("%s: off by %+.1f %% at %d tokens without a flag", one.name, 100*off, tokens)
			}
			fmt.Fprintf(&b, " %+.1f %% |", 100*off)
		}
		flags := strings.Join(one.got.Diagnosis.Flags, ", ")
		if flags == "" {
			flags = "none"
		}
		fmt.Fprintf(&b, " %d of 6 | %.0f %% | %s |\n", inside, 100*one.got.Diagnosis.Undelayed, flags)
	}
	b.WriteString(`
What is over the truth alone is the way to the server and back, and this machine's own delays, ten times as long on the simulated clock: about
as much at every length. Neither curve was off by more than a tenth, and beyond its band, without a flag.
`)
	t.Log(b.String())
	if !t.Failed() {
		rest, _ := sections(t)
		if err := os.WriteFile(hostedFile, []byte(rest+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// bare is what the server without others needs for a prompt, without a network.
func (s *sharedServer) bare(t testing.TB, tokens int32) float64 {
	t.Helper()
	return s.truth(t, tokens) - float64(sharedRoundTrip) - math.Ln2*float64(sharedJitter)
}

// othersFile has what the others ask, as a data set.
func othersFile(t *testing.T) string {
	t.Helper()
	s := &sharedServer{dice: rand.New(rand.NewPCG(5, 6))}
	rows := "prompt_tokens,output_tokens\n"
	for range 2000 {
		q := s.other(0)
		rows += fmt.Sprintf("%d,%d\n", q.Prompt, q.Output)
	}
	file := filepath.Join(t.TempDir(), "others.csv")
	if err := os.WriteFile(file, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
