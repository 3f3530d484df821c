package wire

// fastUnfit is why the fast transport cannot work here; empty if it can. Without
// the kernel's stamps it has no advantage, but works if it is asked for.
func fastUnfit(needStamps bool) string {
	if needStamps && !stampsOf(false).receive {
		return "this kernel does not stamp what it receives"
	}
	l, err := newLoop(Clock{}, stamps{}, nil)
	if err != nil {
		return "this process cannot have an event loop: " + err.Error()
	}
	l.shut()
	return ""
}

func openFast(clock Clock) Transport {
	f, err := newFast(clock, 0)
	if err != nil {
		panic(err) // fastUnfit has just made a loop
	}
	return f
}
