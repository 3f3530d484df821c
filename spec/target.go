package spec

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fermata/load"
)

// Removed stands in saved run files where a value was secret.
const Removed = "REMOVED"

const (
	chatPath       = "/chat/completions"
	completionPath = "/completions"
)

// version is the end of a base URL that names the API's version.
var version = regexp.MustCompile(`/v[0-9]+[a-z0-9]*$`)

// parseURL is the target's URL; the error continues "target.url: ".
func parseURL(text string) (*url.URL, error) {
	const like = "such as http://127.0.0.1:8000"
	if text == "" {
		return nil, fmt.Errorf("must be given: where the server is, %s", like)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return nil, fmt.Errorf("must begin with http:// or https://, %s", like)
	}
	if scheme = strings.ToLower(scheme); scheme == "unix" || scheme == "http+unix" {
		return nil, fmt.Errorf("must begin with http:// or https://; for a Unix socket write http://localhost, and the socket's path with --unix-socket (connect.unix_socket)")
	} else if scheme != "http" && scheme != "https" {
		return nil, fmt.Errorf("must begin with http:// or https://, not %s", oneWord(scheme))
	}
	u, err := url.Parse(scheme + "://" + rest)
	switch {
	case err != nil: // its text would repeat a password
		return nil, fmt.Errorf("is not a URL, %s", like)
	case u.Hostname() == "":
		return nil, fmt.Errorf("names no host; write one, %s", like)
	case u.Port() != "" && !isPort(u.Port()):
		return nil, fmt.Errorf("has port %s, and ports are from 1 to 65535", u.Port())
	case u.Fragment != "":
		return nil, fmt.Errorf("has a part after #, which servers never see; leave it out")
	}
	return u, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// oneWord quotes a scheme, kept short: it may be anything that stood before ://.
func oneWord(s string) string {
	if len(s) > 12 {
		s = s[:12] + "…"
	}
	return strconv.Quote(s + "://")
}

// endpointSuffix is the endpoint that a URL's path names, or empty.
func endpointSuffix(path string) string {
	for _, suffix := range []string{chatPath, completionPath} {
		if strings.HasSuffix(path, suffix) {
			return suffix
		}
	}
	return ""
}

// impliedAPI is the api that a URL asks for by naming its endpoint; else chat.
func impliedAPI(text string) string {
	u, err := url.Parse(text)
	if err == nil && endpointSuffix(strings.TrimRight(u.Path, "/")) == completionPath {
		return "completions"
	}
	return "chat"
}

// Endpoint is the URL of a path such as /v1/chat/completions or /version on the
// target. Where the target's URL is itself the full path of an endpoint, that
// endpoint is it, and others are its neighbours. A query is kept.
func (r *Run) Endpoint(path string) (string, error) {
	u, err := parseURL(r.Target.URL)
	if err != nil {
		return "", fmt.Errorf("target.url: %w", err)
	}
	base := strings.TrimRight(u.Path, "/")
	suffix := endpointSuffix(base)
	base = strings.TrimSuffix(base, suffix)
	versioned, underVersion := strings.CutPrefix(path, "/v1/")
	switch {
	case underVersion && (suffix != "" || version.MatchString(base)):
		path = "/" + versioned
	case !underVersion:
		base = version.ReplaceAllString(base, "")
	}
	u.Path, u.RawPath = base+path, ""
	return u.String(), nil
}

// PublicURL is the target's URL without user name, password and keys.
func (r *Run) PublicURL() string { return publicURL(r.Target.URL) }

func publicURL(text string) string {
	u, err := parseURL(text)
	if err != nil {
		return ""
	}
	if u.User != nil {
		u.User = url.User(Removed)
	}
	if q := u.Query(); len(q) > 0 {
		changed := false
		for name := range q {
			if isSecret(name) {
				q[name], changed = []string{Removed}, true
			}
		}
		if changed {
			u.RawQuery = q.Encode()
		}
	}
	return u.String()
}

// public is the target with Removed for everything secret.
func (t Target) public() Target {
	t.URL = publicURL(t.URL)
	t.Body, _ = withoutSecrets(t.Body).(map[string]any)
	headers := map[string]string{}
	for name := range t.Headers {
		headers[name] = Removed
	}
	t.Headers = headers
	return t
}

// wasRemoved says that u comes from a saved file and lacks its secrets.
func wasRemoved(u *url.URL) bool {
	if u.User != nil && u.User.Username() == Removed {
		return true
	}
	for _, values := range u.Query() {
		if slices.Contains(values, Removed) {
			return true
		}
	}
	return false
}

// Credentials resolves the references of the target: the API key, empty where
// none is named, and all headers to send besides. Getenv is os.Getenv outside
// of tests. Errors say what to set and never hold a value.
func (r *Run) Credentials(getenv func(string) string) (key string, headers map[string]string, err error) {
	t := &r.Target
	headers = make(map[string]string, len(t.Headers)+len(t.HeadersEnv))
	for name, value := range t.Headers {
		headers[name] = value
	}
	for name, variable := range t.HeadersEnv {
		value := strings.TrimSpace(getenv(variable))
		if value == "" {
			return "", nil, fmt.Errorf("target.headers_env.%s: the environment variable %s is not set; set it to the header's value", name, variable)
		}
		if hasControl(value) {
			return "", nil, fmt.Errorf("target.headers_env.%s: the environment variable %s holds a line break or another control character", name, variable)
		}
		headers[name] = value
	}
	switch {
	case t.APIKeyEnv != "":
		key = strings.TrimSpace(getenv(t.APIKeyEnv))
		if key == "" {
			return "", nil, fmt.Errorf("target.api_key_env: the environment variable %s is not set; set it to the API key, such as export %[1]s=…", t.APIKeyEnv)
		}
	case t.APIKeyFile != "":
		data, err := os.ReadFile(t.APIKeyFile)
		if err != nil {
			return "", nil, fmt.Errorf("target.api_key_file: reading the API key: %w", err)
		}
		key = strings.TrimSpace(string(data))
		if key == "" {
			return "", nil, fmt.Errorf("target.api_key_file: %s is empty; put the API key into it", t.APIKeyFile)
		}
	}
	if hasControl(key) {
		return "", nil, fmt.Errorf("target: the API key holds a line break or another control character; give the key alone")
	}
	return key, headers, nil
}

// fewestSecret is how many characters a header's value has at least to be hidden
// from messages; it is removed from files whatever its length.
const fewestSecret = 4

// aroundPlaceholders are the parts of a header's value that stay the same from
// request to request; none where that is all of it.
func aroundPlaceholders(value string) []string {
	parts := load.AroundPlaceholders(value)
	return slices.DeleteFunc(parts, func(s string) bool { return len(strings.TrimSpace(s)) < fewestSecret })
}

// Secrets are the texts that must not appear in any message or file: key and
// headers as Credentials gave them, and what the URL holds. Longest first, so
// that one that contains another is hidden whole.
func (r *Run) Secrets(key string, headers map[string]string) []string {
	secrets := []string{key}
	for _, value := range headers {
		if len(value) < fewestSecret {
			continue // such as a version: hiding it would only spoil messages
		}
		secrets = append(secrets, value)
		if _, token, ok := strings.Cut(value, " "); ok { // Bearer TOKEN
			secrets = append(secrets, token)
		}
		secrets = append(secrets, aroundPlaceholders(value)...)
	}
	secrets = append(secrets, bodySecrets(r.Target.Body)...)
	secrets = append(secrets, r.connectSecrets()...)
	if u, err := parseURL(r.Target.URL); err == nil {
		secrets = append(secrets, secretsOf(u)...)
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return strings.TrimSpace(s) == "" })
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(secrets)
}

// secretsOf are the secrets in a URL, as they are and as the URL writes them.
func secretsOf(u *url.URL) []string {
	var secrets []string
	if u.User != nil {
		name, written, _ := strings.Cut(u.User.String(), ":")
		secret, ok := u.User.Password()
		if !ok { // then the name is the token
			secret, written = u.User.Username(), name
		}
		secrets = append(secrets, secret, written)
	}
	for name, values := range u.Query() {
		if isSecret(name) {
			secrets = append(secrets, values...)
		}
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, written, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err == nil && isSecret(name) {
			secrets = append(secrets, written)
		}
	}
	return secrets
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// validHeaderName follows RFC 9110's token.
func validHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	})
}

func sameHeader(a, b string) bool {
	return http.CanonicalHeaderKey(a) == http.CanonicalHeaderKey(b)
}
