package spec

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"fermata/internal/conf"
	"fermata/wire"
)

// Words of record.scrape that are no URL.
const (
	ScrapeAuto = "auto" // /metrics beside the API, if it is there
	ScrapeOff  = "off"
)

// checkConnect adds to the room's own check what only the whole shows.
func (r *Run) checkConnect() []conf.Problem {
	var found problems
	wrong := r.Connect.Check()
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		found.add(path, "%s", wrong[path])
	}
	if strings.Contains(r.Connect.Proxy, Removed) {
		found.add("proxy", "its password was removed when this file was saved; give the whole URL again")
	}
	if r.Connect.UnixSocket != "" && len(r.Targets) > 0 {
		found.add("unix_socket", "is one server's, and there are several targets; give target instead")
	}
	if r.Connect.Insecure && !r.anyTLS() {
		found.add("insecure", "is about certificates, and no target's URL begins with https://; leave it out")
	}
	if slices.ContainsFunc(r.Each(), func(one *Run) bool { return one.Target.Transport == wire.FastName }) {
		for _, path := range r.Connect.NotFast() {
			found.add(path, "is given together with transport fast, which speaks HTTP/1.1 straight to the server; leave transport out, or give compatible")
		}
	}
	return found
}

func (r *Run) anyTLS() bool {
	return slices.ContainsFunc(r.Each(), func(one *Run) bool { return strings.HasPrefix(strings.ToLower(one.Target.URL), "https://") })
}

// checkRecord checks what the recording keeps besides.
func (r *Run) checkRecord() []conf.Problem {
	var found problems
	if s := r.Record.Scrape; s != "" && s != ScrapeAuto && s != ScrapeOff {
		u, err := url.Parse(s) // whose error would repeat a password
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			found.add("scrape", "must be auto, off or a URL such as http://127.0.0.1:8000/metrics")
		case wasRemoved(u):
			found.add("scrape", "its password or key was removed when this file was saved; give the whole URL again")
		case len(r.Targets) > 0:
			found.add("scrape", "is one server's page, and there are several targets; only auto or off go with those")
		}
	}
	return found
}

// publicProxy is a proxy's URL without its user name and password.
func publicProxy(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return Removed
	}
	if u.User != nil {
		u.User = url.User(Removed)
		return u.String()
	}
	return text
}

// publicScrape is record.scrape without secrets.
func publicScrape(text string) string {
	if text == "" || text == ScrapeAuto || text == ScrapeOff {
		return text
	}
	return publicURL(text)
}

// connectSecrets are the secrets in the URLs beside the target's.
func (r *Run) connectSecrets() []string {
	var secrets []string
	for _, text := range []string{r.Connect.Proxy, r.Record.Scrape} {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			secrets = append(secrets, secretsOf(u)...)
		}
	}
	return secrets
}
