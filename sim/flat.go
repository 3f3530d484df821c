package sim

import "time"

// Flat is the cost of a server with known numbers: an iteration takes TTFT if
// any prefill ends in it, else 0, plus ITL if it decodes anything. Host and
// memory play no part.
type Flat struct {
	TTFT time.Duration `yaml:"ttft,zero"`
	ITL  time.Duration `yaml:"itl,zero"`
}

// Iteration implements Cost.
func (f *Flat) Iteration(b *Batch) int64 {
	ns := int64(0)
	for i := range b.Chunks {
		if b.Chunks[i].Last {
			ns = int64(f.TTFT)
			break
		}
	}
	if b.Decodes > 0 {
		ns += int64(f.ITL)
	}
	return ns
}
