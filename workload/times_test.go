package workload

// Times are all due times of a data set; false without any.
func (w *Workload) Times() (due []int64, ok bool) {
	for i := range w.Timed() {
		due = append(due, w.Time(i))
	}
	return due, due != nil
}
