package procfile

import "testing"

func TestIsIdentityMap_AcceptsOnlyFullIdentity(t *testing.T) {
	for ids, want := range map[string]bool{
		"         0          0 4294967295\n": true, "0 0 4294967295": true,
		"": false, "0 1000 1\n": false, "0 0 65536\n": false, "0 0 1\n1 1 4294967294\n": false,
	} {
		if got := isIdentityMap(ids); got != want {
			t.Errorf("isIdentityMap(%q) = %v, want %v", ids, got, want)
		}
	}
}
