package sim_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// No platform rounds a product and a sum together: the same options and
// requests would give other bytes there. Where a compiler may fuse, an explicit
// conversion forbids it.
func TestNothingIsFused(t *testing.T) {
	if os.Getenv("FERMATA_SLOW") == "" {
		t.Skip("FERMATA_SLOW is not set")
	}
	list := exec.Command("go", "build", "-gcflags=fermata/sim=-S", "fermata/sim")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	assembly, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, assembly)
	}
	if !regexp.MustCompile(`\tFMULD\t`).Match(assembly) {
		t.Fatalf("%d bytes of assembly without a product", len(assembly))
	}
	if found := regexp.MustCompile(`(?m)^.*\tFN?M(ADD|SUB)D\t.*$`).FindAll(assembly, -1); len(found) > 0 {
		t.Errorf("%d fused operations, such as %s", len(found), found[0])
	}
}
