package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"fermata/compare"
	"fermata/internal/term"
	"fermata/metrics"
)

// A Portrayed is a result with what its pictures are drawn from.
type Portrayed struct {
	Result   *metrics.Result
	Portrait *metrics.Portrait // nil: no pictures of this run
}

//go:embed html/page.tmpl html/page.css html/page.js
var htmlFiles embed.FS

// htmlTemplate escapes by context whatever comes from servers.
var htmlTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.tmpl").Funcs(template.FuncMap{
		"toneClass": toneClass, "plain": term.Plain, "spoken": spoken,
	}).ParseFS(htmlFiles, "html/page.tmpl"))
})

// A part of a text is words, or a command that stood between backquotes.
type part struct {
	Text    string
	Command bool
}

// spoken are the parts of a text for people.
func spoken(text string) (parts []part) {
	marked := strings.Split(term.Plain(text), "`")
	if len(marked)%2 == 0 { // one is alone
		return []part{{Text: term.Plain(text)}}
	}
	for i, t := range marked {
		if t != "" {
			parts = append(parts, part{t, i%2 == 1})
		}
	}
	return parts
}

// An htmlPage is what the template is filled with.
type htmlPage struct {
	runs   []Portrayed
	names  []string // short ones, for columns
	titles []string // in legends
	sweep  *Sweep   // whose points the runs are; nil of other pages

	Title, Version string
	CSP            string
	Style, Script  template.HTML
	Verdict        fact
	Verdicts       []fact // of each of several runs
	Warnings       []metrics.Warning
	Notes          []string
	Headline       *table // of runs; nil of a document about many
	HeadlineNotes  []string
	Summary        []block // before it: what a comparison found, or all that such a document says
	Spots          []spot
	Sections       []section
	Single         *singles
	Blocks         []block
	Runs           []runBlocks
	Sampling       []string
}

// A section is a heading with pictures, and a note on which of them there are not.
type section struct {
	ID, Title string
	Note      string
	Pictures  []picture
}

// runBlocks are all figures of one of several runs.
type runBlocks struct {
	Name   string
	Blocks []block
}

// HTML writes one page about one or several results that needs nothing else: no
// network, no other file. Its scripts only show what is in it, and nothing but them
// can run in it. The same results give the same bytes. A comparison of these runs
// leads the page; nil without one.
func HTML(w io.Writer, runs []Portrayed, c *compare.Comparison) error {
	if len(runs) == 0 {
		return errNoResults
	}
	h, err := newHTMLPage(runs, c)
	if err != nil {
		return err
	}
	if err := htmlTemplate().Execute(w, h); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func newHTMLPage(runs []Portrayed, c *compare.Comparison) (*htmlPage, error) {
	h := &htmlPage{runs: runs}
	results := make([]*metrics.Result, len(runs))
	for i := range runs {
		results[i] = runs[i].Result
	}
	names, legends := columnNames(results)
	if len(runs) == 1 {
		names = legends
	}
	if c != nil {
		if of, full := comparedNames(c, results); len(of) == len(runs) {
			names, legends = of, full
		}
	}
	h.names = names
	for i, n := range h.names {
		if legends[i] != n {
			n = joined(" · ", n, legends[i])
		}
		if c == nil && (slices.Index(legends, legends[i]) < i || slices.Contains(legends[i+1:], legends[i])) {
			n = joined(" · ", n, loadName(results[i])) // runs of one name are told apart by their load
		}
		h.titles = append(h.titles, n)
	}
	if err := h.frame(results[0].Tool.Version, listed(h.titles)); err != nil {
		return nil, err
	}
	h.words(results, legends, c)
	h.Spots = h.spots(c)
	h.Single = h.singles()
	h.pictures()
	h.Sampling = h.sampling()
	return h, nil
}

// loadName is the rate that a run offered; empty where it is not known.
func loadName(r *metrics.Result) string {
	if r.Load.OfferedRPS == nil {
		return ""
	}
	return term.Number(*r.Load.OfferedRPS, false) + " requests/s"
}

// frame is what every page has: its style, its script, and the policy that lets
// nothing else in.
func (h *htmlPage) frame(version, title string) error {
	style, err := htmlFiles.ReadFile("html/page.css")
	if err != nil {
		return err
	}
	script, err := htmlFiles.ReadFile("html/page.js")
	if err != nil {
		return err
	}
	h.CSP = "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) + "; img-src data:; base-uri 'none'; form-action 'none'"
	h.Style = template.HTML("<style>" + string(style) + "</style>")
	h.Script = template.HTML("<script>" + string(script) + "</script>")
	h.Version, h.Title = version, "Fermata: "+title
	return nil
}

// hashOf is how a Content-Security-Policy names a text.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// words are the parts that the other reports have too.
func (h *htmlPage) words(results []*metrics.Result, legends []string, c *compare.Comparison) {
	var said, noted []metrics.Warning
	if len(results) == 1 {
		p := single(results[0])
		h.Verdict, h.Blocks = p.verdict, withoutWarnings(p.blocks)
		said, noted = split(warnings(results[0]))
	} else {
		p := besideNamed(results, h.names, legends)
		h.Verdict, h.Blocks = p.verdict, withoutWarnings(p.blocks)
		said, noted = split(together(results, h.names))
		for i, r := range results {
			v := verdict(r)
			h.Verdicts = append(h.Verdicts, fact{h.titles[i], v.text, v.tone})
			h.Runs = append(h.Runs, runBlocks{h.titles[i], withoutWarnings(single(r).blocks)})
		}
	}
	if c != nil {
		p := versus(c)
		h.Verdict, h.Summary = p.verdict, withoutWarnings(p.blocks)
		said = append(slices.Clone(c.Warnings), said...)
	}
	h.Warnings = said
	h.Notes = notes(noted).notes
	h.Headline, h.HeadlineNotes = h.headline(results)
}

func withoutWarnings(blocks []block) []block {
	var kept []block
	for _, b := range blocks {
		if b.title != "Warnings" && b.title != "Notes" && !strings.HasPrefix(b.title, "Blind spots") {
			kept = append(kept, b)
		}
	}
	return kept
}

// headlineKeys are the metrics of the first table.
var headlineKeys = []string{"ttft_due", "scheduling_delay", "tbt", "tpot", "normalized_latency", "e2e", "gap_longest", "stall_longest"}

// headline is the first table: each metric with its intervals, its unit and how many
// values it rests on; nil where nothing was measured, which a note says.
func (h *htmlPage) headline(results []*metrics.Result) (*table, []string) {
	t := &table{columns: []column{
		{head: "metric", left: true},
		{head: "run", left: true},
		{head: "p50"},
		{head: "[95 %]", left: true},
		{head: "p99"},
		{head: "[95 %]", left: true},
		{head: "max"},
		{head: "values"},
		{head: "requests"},
		{head: "missing"},
	}}
	var rows []named
	for _, key := range headlineKeys {
		for _, x := range measures {
			if x.key != key {
				continue
			}
			for i, r := range results {
				d := x.of(&r.Metrics)
				if d == nil {
					continue
				}
				rows = append(rows, named{x.label, d.Unit, d})
				t.rows = append(t.rows, []cell{
					text(x.label), text(h.nameBeside(i)), quantileCell(d.Unit, d, 0.5), intervalCell(d.Unit, d, 0.5), quantileCell(d.Unit, d, 0.99), intervalCell(d.Unit, d, 0.99),
					text(amountOrNone(d.Unit, d.Max)), text(term.Count(d.N)), text(term.Count(d.NRequests)), missingCell(d.Missing),
				})
			}
		}
	}
	for i, r := range results {
		t.rows = append(t.rows, fluidRow(r, h.nameBeside(i))...)
	}
	if len(t.rows) == 0 {
		return nil, []string{"No measured request has a time."}
	}
	t.dropIfEmpty(1)
	return t, legend(shown{rows, []stat{{p: 0.5}, {p: 0.99}}})
}

// nameBeside is the name of run i where there are others.
func (h *htmlPage) nameBeside(i int) string {
	if len(h.runs) < 2 {
		return ""
	}
	return h.names[i]
}

// fluidRow is the fluid rate, decode, as a row of the first table.
func fluidRow(r *metrics.Result, name string) [][]cell {
	var rows [][]cell
	for i := range r.FluidRate {
		f := &r.FluidRate[i]
		if f.Variant != metrics.Decode {
			continue
		}
		rate := text("infeasible")
		if f.Feasible && f.TokensPS != nil {
			rate = cell{text: term.Number(*f.TokensPS, false) + " tokens/s", mark: marks[f.Status]}
		}
		rows = append(rows, []cell{
			text("fluid rate"), text(name), rate,
			{text: interval("tokens/s", f.Low, f.High), tone: term.Faint},
			{},
			{},
			{},
			{},
			text(term.Count(r.Load.Measured)),
			{},
		})
	}
	return rows
}

// sampling says which pictures show some of the requests only.
func (h *htmlPage) sampling() []string {
	var all []string
	for i := range h.runs {
		p := h.runs[i].Portrait
		if p == nil {
			continue
		}
		who := ""
		if len(h.runs) > 1 {
			who = h.titles[i] + ": "
		}
		if int64(len(p.Lives)) < p.Requests {
			all = append(all, fmt.Sprintf("%spictures with a mark for each request show %s of %s requests, chosen by the run's seed", who, term.Count(int64(len(p.Lives))), term.Count(p.Requests)))
		}
		if int64(len(p.Streams)) < p.Measured {
			all = append(all, fmt.Sprintf("%severy arrival of %s of %s measured requests is on this page; --request N of fermata report adds another", who, term.Count(int64(len(p.Streams))), term.Count(p.Measured)))
		}
	}
	if len(all) > 0 {
		all = append(all, "percentiles, intervals, verdicts and distribution curves are of all requests")
	}
	return all
}

// Template access to what the other reports keep to themselves.

// Title of a block.
func (b block) Title() string { return b.title }

// Facts of a block.
func (b block) Facts() []fact { return b.facts }

// Table of a block.
func (b block) Table() *table { return b.table }

// Notes of a block.
func (b block) Notes() []string { return b.notes }

// Key of a fact.
func (f fact) Key() string { return f.key }

// Text of a fact.
func (f fact) Text() string { return f.text }

// Class of a fact.
func (f fact) Class() string { return toneClass(f.tone) }

// Columns of a table.
func (t *table) Columns() []column { return t.columns }

// Rows of a table.
func (t *table) Rows() [][]cell { return t.rows }

// Head of a column.
func (c column) Head() string { return c.head }

// Class of a column's cells.
func (c column) Class() string {
	if c.left {
		return "l"
	}
	return ""
}

// Text of a cell with its mark.
func (c cell) Text() string { return c.text + c.mark }

// Class of a cell.
func (c cell) Class() string { return toneClass(c.tone) }

// ColumnClass is that of column i.
func (t *table) ColumnClass(i int) string { return t.columns[i].Class() }

func toneClass(t term.Tone) string {
	switch t {
	case term.Good:
		return "good"
	case term.Bad:
		return "bad"
	case term.Care:
		return "care"
	case term.Faint:
		return "faint"
	case term.Strong:
		return "strong"
	}
	return ""
}
