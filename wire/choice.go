package wire

import (
	"fmt"
	"net/http"
	"net/url"
)

// The names of the transports.
const (
	FastName       = "fast"       // our own HTTP/1.1 over epoll
	CompatibleName = "compatible" // net/http
)

// A Choice is the transport that a run uses, and why.
type Choice struct {
	Name string
	Why  string // as a sentence goes on after the name
	open func(Clock) Transport
}

// New is the chosen transport, with stamps on clock.
func (c Choice) New(clock Clock) Transport { return c.open(clock) }

// Choose chooses a transport for requests to urls: the fast one wherever it can
// be, unless one is asked for by name. An error says why the one that was asked
// for cannot be had, or what is wrong with the options. It settles stamps.
func Choose(asked string, o Options, urls ...string) (Choice, error) {
	compatible, err := Open(o)
	if err != nil {
		return Choice{}, err
	}
	if asked == CompatibleName {
		return Choice{CompatibleName, "as asked for", compatible}, nil
	}
	why := o.unfit(urls)
	if why == "" {
		why = fastUnfit(asked == "")
	}
	switch {
	case why == "" && asked == FastName:
		return Choice{FastName, "as asked for", openFast}, nil
	case why == "":
		return Choice{FastName, "as the server is reached by plain HTTP, and this kernel stamps what it receives", openFast}, nil
	case asked == FastName:
		return Choice{}, fmt.Errorf("the fast transport cannot be used, as %s; leave it out, or ask for %s", why, CompatibleName)
	}
	return Choice{CompatibleName, "as " + why, compatible}, nil
}

// unfit is why the fast transport cannot reach the servers; empty if it can.
func (o *Options) unfit(urls []string) string {
	switch {
	case o.UnixSocket != "":
		return "the server is reached through a Unix socket"
	case o.HTTP2:
		return "HTTP/2 is asked for"
	}
	proxy, err := o.proxyOf()
	if err != nil {
		return "the proxy is wrong"
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return "the URL cannot be read"
		case u.Scheme != "http":
			return "the server is reached by TLS"
		case proxy == nil:
			continue
		}
		if through, err := proxy(&http.Request{URL: u}); err != nil || through != nil {
			return "the server is reached through a proxy"
		}
	}
	return ""
}
