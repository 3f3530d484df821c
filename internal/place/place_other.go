//go:build !linux

package place

// Cores are those that this process may use; nil where the system does not say.
func Cores() []int { return nil }

func (p Place) enter() (cores, realtime bool) { return false, false }
