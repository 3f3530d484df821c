package capacity_test

import (
	"context"
	"math/rand/v2"

	"fermata/capacity"
)

// A timeline is the part that plants of tests share: a virtual clock, arrivals whose
// unit gaps are divided by the rate, and outcomes in order of arrival.
type timeline struct {
	rng   *rand.Rand
	at    float64 // s, of the last arrival, or now where that is later
	sent  int64
	told  int // outcomes that were given
	known []capacity.Outcome
}

func (t *timeline) next(rate float64) float64 {
	t.at += t.rng.ExpFloat64() / rate
	t.sent++
	return t.at
}

func ns(s float64) int64 { return int64(s * 1e9) }

// An mm1 is a queue with exponential gaps and service times, first come first
// served, whose requests may take so long in all. The share of them that takes
// longer than X is exp(−(μ−λ)X), so that a p99 of X holds up to μ − ln(100)/X.
type mm1 struct {
	timeline
	mu, bound float64
	free      float64 // s, when the server has nothing left to do
	ends      []float64
	arrived   []float64
	first     int // of those that have not ended
}

func newMM1(mu, bound float64, seed uint64) *mm1 {
	return &mm1{timeline: timeline{rng: rand.New(rand.NewPCG(seed, 1))}, mu: mu, bound: bound}
}

func (m *mm1) Burst(_ context.Context, n int) (capacity.Burst, error) {
	b := capacity.Burst{Asked: n}
	at := 0.0
	for range n {
		at += m.rng.ExpFloat64() / m.mu
		b.Ends = append(b.Ends, ns(at))
	}
	return b, nil
}

func (m *mm1) Send(ctx context.Context, n int, rate float64) error {
	for range n {
		at := m.next(rate)
		m.free = max(m.free, at) + m.rng.ExpFloat64()/m.mu
		m.ends, m.arrived = append(m.ends, m.free), append(m.arrived, at)
		for m.ends[m.first] <= at {
			m.first++
		}
		m.known = append(m.known, capacity.Outcome{At: ns(at), Ahead: len(m.ends) - 1 - m.first, Missed: m.free-at > m.bound})
	}
	return ctx.Err()
}

func (m *mm1) Outcomes() []capacity.Outcome {
	from := m.told
	for m.told < len(m.ends) && (m.ends[m.told] <= m.at || m.at-m.arrived[m.told] > m.bound) {
		m.told++
	}
	return m.known[from:m.told]
}

func (m *mm1) Drain(ctx context.Context) error {
	m.at = max(m.at, m.free)
	return ctx.Err()
}

func (m *mm1) Now() capacity.Reading {
	left := 0
	for i := len(m.ends) - 1; i >= 0 && m.ends[i] > m.at; i-- {
		left++
	}
	return capacity.Reading{Ns: ns(m.at), Sent: m.sent, Backlog: int64(left), Tokens: m.sent}
}
