package metrics

import "fermata/recording"

// passes says whether a good answer is right, as far as anybody looked: where
// the run checks answers, one that was not looked at has not passed.
func (a *answer) passes(check string) bool {
	return a.t.Check == recording.Pass || a.t.Check == "" && check == ""
}

// checks counts what the checks of answers came to, and which answers were slow.
type checks struct {
	opt       *Options
	counted   Checks
	slow      int64
	slowKnown bool
}

func newChecks(opt Options) *checks { return &checks{opt: &opt, slowKnown: opt.SlowNs > 0} }

func (c *checks) see(a *answer) {
	t, r := a.t, &c.counted
	c.slowKnown = c.slowKnown || t.Slow.OK
	if !a.good {
		return
	}
	if a.slow(c.opt.SlowNs) {
		c.slow++
	}
	switch t.Check {
	case recording.Pass:
		r.Passed++
	case recording.Fail:
		if r.Failed++; r.Example == nil {
			r.Example = &CheckExample{Index: t.Index, Detail: t.CheckDetail}
		}
	default:
		r.Unchecked++
	}
}

func (*checks) seek() recording.Columns { return 0 }

func (c *checks) result(r *Result, measured int64) {
	if c.slowKnown {
		slow := c.slow
		r.Slow = &slow
	}
	k := c.counted
	if measured == 0 || c.opt.Check == "" && k.Passed+k.Failed == 0 {
		return
	}
	if k.Kind = c.opt.Check; k.Kind == "" {
		k.Unchecked = 0 // nobody promised to look at all of them
	}
	k.Share = float64(k.Passed) / float64(measured)
	r.Checks = &k
}
