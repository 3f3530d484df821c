package recording

// Meta is what a recording says about itself: the header of the journal and the
// key-value metadata of requests.parquet.
type Meta struct {
	Schema      string            // "fermata.recording/1"
	RunYAML     string            // the run file with defaults filled in, without secrets
	Tool        string            // version of the tool that wrote it
	ZeroWallNs  Maybe[int64]      // wall clock (Unix ns) of time zero; absent for simulated runs
	TimeScale   float64           // seconds of judged time a second of recorded time; 0 means 1
	Labels      map[string]string // what the user and the server said about the run
	WindowStart Maybe[int64]      // the measured phase, half-open
	WindowEnd   Maybe[int64]
	WindowWhy   string // why the measured phase ended where it did
	Interrupted string // why the run was cut short; empty for a whole one
	DataSet     string // JSON: what became of the data set, as dataset in result.json; empty without one
	Simulation  string // JSON: what a simulated run says about its system; empty for others. Not in journals
}
