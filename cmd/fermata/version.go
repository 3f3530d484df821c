package main

import "runtime/debug"

// release is the version of a released binary, set by its linker.
var release = ""

// version is what this binary is: a release, or the commit that it was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v, dirty := "", false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	switch {
	case v == "":
		return "devel"
	case dirty:
		return v + "+changes"
	}
	return v
}
