package spec

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/metrics"
)

// A Tune is several systems whose server settings are to be tried out with one
// budget before they are compared. ReadTune makes one.
type Tune struct {
	Title   string            `yaml:"title"`
	Systems []TuneSystem      `yaml:"systems"`
	Budget  int               `yaml:"budget"`    // measured requests of each system
	Set     map[string]string `yaml:"set"`       // load of all systems: dotted keys of a run file, such as schedule.rate
	SLO     []string          `yaml:"slo"`       // objectives by which a request is good
	Seed    uint64            `yaml:"seed,zero"` // default 1

	doc *conf.Doc
}

// A TuneSystem is a simulated system, or a server that a command starts.
type TuneSystem struct {
	Name     string            `yaml:"name"`
	Spec     string            `yaml:"spec"`     // simulator's spec, or a run file of a server, relative to the file
	Command  string            `yaml:"command"`  // that starts the server; {{NAME}} is a setting, {{port}} a free port
	URL      string            `yaml:"url"`      // of the server; default http://127.0.0.1:{{port}}
	Health   string            `yaml:"health"`   // path that answers 200 once it is ready; default /health
	Ready    time.Duration     `yaml:"ready"`    // longest wait for that; default 10m
	Set      map[string]string `yaml:"set"`      // of this system alone
	Settings []string          `yaml:"settings"` // KEY=VALUE,VALUE of what is tried, as --grid takes them
	Default  map[string]string `yaml:"default"`  // of a command: what its settings are by default; else the first of the values
}

// At gives text the position of a key of the file.
func (t *Tune) At(path, text string) conf.Mistake {
	if t.doc == nil {
		return conf.Mistake{Path: path, Text: text}
	}
	return t.doc.At(path, text)
}

// Port stands in a command and its URL for a free port.
const Port = "{{port}}"

// Filled is the text with its placeholders filled in, and those that have no value.
func Filled(text string, values map[string]string) (filled string, left []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text = strings.ReplaceAll(text, "{{"+name+"}}", values[name])
	}
	rest := text
	for {
		_, after, ok := strings.Cut(rest, "{{")
		name, more, closed := strings.Cut(after, "}}")
		if !ok || !closed {
			return text, left
		}
		left, rest = append(left, name), more
	}
}

// ReadTune reads a file of what is to be tuned, with another budget where that is
// not 0; the error has all mistakes. Paths are relative to it.
func ReadTune(file string, data []byte, budget int) (*Tune, error) {
	t := &Tune{}
	var sets []conf.Setting
	if budget != 0 {
		sets = append(sets, conf.Setting{Path: "budget", Value: fmt.Sprint(budget), From: "--budget"})
	}
	doc, _ := conf.ReadWith(file, data, sets, t)
	t.doc = doc
	var found problems
	if len(t.Systems) == 0 {
		found.add("systems", "must have at least one system, such as {name: a, spec: system.yaml, settings: [\"chunk=256,512\"]}")
	}
	if t.Budget <= 0 {
		found.add("budget", "must be how many requests are measured of each system, such as 4000")
	}
	if len(t.SLO) == 0 {
		found.add("slo", "is missing: goodput needs an objective, such as \"ttft<=1s and tbt.p99<=50ms @99%%\"")
	}
	for i, text := range t.SLO {
		o, err := metrics.ParseObjective(text)
		switch {
		case err != nil:
			found.add(item("slo", i), "%v", err)
		case !o.ByRequest() || o.Terms[0].Name == "error" || o.Terms[0].Name == "schema":
			found.add(item("slo", i), "is not about single requests, and goodput counts those that meet it: bound a request's own figure, such as tbt.p99<=50ms")
		}
	}
	if !doc.Has("seed") {
		t.Seed = defaultSimSeed
	}
	names := map[string]bool{}
	for i := range t.Systems {
		t.Systems[i].check(&found, item("systems", i), names, filepath.Dir(file))
	}
	doc.Report("", found)
	return t, doc.Err()
}

func (s *TuneSystem) check(found *problems, path string, names map[string]bool, dir string) {
	switch {
	case s.Name == "":
		found.add(path+".name", "is missing: tables and folders call a system by it")
	case strings.ContainsAny(s.Name, "/\\") || s.Name == "." || s.Name == ".." || hasControl(s.Name):
		found.add(path+".name", `becomes a folder's name, so that it cannot hold / or \ or control characters`)
	case names[s.Name]:
		found.add(path+".name", "is given twice")
	}
	names[s.Name] = true
	if len(s.Settings) == 0 {
		found.add(path+".settings", "is missing: say what is tried, such as [\"chunk=256,512,1024\"]")
	}
	if s.Spec != "" && !filepath.IsAbs(s.Spec) {
		s.Spec = filepath.Join(dir, s.Spec)
	}
	if s.Command == "" {
		s.checkSimulated(found, path)
		return
	}
	values := map[string]string{"port": "1"}
	for _, text := range s.Settings {
		key, _, _ := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		if !strings.Contains(s.Command, "{{"+key+"}}") {
			found.add(path+".command", "has no {{%s}}, which settings give: write it where the value belongs", key)
		}
		values[key] = "1"
	}
	for name := range s.Default {
		if _, ok := values[name]; !ok {
			found.add(path+".default."+name, "is not among the settings")
		}
	}
	if s.URL == "" {
		s.URL = "http://127.0.0.1:" + Port
	}
	for key, text := range map[string]string{"command": s.Command, "url": s.URL} {
		if _, left := Filled(text, values); len(left) > 0 {
			found.add(path+"."+key, "has {{%s}}, which no setting gives", left[0])
		}
	}
	defaults(&s.Health, "/health")
	defaults(&s.Ready, 10*time.Minute)
	if s.Ready < 0 || !strings.HasPrefix(s.Health, "/") {
		found.add(path+".health", "must be a path such as /health, and ready a time such as 5m")
	}
}

func (s *TuneSystem) checkSimulated(found *problems, path string) {
	if s.Spec == "" {
		found.add(path, "needs a spec, of a simulated system, or the command that starts a server")
	}
	for key, is := range map[string]bool{"url": s.URL != "", "health": s.Health != "", "ready": s.Ready != 0, "default": s.Default != nil} {
		if is {
			found.add(path+"."+key, "is for a command that starts a server, and there is none: leave it out")
		}
	}
}

// Values are the values of a system's placeholders: its defaults with settings
// over them.
func (s *TuneSystem) Values(chosen []conf.Setting, port int) map[string]string {
	values := map[string]string{"port": fmt.Sprint(port)}
	for _, text := range s.Settings {
		key, list, _ := strings.Cut(text, "=")
		first, _, _ := strings.Cut(list, ",")
		values[strings.TrimSpace(key)] = strings.TrimSpace(first)
	}
	maps.Copy(values, s.Default)
	for _, c := range chosen {
		values[c.Path] = c.Value
	}
	return values
}
