package experiment

import (
	"fermata/load"
	"fermata/metrics"
	"fermata/recording"
)

// An onlooker shows a glance what ends, besides whoever else is told.
type onlooker struct {
	next   load.Witness // nil where there is none
	glance *metrics.Glance
}

// Begun implements load.Witness.
func (o *onlooker) Begun(index, due int64) {
	if o.next != nil {
		o.next.Begun(index, due)
	}
}

// First implements load.Witness.
func (o *onlooker) First(index, ns int64) {
	if o.next != nil {
		o.next.First(index, ns)
	}
}

// Silent implements load.Witness.
func (o *onlooker) Silent(index int64) {
	if o.next != nil {
		o.next.Silent(index)
	}
}

// Ended implements load.Witness.
func (o *onlooker) Ended(t *recording.Trace) {
	if o.next != nil {
		o.next.Ended(t)
	}
	o.glance.See(t)
}
