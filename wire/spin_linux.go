package wire

// A spin is how long before a due time a loop stays awake, ns, as sleeps end late.
// It follows how late that is in all but one of fifty, for a core that spins has
// better things to do; 0 stays 0, which is for the only core.
type spin int64

const (
	spinLeast = 60_000
	spinMost  = 200_000
	spinStep  = 200
)

// learn takes how late a sleep ended.
func (s *spin) learn(late int64) {
	switch {
	case *s == 0:
	case late > int64(*s):
		*s = min(*s+49*spinStep, spinMost)
	default:
		*s = max(*s-spinStep, spinLeast)
	}
}
