package wire

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/recording"
)

// authority writes the certificate of a test's server as a file of authorities.
func authority(t testing.TB, srv *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A proxy passes bytes on: to whom CONNECT names, or to the host of a plain
// request. It notes when it did, as it may be held up.
type proxy struct {
	url  string
	used atomic.Int64

	forward written // its writes towards the client
}

func newProxy(t testing.TB) *proxy {
	p := &proxy{}
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.used.Add(1)
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	from, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	if r.Method != http.MethodConnect {
		r.Close = true // one request a connection is enough to be on the way
		if r.Write(to) == nil {
			p.pass(from, to)
		}
		return
	}
	_, _ = io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() { _, _ = io.Copy(to, buffered); to.Close(); close(done) }()
	p.pass(from, to)
	from.Close()
	<-done
}

func (p *proxy) pass(client, server net.Conn) {
	_, _ = io.Copy(p.forward.conn(client), server)
}

// Certificates are verified unless somebody says not to.
func TestCertificatesAreVerified(t *testing.T) {
	srv := httptest.NewUnstartedServer(&teller{n: 1})
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for _, c := range []struct {
		name string
		o    Options
		good bool
	}{
		{"nothing said", Options{}, false},
		{"insecure", Options{Insecure: true}, true},
		{"its own authority", Options{CAFile: authority(t, srv)}, true},
	} {
		open, err := Open(c.o)
		if err != nil {
			t.Fatal(err)
		}
		h := open(NewClock())
		r := h.Exchange(t.Context(), post(srv.URL, "{}"), &heard{})
		h.Close()
		var refused *tls.CertificateVerificationError
		if c.good != (r.Err == nil) || !c.good && !(errors.As(r.Err, &refused) && r.Step == recording.AtTLS) {
			t.Errorf("%s: failed at %q with %v", c.name, r.Step, r.Err)
		}
	}
}

func TestOptionsSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		path string
		says string
	}{
		{Options{Proxy: "127.0.0.1:3128"}, "proxy", "http://127.0.0.1:3128"},
		{Options{Proxy: "ftp://h"}, "proxy", "URL of a proxy"},
		{Options{CAFile: empty}, "ca_file", "no certificate"},
		{Options{CAFile: filepath.Join(dir, "none")}, "ca_file", "no such file"},
		{Options{CAFile: empty, Insecure: true}, "insecure", "one of them"},
		{Options{UnixSocket: "s", Proxy: "http://h:1"}, "unix_socket", "one of them"},
	} {
		if got := c.o.Check()[c.path]; !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q, want it to say %q", c.o, got, c.says)
		}
	}
	secret := Options{Proxy: "ftp://user:hunter2@h"}
	if strings.Contains(secret.Check()["proxy"], "hunter2") {
		t.Error("an error repeats a password")
	}
	if found := (&Options{Proxy: "off", HTTP2: true}).Check(); len(found) != 0 {
		t.Errorf("good options: %v", found)
	}
}
