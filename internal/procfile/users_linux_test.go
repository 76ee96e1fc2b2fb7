package procfile

import (
	"os"
	"testing"
)

func TestIsIdentityMap(t *testing.T) {
	for ids, want := range map[string]bool{
		"         0          0 4294967295\n": true, "0 0 4294967295": true,
		"": false, "0 1000 1\n": false, "0 0 65536\n": false, "0 0 1\n1 1 4294967294\n": false,
	} {
		if got := isIdentityMap(ids); got != want {
			t.Errorf("isIdentityMap(%q) = %v, want %v", ids, got, want)
		}
	}
}

func TestInHostUserNamespace_AgreesWithUIDMap(t *testing.T) {
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Skipf("needs a kernel with user namespaces: %v", err)
	}
	if got := InHostUserNamespace(); got != isIdentityMap(string(ids)) {
		t.Errorf("InHostUserNamespace = %v, but uid_map is %q", got, ids)
	}
}
