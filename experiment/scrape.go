package experiment

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"fermata/recording"
	"fermata/spec"
	"fermata/wire"
)

const (
	scrapeEvery   = time.Second
	scrapeTimeout = 2 * time.Second // a page that takes longer is left for the next time
	metricsPath   = "/metrics"
)

// A scrape asks a server once a second what it says of itself, on a connection and
// a goroutine of its own.
type scrape struct {
	url    string
	header http.Header
	open   func(wire.Clock) wire.Transport
	told   atomic.Pointer[recording.Sample] // the server's figures of the last answer
	cancel context.CancelFunc
	done   chan struct{}
}

// newScrape finds the page of the server's figures; nil where there is none.
func newScrape(ctx context.Context, s *spec.Run, all []*target, o Options) *scrape {
	where := s.Record.Scrape
	auto := where == "" || where == spec.ScrapeAuto
	switch {
	case where == spec.ScrapeOff, auto && o.Quick:
		return nil
	case len(all) != 1:
		o.Say("what the servers say of themselves is not recorded: their /metrics is asked for one target only")
		return nil
	}
	t := all[0]
	open, err := wire.Open(s.Connect)
	if err != nil {
		return nil // which the run itself will say
	}
	p := &scrape{url: where, header: t.headerFor("scrape"), open: open}
	if auto {
		if p.url, err = t.spec.Endpoint(metricsPath); err != nil {
			return nil
		}
	} else if !sameHost(p.url, t.url) {
		p.header = http.Header{"User-Agent": t.header["User-Agent"]} // the key is not for others
	}
	p.header.Set("Accept", "text/plain")
	tr := open(wire.NewClock())
	defer tr.Close()
	var first recording.Sample
	if err := p.ask(ctx, tr, &first); err != nil && !auto {
		o.Say("the server's own figures are not there yet: %v", err)
		return p
	} else if err != nil {
		return nil
	}
	return p
}

// ask fetches the page once.
func (p *scrape) ask(ctx context.Context, tr wire.Transport, into *recording.Sample) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	page, err := wire.Fetch(ctx, tr, p.url, p.header)
	switch {
	case err != nil:
		return fmt.Errorf("asking for them: %w", err)
	case page.Status != http.StatusOK:
		return fmt.Errorf("status %d instead of a Prometheus page", page.Status)
	case page.Cut && !serverFigures(page.Body, into):
		return fmt.Errorf("the page is larger than 1 MiB, of which the beginning has none of the names of vLLM, llama.cpp, SGLang or TGI: name a smaller one with record.scrape (--scrape)")
	case !serverFigures(page.Body, into):
		return fmt.Errorf("the page has none of the names of vLLM, llama.cpp, SGLang or TGI")
	}
	return nil
}

// start asks from now on; a nil scrape does nothing. stop ends it and waits.
func (p *scrape) start(clock wire.Clock) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	go func() {
		defer close(p.done)
		tr := p.open(clock)
		defer tr.Close()
		tick := time.NewTicker(scrapeEvery)
		defer tick.Stop()
		for {
			at := clock.Now()
			one := recording.Sample{ServerTimeNs: &at}
			if p.ask(ctx, tr, &one) == nil {
				p.told.Store(&one)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (p *scrape) stop() {
	if p == nil || p.cancel == nil {
		return
	}
	p.cancel()
	<-p.done
}

// sameHost says that two URLs are of one server.
func sameHost(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Scheme == y.Scheme && x.Host == y.Host
}

// sampled adds the latest figures to a second's sample.
func (p *scrape) sampled(s *recording.Sample) {
	t := p.told.Load()
	if t == nil {
		return
	}
	s.Server, s.ServerTimeNs, s.ServerRunning, s.ServerWaiting = t.Server, t.ServerTimeNs, t.ServerRunning, t.ServerWaiting
	s.ServerKV, s.ServerPreemptions = t.ServerKV, t.ServerPreemptions
	s.ServerPrefixQueries, s.ServerPrefixHits, s.ServerPrefixShare = t.ServerPrefixQueries, t.ServerPrefixHits, t.ServerPrefixShare
}
