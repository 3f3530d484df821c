package deadline

import (
	"fmt"
	"math"
	"sort"
	"sync"
)

// Simulated endpoints whose unloaded curve is known. Random numbers are spelled
// out (SplitMix64), so that other programs can make the same probes.
type dice struct{ s uint64 }

func (r *dice) next() uint64 {
	r.s += 0x9E3779B97F4A7C15
	z := r.s
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

func (r *dice) u() float64   { return float64(r.next()>>11) / (1 << 53) }
func (r *dice) exp() float64 { return -math.Log(1 - r.u()) }
func (r *dice) norm() float64 {
	a, b := r.u(), r.u()
	return math.Sqrt(-2*math.Log(1-a)) * math.Cos(2*math.Pi*b)
}
func (r *dice) logNormal(median, sd float64) float64 { return median * math.Exp(sd*r.norm()) }

const roundTrip = 0.040 // s

var worldLengths = []float64{512, 1024, 2048, 4096, 8192, 16384, 32768}

// prefillOf is what a server needs for a prompt, in seconds.
func prefillOf(server string, p float64) float64 {
	whole := 0.012 + 7.0e-5*p + 7.17e-9*p*p
	switch server {
	case "yi": // 0.05 s at 512, 10 s at 32K
		return whole
	case "small":
		return 0.008 + 1.5e-5*p
	case "chunk": // chunks of 2048 tokens, 20 ms each
		return 0.012 + 0.020*math.Ceil(p/2048) + 6.0e-5*p + 5.0e-9*p*p
	case "pool": // above 12K another, more parallel pool
		if p > 12000 {
			return 0.15 + 0.55*whole
		}
		return whole
	}
	panic(server)
}

// truthOf is the median TTFT without load, as a client sees it.
func truthOf(server, world string, p float64) float64 {
	noise := 0.0021
	if world == "jitter" {
		noise = 0.0105
	}
	return roundTrip + noise + prefillOf(server, p)
}

// chatLength is a prompt of the background load: chat, and 5 % documents.
func chatLength(r *dice) float64 {
	p := r.logNormal(417, 0.955)
	if r.u() < 0.05 {
		p = r.logNormal(6000, 0.5)
	}
	return math.Max(16, math.Min(32768, p))
}

// A queue is one server, first come first served: the work in it over time.
type queue struct{ at, work []float64 }

func newQueue(r *dice, server string, load float64, jobs int, swing, day float64) *queue {
	service, sum := make([]float64, jobs), 0.0
	for i := range service {
		service[i] = prefillOf(server, chatLength(r))
		sum += service[i]
	}
	rate := load / (sum / float64(jobs))
	q := &queue{make([]float64, jobs), make([]float64, jobs)}
	t, w := 0.0, 0.0
	for i, s := range service {
		gap := 0.0
		if swing <= 0 {
			gap = r.exp() / rate
		} else { // thinned to the load of the hour
			most := rate * (1 + swing)
			for {
				gap += r.exp() / most
				if r.u()*most <= rate*(1+swing*math.Sin(2*math.Pi*(t+gap)/day)) {
					break
				}
			}
		}
		t += gap
		w = math.Max(0, w-gap) + s
		q.at[i], q.work[i] = t, w
	}
	return q
}

func (q *queue) span() (from, to float64) { return q.at[1000], q.at[len(q.at)-1] }

func (q *queue) wait(t float64) float64 {
	i := sort.SearchFloat64s(q.at, t) - 1
	if i < 0 {
		return 0
	}
	return math.Max(0, q.work[i]-(t-q.at[i]))
}

// sharing is a server that works on all its requests at once: t over the work
// that one of them gets done.
type sharing struct{ t, done []float64 }

func newSharing(r *dice, load, service float64, events int, swing, day float64) *sharing {
	rate, end := load/service, 1/service
	s := &sharing{make([]float64, events+1), make([]float64, events+1)}
	most := rate * (1 + math.Abs(swing))
	n := 0
	for i := 1; i <= events; i++ {
		gap := r.exp() / (most + end)
		s.t[i], s.done[i] = s.t[i-1]+gap, s.done[i-1]+gap/float64(n+1)
		now := rate
		if swing != 0 {
			now *= 1 + swing*math.Sin(2*math.Pi*s.t[i]/day)
		}
		switch u := r.u() * (most + end); {
		case u < now:
			n++
		case u > most && n > 0:
			n--
		}
	}
	return s
}

func (s *sharing) span() (from, to float64) { return s.t[1000], s.t[len(s.t)-1] }

func (s *sharing) takes(t, work float64) float64 {
	return lerp(lerp(t, s.t, s.done)+work, s.done, s.t) - t
}

func lerp(x float64, xs, ys []float64) float64 {
	i := sort.SearchFloat64s(xs, x)
	switch {
	case i <= 0:
		return ys[0]
	case i >= len(xs):
		return ys[len(ys)-1]
	}
	return ys[i-1] + (x-xs[i-1])/(xs[i]-xs[i-1])*(ys[i]-ys[i-1])
}

// made keeps what is costly to make.
var made = struct {
	sync.Mutex
	all map[string]any
}{all: map[string]any{}}

func kept[T any](key string, make func() T) T {
	made.Lock()
	defer made.Unlock()
	if v, ok := made.all[key]; ok {
		return v.(T)
	}
	v := make()
	made.all[key] = v
	return v
}

func queueOf(server string, load, swing, day float64, jobs int) *queue {
	return kept(fmt.Sprint("queue", server, load, swing), func() *queue {
		return newQueue(&dice{1001 + uint64(load*1000)}, server, load, jobs, swing, day)
	})
}

func sharingOf(load, swing, day float64, events int) *sharing {
	return kept(fmt.Sprint("sharing", load, swing), func() *sharing {
		return newSharing(&dice{2002 + uint64(load*1000)}, load, 0.12, events, swing, day)
	})
}

// regimes are when a server changes from calm to busy and back, over a week.
func regimes() []float64 {
	return kept("regimes", func() []float64 {
		var at []float64
		r := &dice{3003}
		t, busy := 0.0, false
		for t < 7*86400 {
			at = append(at, t)
			if busy {
				t += 900 * r.exp()
			} else {
				t += 2100 * r.exp()
			}
			busy = !busy
		}
		return at
	})
}

var queueLoad = map[string]float64{
	"fifo30": .3, "fifo60": .6, "fifo90": .9, "jitter": .3, "cache30": .3, "cache03": .6, "hetero": .4, "rolechunk": .3,
}

// cached is a prompt of which 30 to 98 % need not be computed.
func cached(r *dice, p float64) float64 { return p * (1 - (0.3 + 0.68*r.u())) }

// ttftOf is the TTFT of one probe at the fraction u of the time that is simulated.
func ttftOf(r *dice, server, world string, p, u float64) float64 {
	t := prefillOf(server, p)
	within := func(from, to float64) float64 { return from + u*(to-from)*0.97 }
	y := t
	switch world {
	case "idle":
	case "lognorm":
		y = t + r.logNormal(0.15, 1.2)
	case "burst":
		at := regimes()
		if (sort.SearchFloat64s(at, within(0, 7*86400))-1)%2 == 1 {
			z := r.norm() // a gamma of shape 1.5
			y = t + r.exp() + 0.5*z*z
		} else if r.u() >= 0.8 {
			y = t + 0.05*r.exp()
		}
	case "ps30", "ps60":
		s := sharingOf(map[string]float64{"ps30": .3, "ps60": .6}[world], 0, 0, 400000)
		y = s.takes(within(s.span()), t)
	case "psday":
		s := sharingOf(0.4, 0.95, 20000, 1500000)
		y = s.takes(within(s.span()), t)
	case "mixed": // four replicas, day and night, waits for an iteration, hits, drift
		q := queueOf(server, 0.55, 0.6, 15000, 1200000)
		if r.u() < 0.02 {
			t = prefillOf(server, cached(r, p))
		}
		from, to := q.span()
		span := (to - from) * 0.97
		at := from + math.Mod(u*span+15000*float64(int(r.u()*4)), span)
		y = t*(1+0.05*(u-0.5)) + q.wait(at)
		if r.u() < 0.7 {
			y += 0.03 * r.u()
		}
	default:
		load, ok := queueLoad[world]
		if !ok {
			panic(world)
		}
		q := queueOf(server, load, 0, 0, 400000)
		if hits := map[string]float64{"cache30": .3, "cache03": .03}[world]; hits > 0 && r.u() < hits {
			t = prefillOf(server, cached(r, p))
		}
		switch world {
		case "hetero": // half of the replicas are slower
			if r.u() < 0.5 {
				t *= 1.4
			}
		case "rolechunk": // an empty event after the first chunk is taken for the first token
			t = prefillOf(server, math.Min(p, 2048))
		}
		y = t + q.wait(within(q.span()))
	}
	y += roundTrip + t*0.01*r.norm()
	if world == "jitter" {
		y += r.logNormal(0.010, 0.9)
		if r.u() < 0.02 {
			y += 0.2 + 0.1*r.exp()
		}
		return y
	}
	y += 0.003 * r.exp()
	if r.u() < 0.01 {
		y += 0.2
	}
	return y
}

// probesOf are n probes, the lengths in turn at random times of a week; replicate
// says which of the sets with that many.
func probesOf(server, world string, n, replicate int) []Probe {
	r := &dice{uint64(replicate)*1000003 + uint64(n)*7919 + 12345}
	var all []Probe
	for i := range n {
		p, u := worldLengths[i%len(worldLengths)], r.u()
		y := ttftOf(r, server, world, p, u)
		all = append(all, Probe{PromptTokens: int32(p), TTFTNs: int64(math.Round(y * 1e9)), Block: int64(u * 168)})
	}
	return all
}
