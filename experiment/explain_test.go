package experiment

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/dialect"
	"fermata/load"
	"fermata/recording"
	"fermata/wire"
	"fermata/workload"
)

// A server of TLS says in its own way that a plain request is none, as OpenSSL's do;
// one of plain HTTP may hang up on who greets it by TLS.
func TestSchemesMixedUp(t *testing.T) {
	for _, c := range []struct {
		scheme, says, hint string
	}{
		{"http", "\x15\x03\x01\x00\x02\x02\x46", "https://"},
		{"https", "", "http://"},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var served sync.WaitGroup
		served.Go(func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write([]byte(c.says))
				conn.Close()
			}
		})
		url := c.scheme + "://" + ln.Addr().String() + "/v1/chat/completions"
		trace := askOnce(t, url)
		ln.Close()
		served.Wait()
		if trace.Outcome == recording.OK {
			t.Fatalf("%s: %+v", url, trace)
		}
		if f := explain(&trace, asked{url: url}); !strings.Contains(f.Help, "rite "+c.hint) {
			t.Errorf("%s ended as %s (%s), which is explained by %q, %q", url, trace.Outcome, trace.Error, f.Saw, f.Help)
		}
	}
}

func askOnce(t *testing.T, url string) recording.Trace {
	t.Helper()
	choice, err := wire.Choose("", wire.Options{}, url)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dialect.New(dialect.Options{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	clock := wire.NewClock()
	tr := choice.New(clock)
	defer tr.Close()
	trace, err := load.Probe{Dialect: d, Transport: tr, Clock: clock, URL: url, Header: http.Header{}, Timeout: 20 * time.Second, Aside: true}.Ask(t.Context(), &workload.Request{Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// A page of figures that is too large to be read whole is told as such.
func TestLargePageOfFigures(t *testing.T) {
	p := &scrape{header: http.Header{}}
	for _, c := range []struct {
		before int // bytes of other figures
		want   string
	}{{10, ""}, {2 << 20, "larger than 1 MiB"}} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("other 1\n", c.before/8) + "vllm:num_requests_running 1\n"))
		})}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = srv.Serve(ln)
		}()
		p.url = "http://" + ln.Addr().String() + "/metrics"
		tr := wire.NewHTTP(wire.NewClock())
		var s recording.Sample
		err = p.ask(t.Context(), tr, &s)
		tr.Close()
		srv.Close()
		<-served
		if c.want == "" && (err != nil || s.ServerRunning == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("after %d bytes: %v, %v", c.before, err, s.ServerRunning)
		}
	}
}
