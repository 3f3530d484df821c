package deadline

import "math"

// A shape is the columns of which a curve is a sum with coefficients of 0 or
// more; each column is 0 or more and never falls, so that no curve does.
type shape struct {
	name    string
	longest float64                 // tokens, to which lengths are scaled
	knots   []float64               // of hinges and monotone, tokens
	scaled  func(p float64) float64 // the one column, where an earlier curve is scaled
}

func linearShape(longest float64) shape    { return shape{name: Linear, longest: longest} }
func quadraticShape(longest float64) shape { return shape{name: Quadratic, longest: longest} }

// hingesShape is quadratic with a further slope from each knot on.
func hingesShape(longest float64, knots ...float64) shape {
	return shape{name: Hinges, longest: longest, knots: knots}
}

// monotoneShape is linear between knots, level below the first one; above the
// last one its slope goes on.
func monotoneShape(knots ...float64) shape {
	return shape{name: Monotone, longest: knots[len(knots)-1], knots: knots}
}

// columns is how many there are.
func (s *shape) columns() int {
	switch s.name {
	case Linear:
		return 2
	case Quadratic:
		return 3
	case Hinges:
		return 3 + len(s.knots)
	case Monotone:
		return len(s.knots)
	}
	return 1
}

// row fills in the columns for a prompt of p tokens.
func (s *shape) row(p float64, out []float64) {
	if s.scaled != nil {
		out[0] = s.scaled(p)
		return
	}
	out[0] = 1
	if s.name == Monotone {
		for j := 1; j < len(s.knots); j++ {
			v := math.Max(0, (p-s.knots[j-1])/(s.knots[j]-s.knots[j-1]))
			if j < len(s.knots)-1 {
				v = math.Min(v, 1)
			}
			out[j] = v
		}
		return
	}
	x := p / s.longest
	out[1] = x
	if s.name == Linear {
		return
	}
	out[2] = x * x
	for j, knot := range s.knots {
		out[3+j] = math.Max(0, p-knot) / s.longest
	}
}

func (s *shape) matrix(p []float64) []float64 {
	k := s.columns()
	x := make([]float64, len(p)*k)
	for i, v := range p {
		s.row(v, x[i*k:i*k+k])
	}
	return x
}

// at is the curve with coefficients b, in seconds.
func (s *shape) at(b []float64, p float64) float64 {
	row := make([]float64, len(b))
	s.row(p, row)
	return dot(row, b)
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

// candidates are the shapes that are tried, from the plainest on.
func candidates(s *sample) []shape {
	lo, hi := s.shortest(), s.longest()
	g := math.Cbrt(hi / lo)
	all := []shape{linearShape(hi), quadraticShape(hi), hingesShape(hi, lo*g, lo*g*g)}
	if by := groups(s.p); len(by) >= 4 && len(by) <= mostGroups {
		var knots []float64
		for _, at := range by {
			knots = append(knots, mean(pick(s.p, at)))
		}
		all = append(all, monotoneShape(knots...))
	}
	return all
}
