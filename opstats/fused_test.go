package opstats

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

// On arm64 and other machines, the compiler may fuse a product and a sum into one instruction that rounds only once.
// The results then differ from Python's and numpy's. Tests on amd64 cannot detect that, so this test reads the assembly
// for arm64.
func TestPackage_HasNoFusedProducts(t *testing.T) {
	testenv.SkipIfShort(t, "a compilation for arm64")
	cmd := exec.Command("go", "build", "-gcflags=-S", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go build for arm64: %v\n%s", err, out)
	}

	if !regexp.MustCompile(`\sFMULD\s`).Match(out) {
		t.Fatal("the assembly for arm64 contains no FMULD, so this test cannot find fused products")
	}
	fused := regexp.MustCompile(`(?m)^.*\((\S+\.go:\d+)\)\s+(FN?M(?:ADD|SUB)[DS])\s`)
	for _, line := range fused.FindAllSubmatch(out, -1) {
		t.Errorf("%s is compiled to the fused instruction %s, want the product converted with float64()", line[1], line[2])
	}
}
