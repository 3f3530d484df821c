package experiment

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"fermata/recording"
)

// A published row is what a test reads of a file by itself.
type published struct {
	at            time.Duration // from the file's first row; of lengths alone 0
	input, output int32
}

func number(t testing.TB, text string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

// readPublished reads a published file without the help of workload.
func readPublished(t testing.TB, path string, timed bool) (all []published) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if filepath.Ext(path) == ".jsonl" {
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var row struct {
				Timestamp int64
				Input     int32 `json:"input_length"`
				Output    int32 `json:"output_length"`
			}
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			all = append(all, published{time.Duration(row.Timestamp) * time.Millisecond, row.Input, row.Output})
		}
		return all
	}
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var first time.Time
	for i, row := range rows[1:] {
		if !timed {
			all = append(all, published{0, number(t, row[0]), number(t, row[1])})
			continue
		}
		at, err := time.Parse("2006-01-02 15:04:05.0000000", row[0])
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = at
		}
		all = append(all, published{at.Sub(first), number(t, row[1]), number(t, row[2])})
	}
	return all
}

// rankCorrelation is Spearman's, by the definition: Pearson's of mean ranks.
func rankCorrelation(pairs []published) float64 {
	rank := func(of func(published) int32) []float64 {
		sorted := make([]int, len(pairs))
		for i := range pairs {
			sorted[i] = int(of(pairs[i]))
		}
		sort.Ints(sorted)
		ranks := make([]float64, len(pairs))
		for i := range pairs {
			v := int(of(pairs[i]))
			from, to := sort.SearchInts(sorted, v), sort.SearchInts(sorted, v+1)
			ranks[i] = float64(from+1+to) / 2
		}
		return ranks
	}
	x, y := rank(func(p published) int32 { return p.input }), rank(func(p published) int32 { return p.output })
	var sx, sy, sxx, syy, sxy float64
	n := float64(len(x))
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
	}
	for i := range x {
		dx, dy := x[i]-sx/n, y[i]-sy/n
		sxx, syy, sxy = sxx+dx*dx, syy+dy*dy, sxy+dx*dy
	}
	return sxy / math.Sqrt(sxx*syy)
}

func medians(pairs []published) (input, output int32) {
	var in, out []int32
	for _, p := range pairs {
		in, out = append(in, p.input), append(out, p.output)
	}
	slices.Sort(in)
	slices.Sort(out)
	return in[(len(in)-1)/2], out[(len(out)-1)/2]
}

// Each published file drives a run: what the server counted of each request is its
// row, pair by pair, so that counts, medians and correlation are the file's; the
// moments are the trace's, divided by the speed-up to the ns, and nothing leaves
// before its own or later than the lateness that is told. Excerpts stand in for the
// files, unless FERMATA_DATA names the folder that has them.
func TestPublishedFilesArePlayed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, excerpt  string
		rows           int // of the excerpt that are played
		speedup, whole int // of the excerpt, of the file; 0: lengths alone
	}{
		{"azure_llm_2023_conv.csv", "azure_2023_conv.csv", 500, 40, 100},
		{"azure_llm_2023_code.csv", "azure_2023_code.csv", 500, 100, 100},
		{"mooncake_conversation_first2500.jsonl", "mooncake_conversation.jsonl", 150, 10, 30},
		{"sharegpt_8k_lengths.csv", "sharegpt_lengths.csv", 400, 0, 0},
		{"arxiv_summarization_4k_lengths.csv", "arxiv_lengths.csv", 400, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join("..", "workload", "testdata", c.excerpt)
			if folder := os.Getenv("FERMATA_DATA"); folder != "" {
				path, c.rows, c.speedup = filepath.Join(folder, c.name), math.MaxInt, c.whole
			}
			want := readPublished(t, path, c.speedup > 0)
			want = want[:min(len(want), c.rows)]
			settings := map[string]string{"workload.dataset": path, "schedule.requests": strconv.Itoa(len(want))}
			if c.speedup > 0 {
				settings["schedule.speedup"] = strconv.Itoa(c.speedup)
			} else {
				settings["schedule.rate"], settings["schedule.warmup"], settings["schedule.drain"], settings["seed"] = "250", "0", "quiet", "5"
			}
			done, rows, _ := ran(t, "{ttft: 1ms, gap: 1ms, per_chunk: 200, tokens: max}", settings)
			var sent []published
			late := int64(0)
			for _, tr := range rows {
				if tr.Phase != recording.Measured {
					continue // given times drain quietly
				}
				i := int(tr.Index)
				if i != len(sent) || tr.Outcome != recording.OK || tr.Prompt.Reported.V != want[i].input || tr.Output.Reported.V != want[i].output {
					t.Fatalf("request %d, the %dth: %s, %d and %d tokens, the file's %d and %d", i, len(sent), tr.Outcome, tr.Prompt.Reported.V, tr.Output.Reported.V, want[i].input, want[i].output)
				}
				sent = append(sent, published{0, tr.Prompt.Reported.V, tr.Output.Reported.V})
				if c.speedup > 0 {
					// Truncated or rounded: half a ns either way is not the point.
					if due := int64(want[i].at) / int64(c.speedup); tr.Due < due || tr.Due > due+1 {
						t.Errorf("row %d is due at %d ns, want %d", i, tr.Due, due)
					}
				}
				if tr.Sent.V < tr.Due {
					t.Errorf("row %d left %d ns early", i, tr.Due-tr.Sent.V)
				}
				late = max(late, tr.Sent.V-tr.Due)
			}
			if len(sent) != len(want) {
				t.Fatalf("%d rows were sent, want %d", len(sent), len(want))
			}
			gotIn, gotOut := medians(sent)
			in, out := medians(want)
			got, rho := rankCorrelation(sent), rankCorrelation(want)
			if gotIn != in || gotOut != out || math.Abs(got-rho) > 1e-12 {
				t.Errorf("medians %d and %d, rank correlation %v; the file's %d, %d, %v", gotIn, gotOut, got, in, out, rho)
			}
			if told := done.Result.Load.Lateness; told == nil || told.Max == nil || int64(*told.Max) != late {
				t.Errorf("rows left up to %d ns late, told are %v", late, told.Max)
			}
			told := done.Result.Metrics
			if v := told.PromptTokens.Quantiles[0].Value; int32(v) != in {
				t.Errorf("the result's median prompt is %v, the file's %d", v, in)
			}
			t.Logf("%d rows, medians %d and %d, rank correlation %.6f, at most %.3f ms late", len(sent), in, out, rho, float64(late)/1e6)
		})
	}
}
