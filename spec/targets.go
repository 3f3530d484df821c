package spec

import (
	"math"
	"strings"

	"fermata/internal/conf"
)

const (
	longestName = 64   // of a target, in bytes
	mostInBlock = 1000 // requests
)

// Each is the run as each of its targets sees it: one with Target alone for
// every target, in order.
func (r *Run) Each() []*Run {
	if len(r.Targets) == 0 {
		one := *r
		return []*Run{&one}
	}
	var all []*Run
	for _, c := range r.Targets {
		one := *r
		one.Target, one.Targets = c.Target, nil
		all = append(all, &one)
	}
	return all
}

// reportTargets checks who is asked: one or several.
func (r *Run) reportTargets(doc *conf.Doc) {
	var found problems
	if len(r.Targets) == 0 {
		if doc.Has("targets") {
			found.add("targets", "must have at least one target; for a single one write target")
		}
		if r.Among != "" {
			found.add("interleave", "is for several targets; give targets, or leave it out")
		}
		doc.Report("", found)
		if len(found) == 0 {
			doc.Report("target", r.Target.check())
		}
		return
	}
	if doc.Has("target") {
		found.add("target", "cannot be given together with targets; say what is to be asked, and how, under each of those")
	}
	switch r.Among {
	case "", Random, Block:
	default:
		found.add("interleave", "must be random or block, not %q", r.Among)
	}
	names := map[string]bool{}
	sum := 0.0
	for i := range r.Targets {
		t, path := &r.Targets[i], item("targets", i)
		switch name := t.Name; {
		case name == "":
			found.add(path+".name", "must be given: it tells this target's figures from those of the others")
		case len(name) > longestName || hasControl(name) || strings.TrimSpace(name) != name:
			found.add(path+".name", "must be at most %d bytes without control characters and without spaces around it", longestName)
		case names[name]:
			found.add(path+".name", "is %q, as that of another target; each needs a name of its own", name)
		}
		names[t.Name] = true
		weight := t.Weight
		switch {
		case weight < 0 || weight == 0 && doc.Has(path+".weight"):
			found.add(path+".weight", "must be more than 0, not %v", weight)
		case weight > 1e6:
			found.add(path+".weight", "must be at most 1000000, not %v", weight)
		case r.Among == Block && weight != math.Trunc(weight):
			found.add(path+".weight", "must be a whole number with interleave: block, not %v", weight)
		case weight == 0:
			weight = 1
		}
		sum += weight
	}
	if r.Among == Block && sum > mostInBlock {
		found.add("interleave", "makes blocks of %v requests by these weights; give smaller ones, %d together at most", sum, mostInBlock)
	}
	doc.Report("", found)
	for i := range r.Targets {
		doc.Report(item("targets", i), r.Targets[i].check())
	}
}
