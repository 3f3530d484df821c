package report

import (
	"testing"

	"fermata/metrics"
)

// Where later turns follow answers, arrivals are of conversations: a gap of 50 ms is
// 20 of them a second.
func TestArrivalsOfConversations(t *testing.T) {
	asked := int64(50e6)
	a := &metrics.Arrivals{MeanNs: 50e6, AskedMeanNs: &asked, CV: 1, Sent: &metrics.Sendings{MeanNs: 100e6, CV: 1}}
	for _, c := range []struct {
		conversations bool
		arrive, sent  string
	}{
		{false, "gaps 50.0 ms of 50.0 ms on average · CV 1.00 (seen of asked)", "sent 10.0 of 20.0 requests/s · CV 1.00"},
		{true, "gaps between the beginnings of conversations 50.0 ms of 50.0 ms on average · CV 1.00 (seen of asked)", "sent 10.0 of 20.0 conversations/s · CV 1.00"},
	} {
		if got := arrivalsText(a, c.conversations); got != c.arrive {
			t.Errorf("%q, want %q", got, c.arrive)
		}
		if got := sentText(a, c.conversations); got != c.sent {
			t.Errorf("%q, want %q", got, c.sent)
		}
	}
}

// The legend of a word stands where the word does.
func TestLegendOfVoid(t *testing.T) {
	for _, void := range []bool{false, true} {
		s := &Selftest{Steps: []SelftestStep{{Void: void}}}
		if b := s.errors(); (len(b.notes) > 0) != void {
			t.Errorf("void %v: %q", void, b.notes)
		}
	}
}
