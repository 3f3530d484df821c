package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"fermata/metrics"
)

// chromium is the browser's program. Where there is none the test is skipped, or
// fails where FERMATA_BROWSER says that there must be one, as in CI.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("FERMATA_BROWSER") != "" {
		t.Fatal("no Chromium is installed: apt-get install chromium")
	}
	t.Skip("no Chromium is installed: tools/chromium.sh installs Debian's")
	return ""
}

// A tab is a page open in a browser, with all that it complained of.
type tab struct {
	ctx context.Context

	mu   sync.Mutex
	said []string
}

// openTab opens a page from disk in a browser of its own.
func openTab(t testing.TB, text string, width, height int64) *tab {
	t.Helper()
	b := startBrowser(t, width, height)
	b.load(t, text)
	return b
}

// startBrowser starts a browser with an empty tab.
func startBrowser(t testing.TB, width, height int64) *tab {
	t.Helper()
	ctx, stop := chromedp.NewExecAllocator(context.Background(), chromedp.Headless, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-background-networking", true), chromedp.WSURLReadTimeout(2*time.Minute))
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(stop)
	b := &tab{ctx: ctx}
	b.do(t, chromedp.EmulateViewport(width, height)) // starts the browser
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// load opens a page from disk and waits for the end of its script.
func (b *tab) load(t testing.TB, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.Navigate("file://"+path))
	if ready := eval[string](t, b, `document.documentElement.dataset.ready || ""`); ready != "yes" {
		t.Errorf("the page's script did not come to its end: %q", b.complaints())
	}
}

// hear keeps what the page complains of.
func (b *tab) hear(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *runtime.EventConsoleAPICalled:
		b.said = append(b.said, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.said = append(b.said, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
	case *cdppage.EventJavascriptDialogOpening:
		b.said = append(b.said, "a dialog: "+e.Message)
	}
}

func (b *tab) do(t testing.TB, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// js runs a script for what it does.
func (b *tab) js(t testing.TB, script string) {
	t.Helper()
	b.do(t, chromedp.Evaluate[chromedp.Void](script))
}

// complaints are what the page's console has shown since the last call.
func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.said
	b.said = nil
	return said
}

// eval is what a script comes to.
func eval[T any](t testing.TB, b *tab, script string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%v in %s", err, script)
	}
	return v
}

// shoot keeps a picture of the page where FERMATA_SHOTS names a folder.
func (b *tab) shoot(t testing.TB, name string) {
	t.Helper()
	dir := os.Getenv("FERMATA_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// drawn is what the browser says of every picture.
type drawn struct {
	ID, Name, Title string
	Shown           int // pictures that take room
	Marks           int
	Width, Height   float64
	Rows            int
}

const allDrawn = `[...document.querySelectorAll("figure.chart")].map(f => {
	const shown = [...f.querySelectorAll("svg.plot")].filter(s => s.getClientRects().length > 0);
	const s = shown[0], r = s ? s.getBoundingClientRect() : {width: 0, height: 0};
	return {ID: f.id, Name: s ? s.getAttribute("aria-label") : "", Title: f.querySelector("h3").textContent, Shown: shown.length,
		Marks: s ? s.querySelectorAll("path,rect").length : 0, Width: r.width, Height: r.height, Rows: f.querySelector(".data tbody").rows.length,
		Role: s ? s.getAttribute("role") : ""};
})`

// wellDrawn checks that nothing complains or runs but our script, that every picture
// is drawn, named and inside a window of that width, and that these are among them.
func (b *tab) wellDrawn(t *testing.T, width int64, ids ...string) {
	t.Helper()
	if said := b.complaints(); len(said) > 0 {
		t.Errorf("the browser says %q", said)
	}
	if n := eval[int](t, b, `document.querySelectorAll("img, script:not([type='application/json'])").length`); n != 1 {
		t.Errorf("%d images and scripts, want ours alone", n)
	}
	if over := eval[int](t, b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		t.Errorf("the page is %d px wider than the window: %s", over, eval[string](t, b, `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest(".scroll, svg")).map(e => e.tagName + "." + e.className).slice(0, 8).join(", ")`))
	}
	found := map[string]bool{}
	for _, d := range eval[[]drawn](t, b, allDrawn) {
		found[d.ID] = true
		if d.Shown != 1 || d.Name == "" || d.Title == "" || d.Marks < 3 || d.Rows < 1 || d.Width < 300 || d.Height < 70 || d.Width > float64(width) {
			t.Errorf("%+v", d)
		}
	}
	for _, id := range ids {
		if !found[id] {
			t.Errorf("there is no picture %s", id)
		}
	}
}

func browserRuns(t testing.TB) []Portrayed {
	return []Portrayed{
		made{name: hostileName, model: hostileName, requests: 120, tokens: 30, rate: 4, freeze: true, fail: true, deadlines: "quadratic:100ms,150us,10ns"}.portrayed(t),
		made{name: "smooth", model: hostileName, requests: 120, tokens: 30, rate: 8, bunch: 3}.portrayed(t),
	}
}

// In a real browser, from disk, wide and narrow: nothing complains, nothing that a
// server said runs, every picture is drawn, named and inside the window.
func TestBrowserDrawsEverything(t *testing.T) {
	chromium(t)
	text := pageText(t, browserRuns(t)...)
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			b := openTab(t, text, width, 900)
			if name := eval[string](t, b, `document.getElementById("pick-run").options[0].textContent`); !strings.Contains(name, hostileName) {
				t.Errorf("the run is called %q", name)
			}
			b.wellDrawn(
				t, width, "request", "raster-0", "raster-1", "ttft-prompt", "cdf-ttft", "cdf-scheduling-delay", "cdf-tbt", "cdf-tpot", "cdf-normalized-latency", "cdf-silence", "cdf-misses", "ttft-parts",
				"fluidity-gap", "rates", "load-0", "load-1", "in-flight", "tokens-per-event", "events-per-read", "frontier-ttft", "frontier-tbt", "frontier-goodput", "box-ttft", "box-tbt",
			)
			b.shoot(t, fmt.Sprintf("page-%d", width))
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}); err != nil {
				t.Fatal(err)
			}
			if ink := eval[string](t, b, `getComputedStyle(document.body).backgroundColor`); ink != "rgb(20, 22, 26)" {
				t.Errorf("in the dark the paper is %s", ink)
			}
			b.shoot(t, fmt.Sprintf("page-%d-dark", width))
		})
	}
}

// The policy holds against whatever gets into the page all the same.
func TestBrowserRunsNothingElse(t *testing.T) {
	chromium(t)
	b := openTab(t, pageText(t, browserRuns(t)[1]), 1280, 900)
	if said := b.complaints(); len(said) > 0 {
		t.Errorf("the browser says %q", said)
	}
	got := eval[string](t, b, `(() => {
		window.ran = "";
		const s = document.createElement("script"); s.textContent = "window.ran += 'script '"; document.body.append(s);
		const d = document.createElement("div"); d.innerHTML = "<button onclick=\"window.ran += 'handler '\">x</button><p style='color: rgb(1, 2, 3)'>y</p>"; document.body.append(d);
		d.querySelector("button").click();
		if (getComputedStyle(d.querySelector("p")).color === "rgb(1, 2, 3)") window.ran += "style ";
		return window.ran;
	})()`)
	if got != "" {
		t.Errorf("these ran in spite of the policy: %s", got)
	}
	said := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(said, "Content Security Policy"); time.Sleep(10 * time.Millisecond) {
		if said += strings.Join(b.complaints(), "\n"); time.Now().After(end) {
			t.Fatalf("nothing was refused: %s", said)
		}
	}
}

// Pointing reads values out, keys do as well, and a click into the raster shows the
// request.
func TestBrowserReadsValues(t *testing.T) {
	chromium(t)
	b := openTab(t, pageText(t, browserRuns(t)...), 1280, 900)
	point := func(id string, right, down float64) string {
		at := eval[[]float64](t, b, fmt.Sprintf(`(() => { const f = document.getElementById(%q); f.scrollIntoView({block: "center"});
			const s = [...f.querySelectorAll("svg.plot")].find(s => s.getClientRects().length > 0), r = s.getBoundingClientRect(), k = r.width / s.viewBox.baseVal.width;
			const [l, t, w, h] = s.dataset.box.split(" ").map(Number);
			return [r.left + (l + w * %g) * k, r.top + (t + h * %g) * k]; })()`, id, right, down))
		b.do(t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
		return eval[string](t, b, fmt.Sprintf(`(() => { const p = document.querySelector("#%s .tip"); return p.hidden ? "" : p.textContent; })()`, id))
	}
	// At the far right of a distribution everything is below.
	if tip := point("cdf-tbt", 1, 0.5); !strings.Contains(tip, "TBT (ms)") || !strings.Contains(tip, "share at or below 1 ·") || strings.Count(tip, "\n") != 1 {
		t.Errorf("pointing says %q", tip)
	}
	if tip := point("rates", 0.15, 0.9); !strings.Contains(tip, "1/median TPOT") {
		t.Errorf("pointing at a bar says %q", tip)
	}
	if tip := point("raster-0", 0.5, 0.5/120); !strings.Contains(tip, "request 0 ·") {
		t.Errorf("pointing at the first row says %q", tip)
	}
	b.js(t, `document.querySelector("#cdf-ttft .stage").focus()`)
	b.do(t, chromedp.KeyEvent("\u0303"))
	first := eval[string](t, b, `document.querySelector("#cdf-ttft .tip").textContent`)
	b.do(t, chromedp.KeyEvent("\u0303"), chromedp.KeyEvent("\u0303"))
	second := eval[string](t, b, `document.querySelector("#cdf-ttft .tip").textContent`)
	if first == "" || second == "" || first == second {
		t.Errorf("the arrow key reads %q, then %q", first, second)
	}
	if said := b.complaints(); len(said) > 0 {
		t.Errorf("the browser says %q", said)
	}
}

// The picker shows the worst request at first, and any other by its number; what it
// says is what the recording has.
func TestBrowserPicks(t *testing.T) {
	chromium(t)
	runs := browserRuns(t)
	b := openTab(t, pageText(t, runs...), 1280, 900)
	said := func() string { return eval[string](t, b, `document.getElementById("pick-said").textContent`) }
	worst := streamOf(runs[0].Portrait, runs[0].Portrait.Worst.V)
	if s := said(); !strings.Contains(s, fmt.Sprintf("Request %d of", worst.Index)) || !strings.Contains(s, "longest silence 4.") {
		t.Errorf("at first: %s", s)
	}
	set := func(id, value, event string) {
		b.js(t, fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event(%q)); })()`, id, value, event))
	}
	// The script plays back as metrics does: late tokens at 25 ms, of every request.
	set("pick-gap", "25000000", "change")
	for _, i := range []int{10, 27, 48, 60} {
		s := streamOf(runs[0].Portrait, int64(i))
		set("pick-index", fmt.Sprint(i), "input")
		due, late := s.Deadline.V, 0
		for _, at := range s.At {
			if at > due {
				late++
			}
			due = max(at, due) + 25_000_000
		}
		// A token within a twentieth of a millisecond of its deadline may be either.
		got, told := said(), 0
		if m := regexp.MustCompile(`(\d+) tokens? late`).FindStringSubmatch(got); m != nil {
			told, _ = strconv.Atoi(m[1])
		} else if !strings.Contains(got, "no token late") {
			t.Errorf("request %d: %s", i, got)
		}
		if told < late-1 || told > late+1 {
			t.Errorf("request %d: %s; want %d late", i, got, late)
		}
		if rows := eval[int](t, b, `document.querySelector("#request .data tbody").rows.length`); rows != len(s.At) {
			t.Errorf("request %d has %d rows, want %d", i, rows, len(s.At))
		}
	}
	set("pick-index", "999999", "input")
	if s := said(); !strings.Contains(s, "is not on this page") {
		t.Errorf("of a request that is not there: %s", s)
	}
	set("pick-run", "1", "change")
	set("pick-kind", "latest", "change")
	if s := said(); !strings.Contains(s, fmt.Sprintf("Request %d of", runs[1].Portrait.Latest.V)) {
		t.Errorf("the latest first token: %s", s)
	}
	// A row of the raster leads here.
	b.js(t, `document.getElementById("raster-0").scrollIntoView({block: "center"})`)
	b.js(t, `(() => { const f = document.getElementById("raster-0"), s = [...f.querySelectorAll("svg.plot")].find(s => s.getClientRects().length > 0), r = s.getBoundingClientRect();
		const [l, t, w, h] = s.dataset.box.split(" ").map(Number), k = r.width / s.viewBox.baseVal.width;
		f.querySelector(".stage").dispatchEvent(new MouseEvent("click", {clientX: r.left + (l + w / 2) * k, clientY: r.top + (t + h * 27.5 / 120) * k, bubbles: true})); })()`)
	if s := said(); !strings.HasPrefix(s, "Request 27 of") {
		t.Errorf("a click into the raster: %s", s)
	}
	if said := b.complaints(); len(said) > 0 {
		t.Errorf("the browser says %q", said)
	}
}

// A blind spot leads to the requests behind it and to its picture.
func TestBrowserFollowsBlindSpots(t *testing.T) {
	chromium(t)
	run := made{name: "frozen", requests: 120, tokens: 30, rate: 4, freeze: true}.portrayed(t)
	i := slices.IndexFunc(run.Result.BlindSpots, func(s metrics.BlindSpot) bool { return s.Code == metrics.StallHidden })
	if i < 0 {
		t.Fatalf("no hidden stall in %+v", run.Result.BlindSpots)
	}
	behind := run.Result.BlindSpots[i].Requests
	if len(behind) < 2 {
		t.Fatalf("behind it are %v", behind)
	}
	b := openTab(t, pageText(t, run), 1280, 900)
	if got := eval[[]string](t, b, `[...document.querySelectorAll("#blind-spots a.pick")].map(a => a.textContent)`); len(got) != len(behind) || got[1] != fmt.Sprint(behind[1]) {
		t.Errorf("links to %v, want %v", got, behind)
	}
	b.js(t, `document.querySelectorAll("#blind-spots a.pick")[1].click()`)
	if s := eval[string](t, b, `document.getElementById("pick-said").textContent`); !strings.HasPrefix(s, fmt.Sprintf("Request %d of", behind[1])) {
		t.Errorf("the link shows: %s", s)
	}
	for _, to := range eval[[]string](t, b, `[...document.querySelectorAll("#blind-spots .links a:not(.pick)")].map(a => a.getAttribute("href"))`) {
		if to != "#cdf-silence" || !eval[bool](t, b, fmt.Sprintf(`document.querySelector(%q) !== null`, to)) {
			t.Errorf("the picture is %s", to)
		}
	}
}

// On paper, whatever the reader's choice of light or dark: white, every picture and
// every table of figures there, the data of all but the longest too, and nothing that
// the sheet cuts off.
func TestBrowserPrints(t *testing.T) {
	b := startBrowser(t, 718, 1000) // A4 with margins of 1 cm
	pages := []documentCase{{name: "runs", write: func(w io.Writer) error { return HTML(w, browserRuns(t), nil) }}}
	for _, d := range documents(t) {
		if d.name == "sweep" || d.name == "capacities" || d.name == "study" {
			pages = append(pages, d)
		}
	}
	for _, d := range pages {
		t.Run(d.name, func(t *testing.T) {
			b.load(t, textOf(t, d.write))
			media := emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
				t.Fatal(err)
			}
			b.wellDrawn(t, 718, d.ids...)
			if paper := eval[[]string](t, b, `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, getComputedStyle(document.documentElement).getPropertyValue("--s0").trim()]`); !slices.Equal(paper, []string{"rgb(255, 255, 255)", "rgb(0, 0, 0)", "#0072b2"}) {
				t.Errorf("paper, ink and the first colour are %s", paper)
			}
			const unseen = `[...document.querySelectorAll("%s")].filter(e => !e.checkVisibility({contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true}) || e.getBoundingClientRect().height < 8).map(e => (e.closest("[id]") || e).id)`
			for _, what := range []string{"svg.plot.wide", ".chart:not(.whole) svg.plot", "table.figures", ".data:not(.long) table", "dl:not(.small) > dt", ".not-printed"} {
				if n := eval[[]string](t, b, fmt.Sprintf(unseen, what)); len(n) > 0 {
					t.Errorf("%s of %v are not on the paper", what, n)
				}
			}
			if n := eval[int](t, b, `[...document.querySelectorAll("details.long, .tip, .skip")].filter(e => e.checkVisibility()).length`); n > 0 {
				t.Errorf("%d things are on the paper that are of no use there", n)
			}
			over := eval[[]string](t, b, `[...document.querySelectorAll("body *")].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.right > innerWidth + 1 || r.left < -1); }).map(e => e.tagName + " in " + (e.closest("[id]") || e).id + ": " + e.textContent.slice(0, 30)).slice(0, 8)`)
			if len(over) > 0 {
				t.Errorf("beyond the sheet: %q", over)
			}
			hidden := eval[int](t, b, `[...document.querySelectorAll("main *")].filter(e => e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== "visible" && e.clientHeight > 0).length`)
			if hidden > 0 {
				t.Errorf("%d boxes hide a part of what is in them", hidden)
			}
			b.shoot(t, d.name+"-print")
			pdf, err := chromedp.Call(b.ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{})
			if err != nil {
				t.Fatal(err)
			}
			if len(pdf.Data) < 10_000 {
				t.Errorf("a PDF of %d bytes", len(pdf.Data))
			}
			if n := eval[int](t, b, `document.querySelectorAll("details[open]").length`); n > 0 {
				t.Errorf("after printing %d tables stay open", n)
			}
			if said := b.complaints(); len(said) > 0 {
				t.Errorf("the browser says %q", said)
			}
		})
	}
}

// A table is saved as CSV as it stands.
func TestBrowserSavesCSV(t *testing.T) {
	chromium(t)
	runs := browserRuns(t)
	runs[0].Result.Run.Name, runs[1].Result.Run.Name = "a,b", "=1+1"
	b := openTab(t, pageText(t, runs...), 1280, 900)
	b.js(t, `(() => { const real = URL.createObjectURL; URL.createObjectURL = (x) => { window.saved = x; return real(x); };
		HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };
		document.querySelector("#rates .csv").click(); })()`)
	text := eval[string](t, b, `window.saved.text()`)
	lines := strings.Split(strings.TrimSpace(text), "\r\n")
	if len(lines) != 6 || lines[0] != "run,rate,tokens a second" || !strings.HasPrefix(lines[1], `"a,b",1/median TPOT,`) {
		t.Errorf("the file is %q", text)
	}
	if !strings.HasPrefix(lines[5], `'=1+1,"fluid, 1/D_d*",`) { // the other has failures over 1 %, so no feasible gap
		t.Errorf("the last line is %q", lines[5])
	}
	if name := eval[string](t, b, `window.savedAs`); name != "fermata-rates.csv" {
		t.Errorf("it is called %q", name)
	}
}
