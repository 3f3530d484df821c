//go:build !(linux || darwin)

package experiment

// machineLimits knows nothing of this system.
func machineLimits() limits { return limits{} }
