package text

import "testing"

func TestChoice(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := Choice(words); got != want {
			t.Errorf("Choice(%q) = %q, want %q", words, got, want)
		}
	}
}
