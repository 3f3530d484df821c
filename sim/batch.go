package sim

// A Batch is what one iteration computes.
type Batch struct {
	Decodes int     // sequences that decode
	Query   int     // query tokens of all of them: more than Decodes where drafts are verified
	Context int64   // sum over them of the tokens that each attends to
	Chunks  []Chunk // pieces of prompts
}

// A Chunk is a piece of one prompt.
type Chunk struct {
	Index  int64 // of the request
	Tokens int   // new ones
	Cached int   // before them, whose keys and values exist
	Last   bool  // it completes the prefill
}

// A Cost says how long an iteration takes.
type Cost interface {
	// Iteration is the time of one iteration in ns, at least 0. It keeps nothing
	// of b, and is a pure function of it.
	Iteration(b *Batch) int64
}
