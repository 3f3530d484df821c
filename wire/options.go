package wire

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Options say how a server is reached. The zero value speaks HTTP/1.1, verifies
// certificates by the system's authorities and takes the proxy of the environment
// (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), which is none for this machine itself.
type Options struct {
	HTTP2      bool   `yaml:"http2"`       // HTTP/2 and nothing else: over TLS, and without it on http://
	Proxy      string `yaml:"proxy"`       // URL of a proxy, http, https or socks5; off for none
	Insecure   bool   `yaml:"insecure"`    // take any certificate
	CAFile     string `yaml:"ca_file"`     // authorities that are trusted instead of the system's, PEM
	UnixSocket string `yaml:"unix_socket"` // path of the socket to connect to, whatever the URL's host
}

// noProxy is the word for no proxy at all.
const noProxy = "off"

// Check finds what is wrong; each problem is a key and what to do.
func (o *Options) Check() map[string]string {
	found := map[string]string{}
	if _, err := o.proxyOf(); err != nil {
		found["proxy"] = err.Error()
	}
	if _, err := o.rootsOf(); err != nil {
		found["ca_file"] = err.Error()
	}
	if o.Insecure && o.CAFile != "" {
		found["insecure"] = "takes any certificate, so that ca_file says nothing; give one of them"
	}
	if o.UnixSocket != "" && o.Proxy != "" && o.Proxy != noProxy {
		found["unix_socket"] = "cannot be reached through a proxy; give one of them"
	}
	return found
}

// NotFast are the keys of what is asked for that only the compatible transport has.
func (o *Options) NotFast() []string {
	var keys []string
	if o.HTTP2 {
		keys = append(keys, "http2")
	}
	if o.Proxy != "" && o.Proxy != noProxy {
		keys = append(keys, "proxy")
	}
	if o.UnixSocket != "" {
		keys = append(keys, "unix_socket")
	}
	return keys
}

// ways are options that were found to be right, with what their names stand for.
type ways struct {
	Options
	proxy func(*http.Request) (*url.URL, error)
	roots *x509.CertPool
}

// Open makes transports that reach a server as o says, each with a clock of its
// own. An error says which option is wrong.
func Open(o Options) (func(Clock) Transport, error) {
	w := ways{Options: o}
	var err error
	if w.proxy, err = o.proxyOf(); err != nil {
		return nil, fmt.Errorf("proxy %w", err)
	}
	if w.roots, err = o.rootsOf(); err != nil {
		return nil, err
	}
	return func(c Clock) Transport { return newHTTP(c, w) }, nil
}

func (o *Options) proxyOf() (func(*http.Request) (*url.URL, error), error) {
	switch {
	case o.Proxy == noProxy || o.UnixSocket != "":
		return nil, nil
	case o.Proxy == "":
		return http.ProxyFromEnvironment, nil
	}
	u, err := url.Parse(o.Proxy) // whose error would repeat a password
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" && u.Scheme != "socks5h" {
		return nil, fmt.Errorf("must be the URL of a proxy such as http://127.0.0.1:3128 (or https, socks5), or off")
	}
	return http.ProxyURL(u), nil
}

// roots are the trusted authorities; nil for the system's.
func (o *Options) rootsOf() (*x509.CertPool, error) {
	if o.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the trusted authorities: %w", err)
	}
	roots := x509.NewCertPool()
	if !strings.Contains(string(pem), "BEGIN CERTIFICATE") || !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", o.CAFile)
	}
	return roots, nil
}
