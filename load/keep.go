package load

import "fermata/recording"

// A keeper is the run's recorder. What cannot be kept ends the run: a
// measurement that is not recorded did not happen. So callers need not look at
// the errors, except to stop what they are doing.
type keeper struct{ r *run }

func (k keeper) check(err error) error {
	k.r.die(err)
	return err
}

func (k keeper) Begin(t *recording.Trace) error { return k.check(k.r.Record.Begin(t)) }

func (k keeper) Sent(index int64, try int32, at int64, connected recording.Maybe[int64]) error {
	return k.check(k.r.Record.Sent(index, try, at, connected))
}

func (k keeper) FirstByte(index int64, try int32, at int64) error {
	return k.check(k.r.Record.FirstByte(index, try, at))
}

func (k keeper) Arrive(index int64, try int32, a recording.Arrival) error {
	return k.check(k.r.Record.Arrive(index, try, a))
}

func (k keeper) End(t *recording.Trace) error { return k.check(k.r.Record.End(t)) }

func (k keeper) Text(index int64, try int32, prompt, answer, reasoning string) error {
	return k.check(k.r.Record.Text(index, try, prompt, answer, reasoning))
}

func (k keeper) Sample(s recording.Sample) error { return k.check(k.r.Record.Sample(s)) }
