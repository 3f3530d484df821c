//go:build !(linux || darwin)

package wire

// MachineLimits knows nothing of this system.
func MachineLimits() Limits { return Limits{} }
