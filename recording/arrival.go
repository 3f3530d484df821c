package recording

// An Arrival is one event of a stream as it is journalled the moment it is
// read, before anyone knows what the server will say about its tokens.
type Arrival struct {
	At           int64 // when, since the run's start
	StampErrorNs int64 // the true arrival lies in [At - StampErrorNs, At]
	Tokens       int32 // tokens that it brought; -1 where that is not known yet
	Read         int32 // number of the socket read that brought it
	TextBytes    int32 // UTF-8 bytes of text that it brought
	Channel      int8
	Text         bool // false: an event without text, which may turn out to be no token
}

// counts says whether the arrival stands in the settled lists if nothing else
// is learnt, and with how many tokens: an event with text is one token, and an
// event without text is none unless the server gave a number.
func (a *Arrival) counts() (tokens int32, stands bool) {
	if a.Tokens >= 0 {
		return a.Tokens, true
	}
	return 1, a.Text
}

// How an end frame gives the settled lists, as far as they differ from the
// journalled arrivals.
const (
	listsJournalled = 0 // the arrivals that stand, with the tokens they count
	listsTokens     = 1 // bit: the numbers of tokens follow
	listsAllEvents  = 2 // bit: all events, also those that would not stand
	listsWhole      = 4 // the lists follow whole
)

// A fingerprint tells lists of arrivals apart without keeping them.
type fingerprint struct {
	n            int64
	body, tokens uint64
}

func (f *fingerprint) add(at, stampError int64, tokens, read, textBytes int32, channel int8) {
	f.n++
	f.body = mix(f.body, uint64(at))
	f.body = mix(f.body, uint64(stampError))
	f.body = mix(f.body, uint64(uint32(read))<<32|uint64(uint32(textBytes)))
	f.body = mix(f.body, uint64(uint8(channel)))
	f.tokens = mix(f.tokens, uint64(uint32(tokens)))
}

// mix folds one word into a hash; it is a bijection of both, so lists that
// differ in one word never collide.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// A progress is what the recorder keeps of a request between its begin and its
// end: enough to write arrivals as differences, and to tell at the end how the
// settled lists differ from them.
type progress struct {
	last      int64 // time of the last arrival; at first the due time
	lastRead  int32
	all       fingerprint // of all events
	standing  fingerprint // of those that stand by default
	someFell  bool        // all and standing differ
	journaled int64
}

// appendArrival writes the frame of an arrival: what differs from the last.
func (p *progress) appendArrival(b []byte, k key, a *Arrival) []byte {
	kind := byte(arrivalBit)
	if k.try != 0 {
		kind |= arrivalTry
	}
	if a.Text {
		kind |= arrivalText
	}
	switch {
	case a.Tokens == 1:
		kind |= tokensOne
	case a.Tokens >= 0:
		kind |= tokensGiven
	}
	if a.Channel >= 0 && a.Channel < channelGiven {
		kind |= byte(a.Channel)
	} else {
		kind |= channelGiven
	}
	b = appendUint(append(b, kind), uint64(k.index))
	if k.try != 0 {
		b = appendUint(b, uint64(k.try))
	}
	b = appendInt(b, a.At-p.last)
	b = appendInt(b, a.StampErrorNs)
	b = appendInt(b, int64(a.Read)-int64(p.lastRead))
	b = appendInt(b, int64(a.TextBytes))
	if kind&tokensMask == tokensGiven {
		b = appendUint(b, uint64(a.Tokens))
	}
	if kind&channelMask == channelGiven {
		b = appendInt(b, int64(a.Channel))
	}
	return b
}

// took notes that an arrival stands in the journal.
func (p *progress) took(a *Arrival) {
	p.last, p.lastRead = a.At, a.Read
	tokens, stands := a.counts()
	if !stands && !p.someFell {
		p.someFell, p.all = true, p.standing
	}
	if stands {
		p.standing.add(a.At, a.StampErrorNs, tokens, a.Read, a.TextBytes, a.Channel)
	}
	if p.someFell {
		p.all.add(a.At, a.StampErrorNs, tokens, a.Read, a.TextBytes, a.Channel)
	}
	p.journaled++
}

// appendSettled writes the settled lists of t as a difference to what was
// journalled.
func (p *progress) appendSettled(b []byte, t *Trace) []byte {
	var f fingerprint
	at := t.Due
	for i, delta := range t.DeltaNs {
		at += delta
		f.add(at, t.StampErrorNs[i], t.Tokens[i], t.Read[i], t.TextBytes[i], t.Channel[i])
	}
	mode := byte(listsWhole)
	switch like := p.standing; {
	case f.n == like.n && f.body == like.body:
		mode = listsJournalled
		if f.tokens != like.tokens {
			mode |= listsTokens
		}
	case p.someFell && f.n == p.all.n && f.body == p.all.body:
		mode = listsAllEvents
		if f.tokens != p.all.tokens {
			mode |= listsTokens
		}
	}
	b = appendUint(append(b, mode), uint64(p.journaled))
	if mode == listsWhole {
		return appendLists(b, &t.Arrivals)
	}
	if mode&listsTokens != 0 {
		b = appendRuns(b, t.Tokens)
	}
	return b
}

// arrival reads the frame of an arrival into last, which is the one before it.
func (c *cursor) arrival(last *Arrival) {
	kind := c.byte()
	last.Text = kind&arrivalText != 0
	last.At += c.int()
	last.StampErrorNs = c.int()
	last.Read += int32(c.int())
	last.TextBytes = int32(c.int())
	switch kind & tokensMask {
	case tokensAny:
		last.Tokens = -1
	case tokensOne:
		last.Tokens = 1
	case tokensGiven:
		last.Tokens = int32(c.uint())
	default:
		c.fail()
	}
	last.Channel = int8(kind & channelMask)
	if last.Channel == channelGiven {
		last.Channel = int8(c.int())
	}
}

// An eventLog holds the arrival frames of a request in flight as they were
// journalled, each with its length before it and without the key.
type eventLog []byte

func (e *eventLog) add(kind byte, fields []byte) {
	*e = append(appendUint(*e, uint64(len(fields)+1)), kind)
	*e = append(*e, fields...)
}

// each visits the arrivals; begun is the due time from which the first differs.
func (e eventLog) each(begun int64, visit func(*Arrival)) error {
	c := cursor{b: e}
	a := Arrival{At: begun}
	for len(c.b) > 0 {
		event := cursor{b: c.bytes()}
		event.arrival(&a)
		if c.bad || event.bad {
			return errPayload
		}
		visit(&a)
	}
	return nil
}

// settle rebuilds the lists of a request that was due at due: the events that
// stand, or all of them. It says whether any left its tokens open.
func (e eventLog) settle(begun, due int64, all bool, lists *Arrivals) (open bool, err error) {
	lists.Reset()
	at := due
	err = e.each(begun, func(a *Arrival) {
		tokens, stands := a.counts()
		if !stands && !all {
			return
		}
		open = open || a.Tokens < 0
		lists.DeltaNs = append(lists.DeltaNs, a.At-at)
		lists.Tokens = append(lists.Tokens, tokens)
		lists.Read = append(lists.Read, a.Read)
		lists.StampErrorNs = append(lists.StampErrorNs, a.StampErrorNs)
		lists.Channel = append(lists.Channel, a.Channel)
		lists.TextBytes = append(lists.TextBytes, a.TextBytes)
		at = a.At
	})
	return open, err
}
