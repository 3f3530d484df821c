package beacon

import (
	"os"
	"testing"
)

// The test binary is also the beacon's own process.
func TestMain(m *testing.M) {
	if os.Getenv("BEACON_TEST_PROCESS") != "" {
		if err := Main(os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
