package metrics

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseObjective(t *testing.T) {
	const ms, s = int64(1e6), int64(1e9)
	for _, c := range []struct {
		text string
		want Objective
	}{
		{"ttft<=2s", Objective{Share: 990, Terms: []Term{{Name: "ttft", AtNs: 2 * s}}}},
		{"ttft <= 2s @p95", Objective{Share: 950, Percentile: true, Terms: []Term{{Name: "ttft", AtNs: 2 * s}}}},
		{"ttft<=2s and tbt.p99<=100ms @99%", Objective{Share: 990, Terms: []Term{{Name: "ttft", AtNs: 2 * s}, {Name: "tbt", Stat: "p99", AtNs: 100 * ms}}}},
		{"tbt<=50ms@p99", Objective{Share: 990, Percentile: true, Terms: []Term{{Name: "tbt", AtNs: 50 * ms}}}},
		{"tbt_event.p99.9<=1.5ms@99.9%", Objective{Share: 999, Terms: []Term{{Name: "tbt_event", Stat: "p99.9", AtNs: 1_500_000}}}},
		{"tbt.max<=33333333ns", Objective{Share: 990, Terms: []Term{{Name: "tbt", Stat: "max", AtNs: 33333333}}}},
		{"fluidity>=0.9 gap=25ms", Objective{Share: 990, Terms: []Term{{Name: "fluidity", Num: 9, Den: 10, GapNs: 25 * ms}}}},
		{"fluidity.decode>=0.95 gap=50ms and ttft<=2s", Objective{Share: 990, Terms: []Term{{Name: "fluidity", Stat: "decode", Num: 19, Den: 20, GapNs: 50 * ms}, {Name: "ttft", AtNs: 2 * s}}}},
		{"fluidity.first>=1 gap=100ms", Objective{Share: 990, Terms: []Term{{Name: "fluidity", Stat: "first", Num: 1, Den: 1, GapNs: 100 * ms}}}},
		{"stall.longest<=1s and stall.total<=2s and gap.longest<=1s and even_gap<=40ms", Objective{Share: 990, Terms: []Term{{Name: "stall", Stat: "longest", AtNs: s}, {Name: "stall", Stat: "total", AtNs: 2 * s}, {Name: "gap", Stat: "longest", AtNs: s}, {Name: "even_gap", AtNs: 40 * ms}}}},
		{"tpot<=40ms and token_pace<=40ms and normlat<=0.1s and e2e<=20s and ttft_sent<=1s @90%", Objective{Share: 900, Terms: []Term{{Name: "tpot", AtNs: 40 * ms}, {Name: "token_pace", AtNs: 40 * ms}, {Name: "normlat", AtNs: 100 * ms}, {Name: "e2e", AtNs: 20 * s}, {Name: "ttft_sent", AtNs: s}}}},
		{"error<=1%", Objective{Share: 990, Terms: []Term{{Name: "error", Num: 1, Den: 100}}}},
		{"schema>=99.5%", Objective{Share: 990, Terms: []Term{{Name: "schema", Num: 199, Den: 200}}}},
	} {
		got, err := ParseObjective(c.text)
		c.want.Text = c.text
		if err != nil {
			t.Errorf("%v", err)
		} else if d := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Term{})); d != "" {
			t.Errorf("%s: %s", c.text, d)
		}
	}
}

func TestObjectiveMistakes(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "empty"},
		{"ttft", "has no bound"},
		{"latency<=2s", `"latency" is not known; the names are ttft, ttft_sent, tbt`},
		{"ttft<=2", "lacks a unit; write 2s or 2ms"},
		{"ttft<=fast", "no duration"},
		{"ttft<=-2s", "no duration"},
		{"ttft<=0s", "ttft<=0s is met by no answer"},
		{"e2e<=0ms @p99", "is met by no answer"},
		{"ttft>=2s", "bounded by <=; write ttft<=VALUE"},
		{"ttft<2s", "write ttft<=VALUE"},
		{"ttft.p99<=2s", "write ttft<=VALUE @p99"},
		{"tbt<=50ms and ttft<=2s", "write tbt.p99 or tbt.max"},
		{"ttft<=2s and tbt_event<=50ms @99%", "write tbt_event.p99 or tbt_event.max"},
		{"tbt.min<=50ms", "write tbt or tbt.max or tbt.p99"},
		{"tbt.p0<=50ms", "tbt.p0 is not known"},
		{"tbt.p100<=50ms", "not known"},
		{"stall<=1s", "stall needs a statistic; write stall.longest or stall.total"},
		{"gap<=1s", "write gap.longest"},
		{"fluidity>=0.9", "needs its target gap; write fluidity>=0.9 gap=25ms"},
		{"fluidity>=0.9 gap=25", "lacks a unit"},
		{"fluidity>=0.9 gap=0s", "1ns or more"},
		{"fluidity>=1.1 gap=25ms", "between 0 and 1"},
		{"fluidity>=90% gap=25ms", "between 0 and 1"},
		{"fluidity<=0.9 gap=25ms", "bounded by >="},
		{"fluidity.middle>=0.9 gap=25ms", "fluidity.decode or fluidity.first"},
		{"ttft<=2s gap=25ms", "takes no gap"},
		{"error<=0.01", "lacks its unit"},
		{"error<=101%", "between 0% and 100%"},
		{"error<=1% @p99", "leave @p99 out"},
		{"error<=1% and ttft<=2s", "stands alone"},
		{"schema<=99%", "bounded by >="},
		{"ttft<=2s @99", "write @p99 or @99%"},
		{"ttft<=2s @p100", "between 0 and 100"},
		{"ttft<=2s @0%", "between 0 and 100"},
		{"ttft<=2s @p99.99", "one decimal"},
		{"ttft<=2s and", "a term is missing"},
		{"ttft<=2s tbt.max<=1s", "no duration"},
	} {
		_, err := ParseObjective(c.text)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want something about %q", c.text, err, c.says)
		}
	}
}

// A share or percentile in the middle is said to belong to the end, unless what is
// wrong lies deeper.
func TestShareComesLast(t *testing.T) {
	for text, want := range map[string]string{
		"tbt<=50ms@p99 and ttft<=1s":       "tbt pools the gaps of all requests, so it stands alone; for each request's own gaps write tbt.p99 or tbt.max",
		"ttft<=1s @99% and e2e<=3s":        "@99% comes last and goes for all terms together; write ttft<=1s and e2e<=3s @99%",
		"ttft<=1s @p99 and e2e<=3s @p99":   "there is more than one @",
		"ttft<=1s @p99 and nonsense<=3s":   `"nonsense" is not known`,
		"ttft<=1s @p999 and tbt.p99<=50ms": "@p999 must lie between 0 and 100",
	} {
		if _, err := ParseObjective(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
