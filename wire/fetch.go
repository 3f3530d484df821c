package wire

import (
	"context"
	"net/http"

	"fermata/recording"
)

// maxFetch bounds what Fetch keeps of a body.
const maxFetch = 1 << 20

// A Page is a small response, read whole.
type Page struct {
	Status int
	Header http.Header
	Body   []byte // the first MiB
	Cut    bool   // there was more
}

// Sent implements Sink.
func (p *Page) Sent(int64, recording.Maybe[int64]) error { return nil }

// Head implements Sink.
func (p *Page) Head(status int, h http.Header, _ Stamp) error {
	p.Status, p.Header = status, h.Clone()
	return nil
}

// Data implements Sink.
func (p *Page) Data(b []byte, _ Stamp) error {
	if room := maxFetch - len(p.Body); len(b) > room {
		b, p.Cut = b[:room], true
	}
	p.Body = append(p.Body, b...)
	return nil
}

// Fetch gets a small page, such as the list of a server's models.
func Fetch(ctx context.Context, t Transport, url string, h http.Header) (*Page, error) {
	var p Page
	if r := t.Exchange(ctx, &Request{Method: http.MethodGet, URL: url, Header: h, Aside: true}, &p); r.Err != nil {
		return nil, r.Err
	}
	return &p, nil
}
