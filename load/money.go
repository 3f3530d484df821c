package load

import (
	"fmt"
	"sync"

	"fermata/cost"
	"fermata/recording"
)

// A Budget says how money is counted. The zero value counts none.
type Budget struct {
	Most     *cost.Amount // nil: no bound
	Currency string
	Before   cost.Amount // of Most, what was spent before the load
}

// left is what of the bound is left for the load; nil without a bound.
func (b *Budget) left() *cost.Amount {
	if b.Most == nil {
		return nil
	}
	left := b.Most.Minus(b.Before)
	if left.Cmp(cost.Amount{}) < 0 {
		left = cost.Amount{}
	}
	return &left
}

// MoneySpent is how End.Why begins where the money for the next request was gone.
const MoneySpent = "the money was spent"

// A purse holds what a run may cost. Its zero value has no bound.
type purse struct {
	mu          sync.Mutex
	spent, held cost.Amount // of requests that have ended; of those under way, at worst
	counts      bool        // some target has prices
}

// hold sets aside what a request may cost at worst; false says that there is not
// enough left.
func (p *purse) hold(worst cost.Amount, most *cost.Amount) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = true
	after := p.held.Plus(worst)
	if most != nil && p.spent.Plus(after).Cmp(*most) > 0 {
		return false
	}
	p.held = after
	return true
}

// settle replaces what was set aside by what a request did cost.
func (p *purse) settle(worst, did cost.Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.spent = p.held.Minus(worst), p.spent.Plus(did)
}

func (p *purse) spentSoFar() (a cost.Amount, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent, p.counts
}

// worstCase is what a request may cost: its prompt, of which a token has a byte at
// least where nobody knows its length, and the longest answer that it allows.
func worstCase(p *prepared) cost.Amount {
	if p.to.Rate == nil {
		return cost.Amount{}
	}
	prompt := int64(p.prompt)
	if prompt == 0 {
		prompt = int64(len(p.body))
	}
	return p.to.Rate.Of(prompt, int64(p.output))
}

// Billed are the tokens that a try is paid for. One that never reached a model is
// free. An answer that broke off counts as long as it was allowed to get: the
// server may have gone on. Where nobody told the prompt's length, promptKnown is
// false and prompt 0.
func Billed(t *recording.Trace) (prompt, output int64, promptKnown bool) {
	switch t.Outcome {
	case recording.NotSent, recording.Refused, recording.ConnectFailed, recording.TLSFailed, recording.HTTPError:
		return 0, 0, true
	}
	length := t.Prompt.Reported
	if !length.OK {
		length = t.Prompt.Intended
	}
	output = int64(t.Output.Used.Or(0))
	if t.Outcome != recording.OK && !t.Output.Reported.OK {
		output = int64(max(t.Output.Counted.Or(0), t.Output.Intended.Or(0)))
	}
	return int64(length.Or(0)), output, length.OK
}

// afford sets aside what a request may cost. False says that there is not enough
// money left for it: then nothing more is sent, and the measured phase ends where
// the request was due.
func (r *run) afford(p *prepared) bool {
	if p.to.Rate == nil {
		return true
	}
	p.worst = worstCase(p)
	if r.purse.hold(p.worst, r.Budget.left()) {
		return true
	}
	r.outOfMoney(p.at.Due, p.worst)
	return false
}

func (r *run) outOfMoney(due int64, worst cost.Amount) {
	spent, _ := r.purse.spentSoFar()
	why := fmt.Sprintf(MoneySpent+": of %s %s, %s by answers that had ended, and with those under way the next request, which may cost %s, could have passed it",
		r.Budget.Most, r.Budget.Currency, spent.Plus(r.Budget.Before).Short(), worst.Short())
	r.ending.Lock()
	r.closed.CompareAndSwap(nil, &closing{max(due, r.clock.Now()), why})
	r.ending.Unlock()
	r.stopSending("")
}

// pay settles what a try did cost, once.
func (r *run) pay(f *flight) {
	if f.paid || f.to.Rate == nil {
		return
	}
	f.paid = true
	prompt, output, known := Billed(f.trace)
	if !known {
		prompt = int64(len(f.errand.body))
	}
	r.purse.settle(f.worst, f.to.Rate.Of(prompt, output))
}
