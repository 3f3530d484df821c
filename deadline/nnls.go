package deadline

import "math"

// nnls minimises Σ w_i (x_i·b − y_i)² over b >= 0 (Lawson and Hanson 1974, on the
// normal equations). x has k columns a row, comparable in size and few.
func nnls(x []float64, k int, y, w []float64) []float64 {
	a, c := make([]float64, k*k), make([]float64, k)
	for i, wi := range w {
		row := x[i*k : i*k+k]
		for j, xj := range row {
			t := wi * xj
			c[j] += t * y[i]
			for l := j; l < k; l++ {
				a[j*k+l] += t * row[l]
			}
		}
	}
	for j := range k {
		for l := range j {
			a[j*k+l] = a[l*k+j]
		}
	}
	return solveNormal(a, c)
}

// solveNormal is nnls from its normal equations a·b = c. Columns are scaled to 1
// on the diagonal first, which keeps the factors well behaved.
func solveNormal(a, c []float64) []float64 {
	k := len(c)
	s := activeSet{a: make([]float64, k*k), c: make([]float64, k), free: make([]bool, k)}
	scale := make([]float64, k)
	for j := range k {
		scale[j] = 1 / math.Sqrt(math.Max(a[j*k+j], 1e-300))
	}
	most := 0.0
	for j := range k {
		s.c[j] = c[j] * scale[j]
		most = math.Max(most, math.Abs(s.c[j]))
		for l := range k {
			s.a[j*k+l] = a[j*k+l] * scale[j] * scale[l]
		}
		s.a[j*k+j] += 1e-12
	}
	b := make([]float64, k)
	for range 10 * k {
		j := s.steepest(b, 1e-10*most)
		if j < 0 {
			break
		}
		s.free[j] = true
		s.settle(b)
	}
	for j := range b {
		b[j] *= scale[j]
	}
	return b
}

// An activeSet is the equations with the columns that are not held at 0.
type activeSet struct {
	a, c []float64
	free []bool
}

// steepest is the column at 0 that wants most to grow, -1 if none wants to.
func (s *activeSet) steepest(b []float64, least float64) int {
	k, best := len(s.c), -1
	for j := range k {
		if s.free[j] {
			continue
		}
		r := s.c[j]
		for l := range k {
			r -= s.a[j*k+l] * b[l]
		}
		if r > least {
			least, best = r, j
		}
	}
	return best
}

// settle moves b to the solution in the free columns, and holds at 0 what falls
// below it on the way.
func (s *activeSet) settle(b []float64) {
	for {
		z := s.solve()
		step := 1.0
		for j, free := range s.free {
			if free && z[j] <= 0 {
				step = math.Min(step, b[j]/(b[j]-z[j]))
			}
		}
		inside := true
		for j, free := range s.free {
			inside = inside && (!free || z[j] > 0)
		}
		if inside {
			copy(b, z)
			return
		}
		for j, free := range s.free {
			if !free {
				continue
			}
			if b[j] += step * (z[j] - b[j]); b[j] <= 1e-14 {
				b[j], s.free[j] = 0, false
			}
		}
	}
}

// solve is the solution in the free columns, by Cholesky's factors.
func (s *activeSet) solve() []float64 {
	k := len(s.c)
	var at []int
	for j, free := range s.free {
		if free {
			at = append(at, j)
		}
	}
	m := len(at)
	l, v := make([]float64, m*m), make([]float64, m)
	for i := range m {
		for j := range i + 1 {
			t := s.a[at[i]*k+at[j]]
			for n := range j {
				t -= l[i*m+n] * l[j*m+n]
			}
			if i == j {
				l[i*m+i] = math.Sqrt(math.Max(t, 1e-13))
			} else {
				l[i*m+j] = t / l[j*m+j]
			}
		}
		v[i] = s.c[at[i]]
		for n := range i {
			v[i] -= l[i*m+n] * v[n]
		}
		v[i] /= l[i*m+i]
	}
	for i := m - 1; i >= 0; i-- {
		for n := i + 1; n < m; n++ {
			v[i] -= l[n*m+i] * v[n]
		}
		v[i] /= l[i*m+i]
	}
	z := make([]float64, k)
	for i, j := range at {
		z[j] = v[i]
	}
	return z
}
