package procfile

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing"
)

func TestParseCount_AcceptsOnlyDecimalNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "007": "7", "18446744073709551615": "18446744073709551615", "00000000000000000001": "1",
		"18446744073709551616": "", "99999999999999999999": "", "000000000000000000001": "", "": "", "-1": "", "+1": "", "1 ": "", "1.0": "", "x": "",
	} {
		n, ok := ParseCount([]byte(text))
		if got := strconv.FormatUint(n, 10); ok != (want != "") || ok && got != want {
			t.Errorf("ParseCount(%q) = %v, %v; want %q, or false if that is empty", text, n, ok, want)
		}
	}
}

func TestSplitStat_NameMayContainAnything(t *testing.T) {
	const after = "S 7 1 1 0 -1 4194560 9 8 7 6 11 12 13 14 20 0 17 0 19 4096 21 22\n"
	for _, name := range []string{"sh", "", "a b", "a) S 9 (b", ")(", "two\nlines", "((((", "))))"} {
		var f [StatRSS + 1][]byte
		pid, got, n := SplitStat([]byte("42 ("+name+") "+after), f[:])
		if string(pid) != "42" || string(got) != name || n != len(f) {
			t.Errorf("%q: pid %q, name %q, %d fields; want 42, the name, %d", name, pid, got, n, len(f))
		}
		for i, want := range map[int]string{StatState: "S", StatParent: "7", StatFlags: "4194560", StatMinFlt: "9", StatUTime: "11", StatSTime: "12", StatCUTime: "13",
			StatCSTime: "14", StatThreads: "17", StatStart: "19", StatRSS: "21"} {
			if string(f[i]) != want {
				t.Errorf("%q: field %d is %q, want %q", name, i, f[i], want)
			}
		}
	}

	for _, text := range []string{"", "42 sh S 1", "42 )sh( S 1", "(", ")"} {
		if _, _, n := SplitStat([]byte(text), make([][]byte, 3)); n != 0 {
			t.Errorf("%q: %d fields, want 0", text, n)
		}
	}
}

// The fields equal the standard library's, up to the requested number.
func FuzzSplitFields(f *testing.F) {
	f.Add([]byte(" a  bc\td\r\ne "), uint8(2))
	f.Fuzz(func(t *testing.T, line []byte, room uint8) {
		fields := make([][]byte, room)
		n := SplitFields(line, fields)
		want := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' })
		if n != min(len(want), int(room)) {
			t.Fatalf("%d fields of %q, want %d", n, line, min(len(want), int(room)))
		}
		for i, field := range fields[:n] {
			if !bytes.Equal(field, want[i]) {
				t.Fatalf("field %d of %q is %q, want %q", i, line, field, want[i])
			}
		}
	})
}

func TestAppendPIDs_ParsesLists(t *testing.T) {
	for list, want := range map[string][]int{
		"": {7}, "1\n20\n300\n": {7, 1, 20, 300}, "1 20 ": {7, 1, 20}, "0\n4\n": {7, 0, 4}, "x\n-3\n4294967296\n5\n": {7, 5},
	} {
		if got := AppendPIDs([]int{7}, []byte(list)); !slices.Equal(got, want) {
			t.Errorf("AppendPIDs([7], %q) = %v, want %v", list, got, want)
		}
	}
}

func TestCutRange_ParsesFirstRange(t *testing.T) {
	for list, want := range map[string]string{
		"0-3,7": "0 3 7 true", "5": "5 5  true", " 2-2 ,x": "2 2 x true", "0,": "0 0  true",
		"": "0 0  false", "3-1": "3 1  false", "1-": "1 0  false", "-1,2": "0 1 2 false", "a,2": "0 0 2 false",
	} {
		first, last, rest, ok := CutRange([]byte(list))
		if got := fmt.Sprintf("%d %d %s %v", first, last, rest, ok); got != want {
			t.Errorf("CutRange(%q) = %s, want %s", list, got, want)
		}
	}
}

func TestNumbered_SortsNumbers(t *testing.T) {
	names := []string{"cpu10", "cpu2", "cpu", "cpufreq", "cpu-1", "xcpu3", "cpu65536", "cpu0"}
	if got := Numbered(names, "cpu"); !slices.Equal(got, []int{0, 2, 10}) {
		t.Errorf("Numbered(%q) = %v, want 0, 2 and 10", names, got)
	}
}

func TestIsExiting_ReadsFlags(t *testing.T) {
	const rest = " 0 0 0"
	for stat, want := range map[string]bool{
		"7 (a) R 1 7 7 0 -1 4194304" + rest:      false,
		"7 (a) Z 1 7 7 0 -1 4194308" + rest:      true,  // PF_EXITING
		"7 (a b) 4) S 1 7 7 0 -1 4195328" + rest: true,  // PF_SIGNALED
		"7 (a) D 1 7 7 0 -1 4194816" + rest:      true,  // PF_DUMPCORE
		"7 (a) R 1 7 7 0 -1":                     false, // truncated
		"7 (a) R 1 7 7 0 -1 many" + rest:         false,
		"":                                       false,
	} {
		if got := IsExiting([]byte(stat)); got != want {
			t.Errorf("IsExiting(%q) = %v, want %v", stat, got, want)
		}
	}
}

func TestUnescape_DecodesOctalEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "/a": "/a", `/a\040b`: "/a b", `\011\012\134`: "\t\n\\", `\377`: "\xff",
		`\400`: `\400`, `\08`: `\08`, `\04`: `\04`, `\`: `\`, `\\040`: `\ `, `\04x`: `\04x`,
	} {
		if got := Unescape(in); got != want {
			t.Errorf("Unescape(%q) = %q, want %q", in, got, want)
		}
	}
}
