package load

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"fermata/dialect"
	"fermata/recording"
	"fermata/wire"
)

// Why a request was cut. They are the causes of its context.
var (
	errTimeout = errors.New("no end within the time-out")
	errSilent  = errors.New("no token within the silence time-out")
	errStopped = errors.New("cut when the run was stopped")
	errEnough  = errors.New("the answer had ended, but the server kept the stream open")
)

// maxError bounds the text of an error that is kept.
const maxError = 400

// judge closes the trace: which outcome it has, where it failed and why.
func (a *answer) judge(r wire.Result, zeroWallNs int64, hide func(string) string) {
	a.trace = new(recording.Trace)
	t := a.trace
	*t = a.beginning()
	t.Sent, t.Connected, t.FirstByte, t.End, t.HTTPStatus = r.Sent, r.Connected, r.FirstByte, recording.Some(r.End), a.status
	said := &dialect.Answer{}
	if a.head {
		a.closeBody(r.Err == nil)
		said = a.reading.decoder.Answer()
		if !a.streaming {
			said = a.dialect.Whole(int(a.status), a.reading.body)
		}
	}
	a.settle(said)
	t.Slow = slow(t, a.slowNs)
	a.told(said, zeroWallNs)
	t.FinishReason, t.ResponseID = hide(t.FinishReason), hide(t.ResponseID) // a server may repeat what it was sent anywhere

	outcome, why := a.outcome(r, said)
	t.Outcome = outcome
	if outcome != recording.OK {
		t.FailedAt, t.Error = a.step(r), oneLine(hide(why))
	}
	if outcome == recording.OK && !said.Done {
		addNote(t, recording.NoteNoDone)
	}
	if a.coded {
		addNote(t, recording.NoteGzip)
	}
}

// closeBody ends the body, of which something may have been held back: what the
// decompression still has, and an event without its blank line. They came with
// the latest read. Of a body that broke off, an open event stays out.
func (a *answer) closeBody(whole bool) {
	d := a.read()
	if a.unpack != nil {
		defer a.unpack.stop()
		if whole {
			d.spoilt(a.unpack.close(a.take))
		}
	}
	if a.streaming && whole {
		good := d.decoder.Answer().Bad == ""
		open, err := d.events.Close(a.event)
		if open {
			addNote(a.trace, recording.NoteUnfinishedTail)
			if said := d.decoder.Answer(); good {
				said.Bad = "" // the body ended within that event: it was cut, not wrong
			}
		}
		d.spoilt(err)
		_ = a.keepTail() // what cannot be kept has ended the run
	}
	// Some servers send a page or a JSON body as what they should have sent.
	if b := bytes.TrimSpace(d.body); a.streaming && !d.began && len(b) > 0 && (b[0] == '{' || b[0] == '[' || b[0] == '<') {
		a.streaming = false
	}
}

// spoilt notes that the bytes are not the protocol.
func (d *reading) spoilt(err error) {
	if said := d.decoder.Answer(); err != nil && said.Bad == "" {
		said.Bad = err.Error()
	}
}

// told copies what the answer said about itself.
func (a *answer) told(said *dialect.Answer, zeroWallNs int64) {
	t := a.trace
	t.ResponseID, t.FinishReason = said.ID, said.FinishReason
	t.Prompt.Reported, t.Output.Reported = said.PromptTokens, said.OutputTokens
	t.Cached, t.Reasoning = said.CachedTokens, said.ReasoningTokens
	t.Prompt.Settle(true)
	t.Output.Settle(false)
	t.ServerQueue, t.ServerPrefill = said.QueueNs, said.PrefillNs
	if wall := said.ReceivedWallNs; wall.OK {
		t.ServerReceived = recording.Some(wall.V - zeroWallNs)
	} else if a.received > 0 {
		t.ServerReceived = recording.Some(a.received - zeroWallNs)
	}
	for _, n := range said.Notes {
		addNote(t, n)
	}
}

func (a *answer) outcome(r wire.Result, said *dialect.Answer) (recording.Outcome, string) {
	err := r.Err
	over := a.streaming && (said.Done || said.FinishReason != "") // what cut it then cut nothing off
	switch {
	case errors.Is(err, errStopped) && !over:
		return recording.TruncatedByUs, err.Error()
	case !a.head && err != nil:
		return unanswered(r)
	case a.status != 200:
		return recording.HTTPError, fmt.Sprintf("status %d: %s", a.status, orNothing(said.Error))
	case !a.streaming:
		return a.unstreamed(said, err)
	case said.Bad != "":
		return recording.BadStream, said.Bad
	case said.Error != "" && !slices.Contains(said.Notes, recording.NoteErrorAfter):
		return recording.StreamError, said.Error
	case isOurCut(err) && !over:
		return recording.Timeout, err.Error()
	}
	return a.ending(said, err)
}

// ending judges a stream that brought no error of its own.
func (a *answer) ending(said *dialect.Answer, err error) (recording.Outcome, string) {
	whole := err == nil || isOurCut(err)
	tokens := a.trace.FirstToken() >= 0
	switch {
	case said.FinishReason == "content_filter":
		return recording.Filtered, "a content filter ended the answer"
	case said.FinishReason != "" && !tokens:
		return recording.Empty, "the answer ended without a token"
	case said.FinishReason != "":
		return recording.OK, ""
	case whole && !tokens:
		return recording.Empty, "the stream ended without a token"
	case whole:
		return recording.StreamCut, "the stream ended without a finish reason"
	case !isBroken(err):
		return recording.BadStream, err.Error()
	}
	return recording.StreamCut, "the connection broke: " + err.Error()
}

// isOurCut says that it was the run that ended an exchange.
func isOurCut(err error) bool {
	return errors.Is(err, errTimeout) || errors.Is(err, errSilent) || errors.Is(err, errEnough) || errors.Is(err, errStopped)
}

// unanswered judges a request that got no response.
func unanswered(r wire.Result) (recording.Outcome, string) {
	err := r.Err
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var noRoom *wire.ErrNoRoom
	switch {
	case errors.As(err, &noRoom): // nothing that a server did
		return recording.NotSent, noRoom.Error()
	case errors.Is(err, errTimeout), errors.Is(err, errSilent):
		return recording.Timeout, err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return recording.Refused, err.Error()
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &unknown), r.Step == recording.AtTLS:
		return recording.TLSFailed, err.Error()
	case r.Step == recording.AtConnect:
		return recording.ConnectFailed, err.Error()
	case !isBroken(err):
		return recording.BadStream, "the answer is not HTTP: " + err.Error()
	}
	return recording.StreamCut, "the connection broke before an answer: " + err.Error()
}

// unstreamed judges a 200 that is no event stream.
func (a *answer) unstreamed(said *dialect.Answer, err error) (recording.Outcome, string) {
	switch {
	case isOurCut(err):
		return recording.Timeout, err.Error()
	case err != nil && !isBroken(err):
		return recording.BadStream, err.Error()
	case err != nil:
		return recording.StreamCut, "the connection broke: " + err.Error()
	case len(bytes.TrimSpace(a.reading.body)) == 0:
		return recording.Empty, "the server answered with nothing"
	case said.Error != "":
		return recording.StreamError, said.Error
	case said.Bad != "" && len(a.reading.body) < maxWhole:
		return recording.BadStream, said.Bad
	}
	return recording.NotStreamed, "one JSON body instead of a stream"
}

// step is how far the request came.
func (a *answer) step(r wire.Result) recording.Step {
	switch {
	case !a.head:
		return r.Step
	case a.trace.FirstToken() >= 0:
		return recording.AtMidStream
	case a.status != 200:
		return recording.AtHeaders
	}
	return recording.AtFirstToken
}

// isBroken says that an error is one of the connection, not of its bytes.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || strings.Contains(err.Error(), "server closed idle connection") ||
		strings.Contains(err.Error(), "unexpected EOF reading trailer") ||
		strings.Contains(err.Error(), "use of closed network connection")
}

func addNote(t *recording.Trace, code string) {
	if !slices.Contains(t.Notes, code) {
		t.Notes = append(t.Notes, code)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}

// oneLine keeps an error readable in a table.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + "…"
	}
	return s
}
