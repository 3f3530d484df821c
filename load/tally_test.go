package load

import (
	"sync"
	"testing"
)

// The requests that ended and those that failed are of one moment, however many
// end at once: no share of failures is over one.
func TestTallyIsOfOneMoment(t *testing.T) {
	var c tally
	var all sync.WaitGroup
	const each, owners = 20_000, 8
	for range owners {
		all.Go(func() {
			for range each {
				if finished, failed := c.close(true); failed != finished {
					t.Errorf("%d of %d requests failed", failed, finished)
					return
				}
			}
		})
	}
	all.Wait()
	if finished, failed := c.ended(); finished != each*owners || failed != finished {
		t.Errorf("%d of %d requests failed", failed, finished)
	}
}

// Where nobody asked for it, no number of failures is too many.
func TestShareUnasked(t *testing.T) {
	most, err := share("")
	if err != nil || 1e18 > most*1 {
		t.Errorf("%v, %v", most, err)
	}
	if all, err := share("100%"); err != nil || 10 > all*10 {
		t.Errorf("%v, %v", all, err)
	}
}
