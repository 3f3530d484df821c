package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/dialect"
	"fermata/load"
	"fermata/recording"
	"fermata/spec"
	"fermata/wire"
	"fermata/workload"
)

const (
	scaleHeader   = "X-Fermata-Time-Scale"
	purposeHeader = "X-Fermata-Purpose" // marks requests that belong to no run
	probeTimeout  = 2 * time.Minute     // for a preflight: a cold server may compile kernels first
	probeOutput   = 16                  // tokens of a preflight's answer
	mostProbes    = 3                   // preflight and calibration together
	shortProbe    = 32                  // words of a calibration prompt: far from the wanted length, so that both ends are known
	labelTimeout  = 3 * time.Second

	// Words are short and common: no vocabulary splits them finer or joins more.
	fewestPerWord, mostPerWord = 0.3, 10
)

// A target is who is asked, found out before the run begins.
type target struct {
	name    string    // of one of several
	spec    *spec.Run // with this target alone
	prompts *workload.Workload
	url     string
	header  http.Header
	secrets []string
	options dialect.Options
	models  []string // that the server lists
	labels  map[string]string
	probes  int         // sent so far
	gaveUp  []string    // what was left out because the server refused it
	choice  wire.Choice // of the transport; the same for all targets of a run
	ours    bool        // a server of Fermata's own, which takes the intended length of prompts
	scale   float64     // simulated seconds a second, as the server says; 0 where it does not
	say     func(format string, args ...any)
	step    func(format string, args ...any) // see Options
}

// newTarget resolves where to ask and with which credentials.
func newTarget(s *spec.Run, o Options) (*target, error) {
	key, headers, err := s.Credentials(o.Getenv)
	if err != nil {
		return nil, err
	}
	t := &target{spec: s, options: s.Target.Options, labels: map[string]string{}, say: o.Say, step: o.Step, secrets: s.Secrets(key, headers)}
	t.header = http.Header{
		"Content-Type":    {"application/json"},
		"Accept":          {"text/event-stream"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"fermata/" + o.Version},
	}
	if key != "" {
		t.header.Set("Authorization", "Bearer "+key)
	}
	for name, value := range headers {
		t.header.Set(name, value)
	}
	t.options.IgnoreEOS = s.Expect != "stop" && (s.Workload.Output != "" || s.Workload.Dataset == "")
	d, err := dialect.New(t.options)
	if err != nil {
		return nil, err
	}
	t.url, err = s.Endpoint(d.Path())
	return t, err
}

// dialect is the protocol as the server turned out to take it.
func (t *target) dialect() (dialect.Dialect, error) { return dialect.New(t.options) }

// headerFor is the header of a request with a purpose of its own.
func (t *target) headerFor(purpose string) http.Header {
	h := load.FillHeader(t.header, purpose, purpose, strconv.FormatUint(t.spec.Seed, 10)).Clone()
	h.Set(purposeHeader, purpose)
	return h
}

// awaitReady returns when something answers at the target, or the wait is over.
func (t *target) awaitReady(ctx context.Context, tr wire.Transport, clock wire.Clock) error {
	limit := t.spec.Load.WaitReady
	if limit <= 0 {
		return nil
	}
	url, err := t.spec.Endpoint("/v1/models")
	if err != nil {
		return err
	}
	told := false
	for began := clock.Now(); ; {
		try, cancel := context.WithTimeout(ctx, labelTimeout)
		page, err := wire.Fetch(try, tr, url, t.headerFor("ready"))
		cancel()
		switch {
		case err == nil && page.Status/100 != 5:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case clock.Now()-began > int64(limit):
			saw := fmt.Sprintf("the server is not ready after %s", limit)
			if err == nil {
				saw += fmt.Sprintf(" (status %d)", page.Status)
			}
			return &Failure{saw, "Start it, or wait longer with --wait-ready."}
		}
		if !told {
			t.step("waiting up to %s for %s", limit, t.spec.PublicURL())
			told = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// identify asks which models and which version the server has. Servers that do
// not say are left alone.
func (t *target) identify(ctx context.Context, tr wire.Transport) {
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	if t.fetch(ctx, tr, "/v1/models", &list) {
		for _, m := range list.Data {
			t.models = append(t.models, m.ID)
		}
		if len(list.Data) > 0 && list.Data[0].OwnedBy != "" {
			t.labels["server.owner"] = list.Data[0].OwnedBy
			t.ours = t.ours || list.Data[0].OwnedBy == "fermata"
		}
	}
	var version struct {
		Version string `json:"version"`
	}
	if t.fetch(ctx, tr, "/version", &version) && version.Version != "" {
		t.labels["server.version"] = version.Version
	}
	if t.options.Model == "" && len(t.models) > 0 {
		t.options.Model = t.models[0]
		t.step("model %s, the first that the server lists", t.options.Model)
	}
	t.spec.Target.Model = t.options.Model
}

func (t *target) fetch(ctx context.Context, tr wire.Transport, path string, into any) bool {
	url, err := t.spec.Endpoint(path)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, labelTimeout)
	defer cancel()
	page, err := wire.Fetch(ctx, tr, url, t.headerFor("identify"))
	if err == nil {
		if scale, bad := strconv.ParseFloat(page.Header.Get(scaleHeader), 64); bad == nil && scale > 0 {
			t.scale = scale
		}
	}
	return err == nil && page.Status == http.StatusOK && json.Unmarshal(page.Body, into) == nil
}

// preflight sends one request before anything is measured, so that what would
// fail a thousand times fails once and says why. What the server does not take
// of the request is left out and tried again.
func (t *target) preflight(ctx context.Context, tr wire.Transport, clock wire.Clock, q workload.Request) (recording.Trace, error) {
	if q.OutputTokens == 0 || q.OutputTokens > probeOutput {
		q.OutputTokens = probeOutput
	}
	for {
		trace, err := t.probe(ctx, tr, clock, "preflight", &q)
		if err != nil {
			return trace, err
		}
		if trace.Outcome == recording.OK || ctx.Err() != nil {
			for _, what := range t.gaveUp {
				t.say("%s", what)
			}
			return trace, context.Cause(ctx)
		}
		if t.probes < mostProbes && t.yield(&trace) {
			continue
		}
		keyed := t.header.Get("Authorization") != "" || len(t.spec.Target.Headers)+len(t.spec.Target.HeadersEnv) > 0
		return trace, explain(&trace, asked{url: t.publicURL(), model: t.options.Model, models: t.models, keyed: keyed, http2: t.spec.Connect.HTTP2, by: way(t.spec.Connect)})
	}
}

// way is what connections are made to instead of the server, as it may be shown.
func way(o wire.Options) string {
	if o.UnixSocket != "" {
		return "the Unix socket " + o.UnixSocket
	}
	if u, err := url.Parse(o.Proxy); err == nil && u.Host != "" {
		return "the proxy " + u.Host
	}
	return ""
}

// publicURL is the endpoint as it may be shown.
func (t *target) publicURL() string {
	shown := t.url
	for _, s := range t.secrets {
		if s != "" {
			shown = strings.ReplaceAll(shown, s, spec.Removed) // which a URL may hold
		}
	}
	return shown
}

func (t *target) probe(ctx context.Context, tr wire.Transport, clock wire.Clock, purpose string, q *workload.Request) (recording.Trace, error) {
	d, err := t.dialect()
	if err != nil {
		return recording.Trace{}, err
	}
	t.probes++
	p := load.Probe{
		Dialect: d, Transport: tr, Clock: clock, URL: t.url, Header: t.headerFor(purpose),
		Timeout: min(t.spec.Load.Timeout, probeTimeout), Secrets: t.secrets, Aside: true,
	}
	return p.Ask(ctx, q)
}

// yield gives up one thing that the server refused, and says whether there was
// one to give up.
func (t *target) yield(trace *recording.Trace) bool {
	if trace.HTTPStatus != http.StatusBadRequest && trace.HTTPStatus != http.StatusUnprocessableEntity {
		return false
	}
	o, why := &t.options, strings.ToLower(trace.Error)
	switch {
	case !o.NoUsage && strings.Contains(why, "stream_options"):
		o.NoUsage = true
		t.gaveUp = append(t.gaveUp, "the server takes no stream_options: token counts are ours alone")
	case !o.NewMaxField && strings.Contains(why, "max_completion_tokens"):
		o.NewMaxField = true
	case o.IgnoreEOS:
		o.IgnoreEOS = false
		t.gaveUp = append(t.gaveUp, "the server takes no ignore_eos: answers may be shorter than asked for")
	default:
		return false
	}
	return true
}

// calibrate fits the length of synthetic prompts to the server's own count of
// their tokens, from the preflight and at most two more requests.
func (t *target) calibrate(ctx context.Context, tr wire.Transport, clock wire.Clock, w *workload.Workload, words int, first recording.Trace) error {
	wanted, _ := w.Typical()
	if !first.Prompt.Reported.OK {
		t.say("the server reports no usage: prompts of %d words stand for %d tokens, uncalibrated", words, wanted)
		return nil
	}
	points := []workload.Point{{Words: words, Tokens: int(first.Prompt.Reported.V)}}
	most := int(float64(wanted) / fewestPerWord) // words; a count that asks for more is not believed below
	for next := shortProbe; t.probes < mostProbes && next != words; {
		q := w.Probe(next)
		trace, err := t.probe(ctx, tr, clock, "calibration", &q)
		if err == nil {
			err = context.Cause(ctx) // an answer that we cut says nothing of the server
		}
		if err != nil {
			return err
		}
		if trace.Outcome != recording.OK || !trace.Prompt.Reported.OK {
			t.say("a calibration request ended as %s: prompts are fitted to one count alone", trace.Outcome)
			break
		}
		points = append(points, workload.Point{Words: next, Tokens: int(trace.Prompt.Reported.V)})
		w.Calibrate(workload.Fit(points))
		words, next = next, min(w.Words(), most)
	}
	c := workload.Fit(points)
	if c.PerWord < fewestPerWord || c.PerWord > mostPerWord {
		w.Calibrate(workload.Calibration{})
		t.say("the server's count of prompt tokens does not follow their length (%d for %d words): prompts of %d words stand for %d tokens, uncalibrated",
			points[0].Tokens, points[0].Words, w.Words(), wanted)
		return nil
	}
	w.Calibrate(c)
	t.step("prompts of %d tokens have %d words (tokens a word: %.4g, more a prompt: %.0f)", wanted, w.Words(), c.PerWord, c.Overhead)
	return nil
}

// serverLabels are what the server said about itself.
func (t *target) serverLabels() map[string]string {
	all := maps.Clone(t.labels)
	if len(t.models) > 0 && !slices.Contains(t.models, t.options.Model) {
		all["server.models"] = strings.Join(t.models, ",")
	}
	return all
}
