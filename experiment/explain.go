package experiment

import (
	"fmt"
	"net/url"
	"strings"

	"fermata/recording"
)

// A Failure is why nothing could be measured: what was seen and what to do.
type Failure struct {
	Saw  string
	Help string
}

// Error implements error.
func (f *Failure) Error() string { return f.Saw }

// Hint is what to do about it.
func (f *Failure) Hint() string { return f.Help }

// A Misuse is a Failure of how something was asked for: nothing was done.
type Misuse struct{ Failure }

// misusef is a Misuse that says itself what to do.
func misusef(format string, args ...any) error {
	return &Misuse{Failure{Saw: fmt.Sprintf(format, args...)}}
}

// nothingAt says that what was named is not there.
func nothingAt(path string) error { return misusef("there is no folder or file %s", path) }

// asked is what a preflight's explanation needs to know besides its trace.
type asked struct {
	url    string
	model  string
	models []string // that the server lists; nil where it does not say
	keyed  bool     // a key or header was sent
	http2  bool     // it was to be HTTP/2
	by     string   // what was connected to in the server's place: a proxy or a Unix socket; empty for none
}

// explain says in a sentence why a preflight request failed, and what to do.
func explain(t *recording.Trace, a asked) *Failure {
	u, err := url.Parse(a.url)
	if err != nil {
		return &Failure{Saw: err.Error()}
	}
	if a.http2 && (strings.Contains(t.Error, "http2: ") || strings.Contains(t.Error, "no application protocol")) {
		return &Failure{
			fmt.Sprintf("%s does not speak HTTP/2: %s", u.Host, t.Error),
			"Leave out --http2 (connect.http2).",
		}
	}
	if u.Scheme == "http" && strings.Contains(t.Error, tlsAlert) {
		return speaksTLS(u)
	}
	if a.by == "" && strings.Contains(t.Error, "proxyconnect") {
		a.by = "the proxy of the environment"
	}
	if a.by != "" && (t.Outcome == recording.Refused || t.Outcome == recording.ConnectFailed) {
		return &Failure{
			fmt.Sprintf("no connection to %s, the way to %s: %s", a.by, u.Host, t.Error),
			"Start it or correct connect.proxy (--proxy) or connect.unix_socket (--unix-socket); --proxy off goes without a proxy.",
		}
	}
	switch t.Outcome {
	case recording.Refused:
		return &Failure{
			"nothing listens at " + u.Host,
			"Start the server, correct the port, or let Fermata wait for it with --wait-ready 60s.",
		}
	case recording.ConnectFailed:
		return &Failure{
			fmt.Sprintf("no connection to %s: %s", u.Host, t.Error),
			"Check the host name and the network between here and there.",
		}
	case recording.NotSent:
		return &Failure{t.Error, "That is a limit of this machine; the server was not asked."}
	case recording.TLSFailed:
		return explainTLS(t, u)
	case recording.Timeout:
		return &Failure{
			fmt.Sprintf("%s did not end its answer to one short request in time (%s)", u.Host, t.Error),
			"The server may be loading its model or be stuck; look at its log, or give --wait-ready 5m.",
		}
	case recording.HTTPError:
		return explainStatus(t, u, a)
	case recording.NotStreamed:
		return &Failure{
			"the server answered with one JSON body instead of a stream, so no token has a time",
			"Fermata needs an endpoint that honours \"stream\": true; a proxy on the way may be collecting the answer.",
		}
	case recording.BadStream:
		if strings.Contains(t.Error, "HTML") {
			return &Failure{
				fmt.Sprintf("%s answered with a web page, not with an API's stream: %s", a.url, t.Error),
				"Give the API's base URL, such as http://HOST:8000 or https://HOST/v1.",
			}
		}
		return &Failure{
			"the answer is no stream that this API uses: " + t.Error,
			"Check the URL and --api (chat or completions).",
		}
	case recording.StreamError:
		return &Failure{"the server ended its answer with an error: " + t.Error, "Its log should say more."}
	case recording.StreamCut:
		return &Failure{
			fmt.Sprintf("the stream ended early (%s), after %d tokens", t.Error, tokens(t)),
			"The server or a proxy on the way closes streams before they are finished; its log should say why.",
		}
	case recording.Empty:
		return &Failure{
			"the server finished its answer without a single token",
			"Look at what it says to the same prompt by hand; a chat model may need --api chat, a base model --api completions.",
		}
	case recording.Filtered:
		return &Failure{"a content filter stopped the answer to the first request", "Give prompts of your own with --dataset FILE."}
	}
	return &Failure{fmt.Sprintf("the first request ended as %s: %s", t.Outcome, t.Error), ""}
}

// tlsAlert is how an error shows what servers of TLS say to plain HTTP: an alert.
const tlsAlert = `\x15\x03`

func speaksTLS(u *url.URL) *Failure {
	return &Failure{
		fmt.Sprintf("%s speaks TLS, but the URL says http", u.Host),
		"Write https:// instead of http://.",
	}
}

func explainTLS(t *recording.Trace, u *url.URL) *Failure {
	if strings.Contains(t.Error, "does not look like a TLS handshake") || strings.Contains(t.Error, "server gave HTTP response") {
		return &Failure{
			fmt.Sprintf("%s speaks plain HTTP, but the URL says https", u.Host),
			"Write http:// instead of https://.",
		}
	}
	if strings.Contains(t.Error, "TLS handshake timeout") || strings.HasSuffix(t.Error, "EOF") || strings.Contains(t.Error, "connection reset") {
		return &Failure{
			fmt.Sprintf("%s does not answer as TLS", u.Host),
			"If it speaks plain HTTP, write http:// instead of https://.",
		}
	}
	return &Failure{
		fmt.Sprintf("no TLS with %s: %s", u.Host, t.Error),
		"If its certificate is your own, name its authority with --ca-file FILE (or take any with --insecure).",
	}
}

func explainStatus(t *recording.Trace, u *url.URL, a asked) *Failure {
	saw := fmt.Sprintf("%s answered with %s", a.url, t.Error)
	low := strings.ToLower(t.Error)
	switch code := t.HTTPStatus; {
	case code == 400 && strings.Contains(low, "https server"):
		return speaksTLS(u)
	case code == 401 || code == 403:
		if a.keyed {
			return &Failure{saw, "The key or header that was sent is not accepted: check the variable that --api-key-env names."}
		}
		return &Failure{saw, "The server wants a key: put it into an environment variable and name that with --api-key-env."}
	case code == 404 && len(a.models) > 0 && !contains(a.models, a.model):
		return &Failure{
			fmt.Sprintf("the server has no model %q (status 404)", a.model),
			"It has: " + strings.Join(a.models, ", ") + ". Choose one with --model.",
		}
	case code == 404 && strings.Contains(low, "model"):
		return &Failure{saw, "Choose a model that the server has with --model."}
	case code == 404 || code == 405:
		return &Failure{
			fmt.Sprintf("the server has nothing at %s (status %d)", a.url, code),
			"Give the base URL (http://HOST:8000), one that ends in /v1, or the full path of the endpoint; --api chooses chat or completions.",
		}
	case code == 413 || code == 400 && strings.Contains(low, "context"):
		return &Failure{saw, "The prompt is too long for this model: give a smaller --input, or a smaller --output."}
	case code == 429:
		return &Failure{saw, "The endpoint limits its callers: wait, ask for a higher limit, or offer less with --rate."}
	case code == 502 || code == 503 || code == 504:
		return &Failure{saw, "The server is overloaded or not ready: --wait-ready 60s waits until it is."}
	case code/100 == 3:
		return &Failure{saw, "The address redirects elsewhere: give the final URL."}
	case code/100 == 5:
		return &Failure{saw, "The server failed; its log should say why."}
	}
	return &Failure{saw, "The server refuses what was asked; --print-spec shows the request's settings."}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

func tokens(t *recording.Trace) (n int64) {
	for _, k := range t.Tokens {
		n += int64(k)
	}
	return n
}
