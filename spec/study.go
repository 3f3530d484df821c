package spec

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fermata/internal/conf"
)

// A Study is a list of runs as one and what they are to show: several simulated
// systems, each at every point of a grid with several seeds, or several endpoints,
// each asked again and again over hours. ReadStudy makes one.
type Study struct {
	Title      string        `yaml:"title"`
	Systems    []StudySystem `yaml:"systems"`
	Seeds      int           `yaml:"seeds"`      // runs of each point; default 1
	Grid       []string      `yaml:"grid"`       // KEY=VALUE,VALUE, as --grid takes it; default one point
	Statistics []string      `yaml:"statistics"` // of the table, as --metric takes them
	Claims     []StudyClaim  `yaml:"claims"`
	Caveat     string        `yaml:"caveat"` // what a reader must know of all claims

	// Of a study of endpoints, instead of systems: each is asked once in every
	// stretch of that length, for so long.
	Endpoints []StudyEndpoint   `yaml:"endpoints"`
	Every     time.Duration     `yaml:"every"` // default 1h
	For       time.Duration     `yaml:"for"`   // default 24h
	Set       map[string]string `yaml:"set"`   // dotted keys of the run file, of all endpoints

	doc *conf.Doc
}

// At gives text the position of a key of the study's file.
func (s *Study) At(path, text string) conf.Mistake {
	if s.doc == nil {
		return conf.Mistake{Path: path, Text: text}
	}
	return s.doc.At(path, text)
}

// A StudySystem is one system: a simulator's spec with settings over it.
type StudySystem struct {
	Name string            `yaml:"name"`
	Spec string            `yaml:"spec"` // file, relative to the study
	Set  map[string]string `yaml:"set"`  // dotted keys of the spec
}

// A StudyEndpoint is a server that others run, asked over the network.
type StudyEndpoint struct {
	Name      string            `yaml:"name"`
	URL       string            `yaml:"url"`
	Model     string            `yaml:"model"`       // default the first that it lists
	APIKeyEnv string            `yaml:"api_key_env"` // environment variable that holds its key
	Set       map[string]string `yaml:"set"`         // dotted keys of the run file
}

// The schedule of a study of endpoints, unless it says another.
const (
	studyEvery = time.Hour
	studyFor   = 24 * time.Hour
)

// Rounds is how often each endpoint is asked.
func (s *Study) Rounds() int { return int((s.For + s.Every - 1) / s.Every) }

// checkEndpoints looks at a study of endpoints, which has no key of a simulated
// one.
func (s *Study) checkEndpoints(found *problems, doc *conf.Doc, names map[string]bool) {
	for _, key := range []string{"systems", "grid", "seeds"} {
		if doc.Has(key) {
			found.add(key, "is for simulated systems, and this study has endpoints")
		}
	}
	if !doc.Has("every") {
		s.Every = studyEvery
	}
	if !doc.Has("for") {
		s.For = studyFor
	}
	s.checkSchedule(found)
	for i, one := range s.Endpoints {
		path := item("endpoints", i)
		switch {
		case one.Name == "" || strings.ContainsAny(one.Name, "/\\@"):
			found.add(path+".name", "must be a word without / and @: claims, tables and folders call an endpoint by it")
		case names[one.Name]:
			found.add(path+".name", "is given twice")
		}
		names[one.Name] = true
		if !strings.Contains(one.URL, "://") {
			found.add(path+".url", "must begin with http:// or https://, not %q", one.URL)
		}
	}
}

func (s *Study) checkSchedule(found *problems) {
	if s.Every < time.Second {
		found.add("every", "must be 1s or more, not %s", s.Every)
	} else if s.For < s.Every || s.For > 31*24*time.Hour {
		found.add("for", "must be from %s, which is every, to 744h, not %s", s.Every, s.For)
	}
}

// A StudyClaim is something that a statistic is to show: statistic@system, or what
// two of them differ by, or the quotient of two. Of several seeds it is the median.
type StudyClaim struct {
	Text    string `yaml:"text"`
	Paper   string `yaml:"paper"` // what was published
	Of      string `yaml:"of"`
	Minus   string `yaml:"minus"`
	Over    string `yaml:"over"`
	AtLeast string `yaml:"at_least"` // a number, a share such as 55%, or a time; of a quotient a number
	AtMost  string `yaml:"at_most"`
}

// ReadStudy reads a study; the error has all mistakes. Paths are relative to it.
func ReadStudy(file string, data []byte) (*Study, error) {
	s := &Study{}
	doc, _ := conf.Read(file, data, s)
	s.doc = doc
	var found problems
	names := map[string]bool{}
	switch {
	case len(s.Endpoints) > 0:
		s.checkEndpoints(&found, doc, names)
	case len(s.Systems) == 0:
		found.add("systems", "must have at least one system, such as {name: a, spec: system.yaml}, or endpoints one, such as {name: a, url: \"http://127.0.0.1:8000\"}")
	}
	for _, key := range []string{"every", "for", "set"} {
		if len(s.Endpoints) == 0 && doc.Has(key) {
			found.add(key, "is for endpoints, and this study has simulated systems")
		}
	}
	if s.Seeds < 0 || s.Seeds > 1000 || s.Seeds == 0 && doc.Has("seeds") {
		found.add("seeds", "must be between 1 and 1000, not %d", s.Seeds)
	}
	for i := range s.Systems {
		one, path := &s.Systems[i], item("systems", i)
		switch {
		case one.Name == "":
			found.add(path+".name", "is missing: claims and tables call a system by it")
		case names[one.Name]:
			found.add(path+".name", "is given twice")
		}
		names[one.Name] = true
		if one.Spec == "" {
			found.add(path+".spec", "is missing: name the simulator's spec")
		} else if !filepath.IsAbs(one.Spec) {
			one.Spec = filepath.Join(filepath.Dir(file), one.Spec)
		}
	}
	for i := range s.Claims {
		s.Claims[i].check(&found, item("claims", i), names)
	}
	doc.Report("", found)
	return s, doc.Err()
}

func (c *StudyClaim) check(found *problems, path string, systems map[string]bool) {
	for key, text := range map[string]string{"of": c.Of, "minus": c.Minus, "over": c.Over} {
		_, system, ok := strings.Cut(text, "@")
		switch {
		case text == "" && key != "of":
		case !ok:
			found.add(path+"."+key, "must be statistic@system, such as tbt.p99@%s, not %q", "NAME", text)
		case !systems[system]:
			found.add(path+"."+key, "names a system %q, which the study does not have", system)
		}
	}
	if c.Text == "" {
		found.add(path+".text", "is missing: say what is claimed")
	}
	if c.Minus != "" && c.Over != "" {
		found.add(path+".over", "cannot be given beside minus")
	}
	if c.AtLeast == "" && c.AtMost == "" {
		found.add(path, "has no bound: give at_least, at_most or both")
	}
	for key, text := range map[string]string{"at_least": c.AtLeast, "at_most": c.AtMost} {
		if _, err := Quantity(text); text != "" && err != nil {
			found.add(path+"."+key, "%v", err)
		}
	}
}

// Quantity reads a number, a share such as 55%, or a time, which becomes
// nanoseconds.
func Quantity(text string) (float64, error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err == nil {
			return v / 100, nil
		}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("must be a number, a share such as 55%%, or a time such as 25s, not %q", text)
	}
	return float64(d), nil
}
