package workload

// allTimes are all due times of a data set; nil without any.
func allTimes(w *Workload) (due []int64) {
	if w.Timed() == 0 {
		return nil
	}
	at := w.Times()
	for i := range w.Timed() {
		due = append(due, at(i))
	}
	return due
}
