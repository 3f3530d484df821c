package wire

import (
	"testing"
	"time"

	"fermata/internal/calm"
)

// Where the kernel does not stamp, events of a known time are stamped beside the
// run's, and their error is told.
func TestCanary(t *testing.T) {
	t.Setenv(userStamps, "user")
	for name, open := range transports {
		t.Run(name, func(t *testing.T) { hearCanary(t, open) })
	}
}

func hearCanary(t *testing.T, open func(testing.TB, Clock) listening) {
	calm.Try(t, func(t testing.TB) {
		h := open(t, NewClock())
		began := time.Now()
		time.Sleep(300 * time.Millisecond)
		v := h.Vitals()
		h.Close()
		took := time.Since(began)
		if v.Lag != nil || v.Canary == nil {
			t.Fatalf("without the kernel there is no read lag, but a canary: %+v", v)
		}
		// A busy machine sings less, never more.
		if n := v.Canary.N(); n < 3 || n > int64(took/canaryEvery)+1 {
			t.Errorf("%d events in %v, one every %v", n, took, canaryEvery)
		}
		if longest, _ := v.Canary.At(v.Canary.N()); longest <= 0 || longest > int64(took)*33/32 {
			t.Errorf("stamps were late by up to %v in %v", time.Duration(longest), took)
		}
		if v := h.Vitals(); v.Canary.N() > 100 {
			t.Errorf("%d events were told twice", v.Canary.N())
		}
	})
}

// listening is a transport that tells how it fares.
type listening interface {
	Transport
	Monitored
}

// transports are those of this system.
var transports = map[string]func(testing.TB, Clock) listening{
	CompatibleName: func(_ testing.TB, c Clock) listening { return NewHTTP(c) },
}

// A reader that is held up is what the canary hears.
func TestCanaryHearsADelay(t *testing.T) {
	from, to, err := loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	clock := NewClock()
	c, err := newConn(to, clock, stamps{}, &meter{})
	if err != nil {
		t.Fatal(err)
	}
	var m meter
	sent := make(chan struct{})
	song := &canary{stop: make(chan struct{})}
	go func() { song.sing(clock, from); close(sent) }()
	const held = 200 * time.Millisecond
	time.Sleep(held)
	close(song.stop)
	<-sent
	from.Close()
	heed(c, &m.canary)
	c.Close()
	h := m.canary.Take()
	if longest, ok := h.At(h.N()); !ok || longest < int64(held/2) {
		t.Errorf("read %v late, and the canary heard %v", held, time.Duration(longest))
	}
}
