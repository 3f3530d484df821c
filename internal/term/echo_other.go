//go:build !linux

package term

import "os"

// quietControls keeps the terminal from writing ^C into a view, where it can.
func quietControls(*os.File) (restore func()) { return func() {} }
