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
}

// A Sample is the state of the instrument in one second of a run: what Health
// is made from, kept in series.parquet.
type Sample struct {
	TimeNs        int64   `parquet:"time_ns"`         // end of the second, since the run's start
	Due           int64   `parquet:"due"`             // requests that were due so far
	Sent          int64   `parquet:"sent"`            // of them, those that left
	Finished      int64   `parquet:"finished"`        // ended in any way
	Failed        int64   `parquet:"failed"`          // of them, those that were not ok
	InFlight      int64   `parquet:"in_flight"`       // sent and not ended
	Waiting       int64   `parquet:"waiting"`         // due, but held back by max_in_flight
	Tokens        int64   `parquet:"tokens"`          // tokens that arrived so far
	LatenessMaxNs int64   `parquet:"lateness_max_ns"` // latest sending in this second
	CPU           float64 `parquet:"cpu"`             // cores that this process used in this second
	CoresFree     float64 `parquet:"cores_free"`      // cores that no one used; -1 where the system does not say
	Cores         int64   `parquet:"cores"`           // cores that this process may use
	GCPauseNs     int64   `parquet:"gc_pause_ns"`     // garbage collector's pauses in this second
}
