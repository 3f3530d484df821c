package spec

import (
	"fermata/check"
	"fermata/workload"
)

// preferWhat is prefer for the workload: lengths, published lengths and a data
// set each say what to ask, and one that is set takes the place of the others.
func preferWhat(w *workload.Options, given func(path string) bool) {
	set := func(key string) bool { return given("workload." + key) }
	own, published, data := set("input") || set("output"), set("lengths"), set("dataset")
	if (set("input") || published) && !data {
		w.Dataset, w.Format, w.Once, w.SkipBad = "", "", false, false
	}
	if (published || data) && !set("input") {
		w.Input = ""
	}
	if published && !set("output") {
		w.Output = ""
	}
	if data && !set("session_share") {
		w.SessionShare = 0
	}
	if data && !set("prefix") {
		w.Prefix = nil
	}
	if (own || data) && !published {
		w.Lengths = ""
	}
}

// preferCheck is prefer for the check, which is of one kind.
func preferCheck(o *check.Options, given func(path string) bool) {
	kinds := map[string]*string{check.Schema: &o.Schema, check.Regex: &o.Regex, check.Text: &o.Text, check.Command: &o.Command}
	chosen := false
	for kind := range kinds {
		chosen = chosen || given("check."+kind)
	}
	for kind, value := range kinds {
		if chosen && !given("check."+kind) {
			*value = ""
		}
	}
}
