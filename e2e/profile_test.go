package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/deadline"
)

// profileDoc is where figures of a real engine's curve are kept.
const profileDoc = root + "/docs/evidence/engine.md"

// needProfile skips, aloud, where nobody asked for curves of a real engine, which
// take minutes.
func needProfile(t *testing.T) {
	t.Helper()
	needEngine(t)
	if os.Getenv("FERMATA_PROFILE") == "" {
		t.Skip("not run: this test takes minutes; `make e2e-profile` runs it")
	}
}

// profile measures the engine's curve by the isolated plan; a flagged one is one
// too. A seed is for once: the engine keeps the prompts that it has seen.
func (e *engine) profile(t *testing.T, seed int) (*deadline.File, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "p")
	c := exec.CommandContext(ctx, binary, "profile", e.url, "--shortest", "64", "--longest", "512", "--points", "4", "--most", "10", "--seed", strconv.Itoa(seed), "--out", dir)
	dieWithUs(c)
	said, err := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != 0 && code != exitUnclear {
		t.Fatalf("exit %d, %v\n%s", code, err, said)
	}
	path := filepath.Join(dir, "deadlines.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := deadline.Read(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return f, string(said)
}

// busy keeps the engine busy with so many users who ask again and again, until the
// test ends or the function it returns is called.
func (e *engine) busy(t *testing.T, users int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	c := exec.CommandContext(ctx, binary, "run", e.url, "--quiet", "--concurrency", fmt.Sprint(users), "--requests", "100000", "--input", "64", "--output", "32", "--out", filepath.Join(t.TempDir(), "busy"))
	dieWithUs(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // it has begun
	return func() {
		cancel()
		_ = c.Wait()
	}
}

// The curve of a real engine, idle and while others ask it: the isolated plan must
// say that it is not alone, and never give a curve below the idle one.
func TestProfileOfAnEngine(t *testing.T) {
	needProfile(t)
	e := startEngine(t)
	lengths := []float64{64, 256, 512}
	type seen struct {
		users int
		at    [3]float64
		file  *deadline.File
	}
	var all []seen
	for _, users := range []int{0, 1, 2} {
		end := func() {}
		if users > 0 {
			end = e.busy(t, users)
		}
		f, said := e.profile(t, 3+users)
		end()
		one := seen{users: users, file: f}
		for i, l := range lengths {
			one.at[i] = f.CurveAt(l)
		}
		t.Logf("%d users: %v ms, undelayed %.2f, within %.1f %%, flags %v\n%s", users, one.at, f.Fitted.Undelayed, 100*f.Fitted.HalfWidth, f.Flags, said)
		for i, l := range lengths {
			if users > 0 && one.at[i] < 0.8*all[0].at[i] {
				t.Errorf("%d users: %.0f tokens take %.1f ms, and %.1f ms without them", users, l, one.at[i]/1e6, all[0].at[i]/1e6)
			}
		}
		all = append(all, one)
	}
	if os.Getenv("FERMATA_SLOW") == "" || t.Failed() {
		return
	}
	var b strings.Builder
	fmt.Fprint(&b, "# The curve of a real engine\n\nWritten by `make e2e-profile` (llama.cpp's server, SmolLM2-135M, one thread, four slots; isolated plan, four lengths from 64 to 512 tokens, ten\nrounds). Others are so many users who each ask 64 tokens, for 32, again and again. Figures are of one machine: compare the rows.\n\n| others | 64 tokens | 256 | 512 | undelayed | band within | flags |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, s := range all {
		flags := strings.Join(s.file.Flags, ", ")
		if flags == "" {
			flags = "none"
		}
		fmt.Fprintf(&b, "| %d | %.1f ms | %.1f ms | %.1f ms | %.0f %% | %.1f %% | %s |\n", s.users, s.at[0]/1e6, s.at[1]/1e6, s.at[2]/1e6, 100*s.file.Fitted.Undelayed, 100*s.file.Fitted.HalfWidth, flags)
	}
	if err := os.WriteFile(profileDoc, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
