package calm

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A judge is a test that only keeps how it ended.
type judge struct {
	testing.TB

	ended, skipped string
}

func (j *judge) Logf(string, ...any) {}

func (j *judge) Fatalf(_ string, args ...any) {
	j.ended = args[len(args)-1].(string)
	runtime.Goexit()
}

func (j *judge) Skip(args ...any) {
	j.skipped = args[0].(string)
	runtime.Goexit()
}

// How often an attempt is made, of a machine that stands still so long in each.
func TestTry(t *testing.T) {
	const calm, still = held - 1, held
	for _, c := range []struct {
		name    string
		fails   int // so many attempts
		still   []time.Duration
		made    int
		failing bool
	}{
		{"a right one, on a busy machine", 0, []time.Duration{still}, 1, false},
		{"a wrong one, on a calm machine", 9, []time.Duration{calm}, 1, true},
		{"disturbed twice", 2, []time.Duration{still, still, calm}, 3, false},
		{"disturbed, then wrong", 9, []time.Duration{still, calm}, 2, true},
		{"wrong on a machine that is never calm", 99, slices.Repeat([]time.Duration{still}, attempts), attempts, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, cleaned := 0, 0
			attempt := func(t testing.TB) {
				made++
				t.Cleanup(func() {
					if t.Context().Err() == nil {
						t.Error("its context outlives an attempt")
					}
					cleaned++
				})
				if made <= c.fails {
					t.Fatalf("number %d", made)
				}
			}
			j := &judge{TB: t}
			done := make(chan struct{})
			go func() { // which the judge ends
				defer close(done)
				try(j, held, func() func() time.Duration { return func() time.Duration { return c.still[made-1] } }, attempt)
			}()
			<-done
			if made != c.made || cleaned != made || (j.ended != "") != c.failing {
				t.Errorf("%d attempts, %d cleaned up, ended with %q; want %d", made, cleaned, j.ended, c.made)
			}
			if c.failing && (!strings.Contains(j.ended, "calm_test.go:") || !strings.Contains(j.ended, "number")) {
				t.Errorf("it says %q", j.ended)
			}
		})
	}
}

// Whatever tells of a failure is one, from whatever goroutine; a skip is none.
func TestWhatFails(t *testing.T) {
	for name, do := range map[string]func(t testing.TB){
		"Error": func(t testing.TB) { t.Error("x") },
		"Fatal": func(t testing.TB) { t.Fatal("x"); panic("it goes on") },
		"Fail":  func(t testing.TB) { t.Fail() },
		"FailNow": func(t testing.TB) {
			defer func() { recover() }()
			t.FailNow()
			panic("it goes on")
		},
		"elsewhere": func(t testing.TB) {
			done := make(chan struct{})
			go func() { defer close(done); t.Errorf("x") }()
			<-done
		},
		"clean-up": func(t testing.TB) { t.Cleanup(func() { t.Error("x") }) },
	} {
		if a := begin(t, do); !a.failed {
			t.Errorf("%s does not fail", name)
		}
	}
	if a := begin(t, func(t testing.TB) { t.Log("x") }); a.failed || len(a.said) != 1 {
		t.Error("a word is a failure")
	}
	if a := begin(t, func(t testing.TB) { t.Skipf("x"); panic("it goes on") }); a.failed || !a.skipped {
		t.Error("a skip is none")
	}
}

// What a watch waits by itself, here an hour less than nothing, is not what holds it up.
func TestWatch(t *testing.T) {
	stop := watch(-time.Hour)
	if stood := stop(); stood < time.Hour {
		t.Errorf("an hour passed unseen: %v", stood)
	}
	began := time.Now()
	stop = watch(time.Microsecond)
	time.Sleep(5 * time.Millisecond)
	if stood, most := stop(), time.Since(began); stood <= 0 || stood > most {
		t.Errorf("%v in %v", stood, most)
	}
}
