package envfile

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	settings, bad := Parse([]byte("# a site\n\nPERFAGENT_OUT=/scratch\n  PERFAGENT_NO_PAGE = \"1\" \r\n" +
		"nonsense\n=x\nA B=c\nexport X=1\nX='a \"b\" # c'\nY=\"'z'\"\nZ=\nW=\"\nN=\x00\n2A=x\nLAST=a=b"))
	want := []Setting{
		{3, "PERFAGENT_OUT", "/scratch"}, {4, "PERFAGENT_NO_PAGE", "1"}, {9, "X", `a "b" # c`}, {10, "Y", "'z'"},
		{11, "Z", ""}, {12, "W", `"`}, {15, "LAST", "a=b"},
	}
	if !slices.Equal(settings, want) {
		t.Errorf("settings %+v\nwant     %+v", settings, want)
	}
	if want := []int{5, 6, 7, 8, 13, 14}; !slices.Equal(bad, want) {
		t.Errorf("bad lines = %v, want %v", bad, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# x\nPERFAGENT_OUT=\"/a\"\nbad\r\n"))
	f.Add([]byte("\xef\xbb\xbfA=1\n=\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, bad := Parse(data)
		lines := bytes.Count(data, []byte("\n")) + 1
		if len(settings)+len(bad) > lines {
			t.Fatalf("%d settings and %d bad lines, want at most %d in total", len(settings), len(bad), lines)
		}
		for _, s := range settings {
			if s.Line < 1 || s.Line > lines || s.Name == "" || strings.ContainsAny(s.Name+s.Value, "\n\x00") {
				t.Errorf("setting %+v, want a name and a line from 1 to %d, and no newline or NUL", s, lines)
			}
		}
	})
}
