package schedule

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The owners come from coreutils, for example
// printf '\x02\0\0\0\0\0\0\0bbindex 1' | sha256sum for the weight of bb.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		a    Arrival
		want string
	}{{Arrival{Index: 0}, "c"}, {Arrival{Index: 1}, "bb"}, {Arrival{Index: 2}, "a"}, {Arrival{Index: 2, Session: "x"}, "bb"}} {
		for _, owners := range [][]string{{"a", "bb", "c"}, {"c", "bb", "a"}} {
			if got := Owner(c.a.Key(), owners); got != c.want {
				t.Errorf("%q of %v belongs to %s, want %s", c.a.Key(), owners, got, c.want)
			}
		}
	}
	if Owner("index 0", nil) != "" {
		t.Error("an owner among none")
	}
}

// Machines that each draw the whole schedule and send what is theirs send,
// merged, the schedule; those of one session are on one machine; and when a
// machine leaves, the others keep what they had.
func TestOwnersShareTheSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var owners []string
		for i := range rapid.IntRange(1, 9).Draw(t, "owners") {
			owners = append(owners, fmt.Sprintf("host-%d:%d", i, rapid.IntRange(0, 99).Draw(t, "port")))
		}
		seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 300).Draw(t, "requests")
		sessions := rapid.IntRange(0, 20).Draw(t, "sessions")
		o := rapid.SampledFrom(shapes).Draw(t, "shape")
		draw := func() []Arrival {
			s, err := New(o, seed)
			if err != nil {
				t.Fatal(err)
			}
			var all []Arrival
			for range n {
				a, _ := s.Next(0)
				if sessions > 0 {
					a.Session = fmt.Sprint("s", a.Index*7919%int64(sessions))
				}
				all = append(all, a)
			}
			return all
		}
		whole := draw()
		var merged []Arrival
		at := map[string]string{}
		for _, me := range owners {
			for _, a := range draw() {
				if Owner(a.Key(), owners) != me {
					continue
				}
				if other, ok := at[a.Key()]; ok && other != me {
					t.Fatalf("%s belongs to %s and %s", a.Key(), other, me)
				}
				at[a.Key()] = me
				merged = append(merged, a)
			}
		}
		slices.SortFunc(merged, func(a, b Arrival) int { return cmp.Compare(a.Index, b.Index) })
		if !slices.Equal(merged, whole) {
			t.Fatalf("%d requests merged are not the %d of the schedule", len(merged), len(whole))
		}
		gone := rapid.SampledFrom(owners).Draw(t, "gone")
		rest := slices.DeleteFunc(slices.Clone(owners), func(name string) bool { return name == gone })
		for _, a := range whole {
			if was := Owner(a.Key(), owners); was != gone && Owner(a.Key(), rest) != was {
				t.Fatalf("%s moved from %s when %s left", a.Key(), was, gone)
			}
		}
	})
}

// Each of k owners has a binomial share of n keys, with sd √(n(1/k)(1-1/k)).
func TestOwnersShareEvenly(t *testing.T) {
	const n, k = 20_000, 5
	owners := []string{"a", "b", "c", "d", "e"}
	count := map[string]float64{}
	for i := range int64(n) {
		count[Owner(Arrival{Index: i}.Key(), owners)]++
	}
	for _, name := range owners {
		if bound := z * math.Sqrt(n*(1.0/k)*(1-1.0/k)); math.Abs(count[name]-n/k) > bound {
			t.Errorf("%s owns %v of %d, want %d ± %v", name, count[name], n, n/k, bound)
		}
	}
}
