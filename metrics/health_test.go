package metrics

import (
	"slices"
	"strings"
	"testing"

	"fermata/recording"
)

// A server that refuses half of the requests does not make this machine the
// bottleneck; requests that were never tried do.
func TestRefusedIsNotClientBound(t *testing.T) {
	run := func(failed func(*recording.Trace)) *Result {
		var traces recording.Slice
		for i := range int64(20) {
			tr := recording.Trace{Index: i, Phase: recording.Measured, Due: i * 1e8, End: recording.Some(i*1e8 + 5e7)}
			if i%2 == 0 {
				failed(&tr)
			} else {
				tr.Outcome, tr.FinishReason, tr.HTTPStatus = recording.OK, "stop", 200
				tr.Sent, tr.FirstByte = recording.Some(tr.Due), recording.Some(tr.Due+1e7)
				tr.DeltaNs, tr.Tokens = []int64{1e7, 1e7, 1e7}, []int32{1, 1, 1}
				tr.Read, tr.StampErrorNs = []int32{1, 2, 3}, []int64{1e5, 1e5, 1e5}
				tr.Channel, tr.TextBytes = []int8{0, 0, 0}, []int32{4, 4, 4}
			}
			traces = append(traces, tr)
		}
		meta := recording.Meta{WindowStart: recording.Some(int64(0)), WindowEnd: recording.Some(int64(2e9))}
		r, err := Evaluate(traces, meta, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	refused := run(func(tr *recording.Trace) {
		tr.Outcome, tr.FailedAt, tr.Error = recording.Refused, recording.AtConnect, "connection refused"
	})
	if refused.Health.ClientBound || refused.Outcomes["refused"] != 10 {
		t.Errorf("half refused: client-bound %v because of %q; outcomes %v", refused.Health.ClientBound, refused.Health.Reasons, refused.Outcomes)
	}
	unsent := run(func(tr *recording.Trace) { tr.Outcome, tr.FailedAt = recording.NotSent, recording.AtSend })
	if !unsent.Health.ClientBound {
		t.Error("half of the requests never left, and this machine is not called the bottleneck")
	}
}

// Requests for whose connection this machine had no room make the run
// client-bound, be it one of many, and the limit is named.
func TestNoRoomIsClientBound(t *testing.T) {
	var traces recording.Slice
	for i := range int64(40) {
		tr := recording.Trace{Index: i, Phase: recording.Measured, Due: i * 1e8, End: recording.Some(i*1e8 + 5e7)}
		if i == 7 {
			tr.Outcome, tr.FailedAt, tr.Error = recording.NotSent, recording.AtConnect, "no room: 64 files"
		} else {
			tr.Outcome, tr.FinishReason, tr.HTTPStatus = recording.OK, "stop", 200
			tr.Sent, tr.FirstByte = recording.Some(tr.Due), recording.Some(tr.Due+1e7)
			tr.DeltaNs, tr.Tokens = []int64{1e7, 1e7}, []int32{1, 1}
			tr.Read, tr.StampErrorNs = []int32{1, 2}, []int64{1e5, 1e5}
			tr.Channel, tr.TextBytes = []int8{0, 0}, []int32{4, 4}
		}
		traces = append(traces, tr)
	}
	meta := recording.Meta{WindowStart: recording.Some(int64(0)), WindowEnd: recording.Some(int64(4e9))}
	r, err := Evaluate(traces, meta, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Health; !h.ClientBound || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "1 of 40 requests were not sent") {
		t.Errorf("client-bound %v because of %q", h.ClientBound, h.Reasons)
	}
	if r.Load.Sent != 39 || !slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == "no_room" && strings.HasSuffix(w.Text, "no room: 64 files") }) {
		t.Errorf("%d sent; %+v", r.Load.Sent, r.Warnings)
	}
}
