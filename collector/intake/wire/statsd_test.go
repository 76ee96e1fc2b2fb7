package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// describe returns a description of an Event in one line, for the tables of tests.
func describe(e *Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", [...]string{"nothing", "time", "counter", "gauge", "change", "value", "set", "attribute",
		"transfer", "failure", "data", "proxystore", "mark"}[e.Kind])
	if e.Series != nil {
		fmt.Fprintf(&b, " %s", e.Series)
	}
	if len(e.Values) > 0 {
		fmt.Fprintf(&b, " %v", e.Values)
	}
	if e.Rate != 1 {
		fmt.Fprintf(&b, " @ %v", e.Rate)
	}
	switch e.Kind {
	case Attribute:
		fmt.Fprintf(&b, " %#v", e.Attribute)
	case Transfer:
		x := e.Transfer
		fmt.Fprintf(&b, " %v", []float64{x.XferMicros, x.PostMicros, x.Bytes, x.Descriptors})
	case ProxyStore:
		fmt.Fprintf(&b, " %v", e.Version)
	}
	if e.Text != nil {
		fmt.Fprintf(&b, " text %q", e.Text)
	}
	if e.Key != nil {
		fmt.Fprintf(&b, " key %q", e.Key)
	}
	if e.HasBytes {
		fmt.Fprintf(&b, " size %v", e.Bytes)
	}
	if e.Failed {
		b.WriteString(" failed")
	}
	if e.Rank >= 0 {
		fmt.Fprintf(&b, " rank %d", e.Rank)
	}
	if e.At != 0 {
		fmt.Fprintf(&b, " at %v", e.At)
	}
	if e.Data != nil {
		fmt.Fprintf(&b, " data %s", e.Data)
	}

	return b.String()
}

// A lineTest is a line with its result in each dialect. An empty dogstatsd means the same result as in StatsD.
type lineTest struct{ line, statsd, dogstatsd string }

// allAre returns a lineTest for each line, with the same result in both dialects.
func allAre(result string, lines ...string) (tests []lineTest) {
	for _, line := range lines {
		tests = append(tests, lineTest{line: line, statsd: result})
	}
	return tests
}

// got returns the result of a line in the form of the tables.
func got(line string, d Dialect) string {
	var e Event
	if r := e.Parse([]byte(line), d); r != Accepted {
		return r.String()
	}
	return describe(&e)
}

func checkLines(t *testing.T, tests []lineTest) {
	t.Helper()
	for _, tt := range tests {
		if tt.dogstatsd == "" {
			tt.dogstatsd = tt.statsd
		}
		if got := got(tt.line, StatsD); got != tt.statsd {
			t.Errorf("%q parsed as StatsD = %s, want %s", tt.line, got, tt.statsd)
		}
		if got := got(tt.line, DogStatsD); got != tt.dogstatsd {
			t.Errorf("%q parsed as DogStatsD = %s, want %s", tt.line, got, tt.dogstatsd)
		}
	}
}

func TestEvent_ParsesStatsD(t *testing.T) {
	checkLines(t, []lineTest{
		{"", "nothing", ""}, {"a:1|c", "counter a [1]", ""}, {"a:-3|c", "counter a [-3]", ""},
		{"a:+3|c", "counter a [3]", ""}, {"a:1|c|@0.1", "counter a [1] @ 0.1", ""}, {"a:1|c|@1", "counter a [1]", ""},
		{"a:1:2:3.5|ms", "time a [1 2 3.5]", ""}, {"a:320|ms|@0.5", "time a [320] @ 0.5", ""},
		{"a:1e3|h", "value a [1000]", ""}, {"a:-1|d", "value a [-1]", ""}, {"a:.5|d", "value a [0.5]", ""},
		{"a:5.|d", "value a [5]", ""}, {"a:5|g", "gauge a [5]", ""}, {"a:+5|g", "change a [5]", "gauge a [5]"},
		{"a:-3|g", "change a [-3]", "gauge a [-3]"}, {"a:-3:-4|g", "change a [-3 -4]", "gauge a [-3 -4]"},
		{"a:3:-4|g", "malformed", "gauge a [3 -4]"}, {"a:-3|g|#x", `gauge a{x=""} [-3]`, ""},
		{"a:-3|g|T1656581400", "gauge a [-3]", ""}, {"a:-3|g|c:ci-1234", "gauge a [-3]", ""},
		{"a:-3|g|e:it-false,cn-nginx", "gauge a [-3]", ""}, {"a:-3|g|card:low", "gauge a [-3]", ""},
		{"a:-3|g|@1", "change a [-3]", "gauge a [-3]"}, {"a:joe|s", `set a text "joe"`, ""},
		{"a:http://x|s", `set a text "http://x"`, ""}, {"a:5|s", `set a text "5"`, ""},
	})
}

func TestEvent_ParsesTags(t *testing.T) {
	many := func(n int) string {
		var tags []string
		for i := range n {
			tags = append(tags, fmt.Sprintf("k%02d:v", i))
		}
		return "a:1|c|#" + strings.Join(tags, ",")
	}
	long := strings.Repeat("x", MaxText)
	checkLines(t, []lineTest{
		{"a:1|c|#b:2,a:1", `counter a{a="1",b="2"} [1]`, ""}, {"a:1|c|#b,a:x:y", `counter a{a="x:y",b=""} [1]`, ""},
		{"a:1|c|#b:2,b:1,b:2", `counter a{b="1",b="2"} [1]`, ""}, {"a:1|c|#", "counter a [1]", ""},
		{"a:1|c|#,,", "counter a [1]", ""}, {`a:1|c|#k:a"b\c`, `counter a{k="a\"b\\c"} [1]`, ""},
		{`a:1|c|#k y="x",z:é`, `counter a{k_y__x_="",z="é"} [1]`, ""},
		{"a:1|c|@0.5|#x:1|T1|c:id", `counter a{x="1"} [1] @ 0.5`, ""},
		{"a:1|c|c:id|T1|#x:1|@0.5", `counter a{x="1"} [1] @ 0.5`, ""},
		{many(16), "counter a{" + strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(many(16), "a:1|c|#"), ":", `="`), ",", `",`) + `"} [1]`, ""},
		{many(17), "too_long", ""},
		{"a:1|c|#k:" + long[1:], `counter a{k="` + long[1:] + `"} [1]`, ""},
		{"a:1|c|#k:" + long, "too_long", ""},
	})
}

func TestEvent_ReplacesInvalidCharactersInNames(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	checkLines(t, []lineTest{
		{"Ab9_.:/-:1|c", "malformed", ""}, // the name ends at the first colon
		{"Ab9_./-:1|c", "counter Ab9_./- [1]", ""},
		{"a b\té€😀\x01{}:1|c", "counter a_b_______ [1]", ""},
		{long + ":1|c", "counter " + long + " [1]", ""},
		{long + "x:1|c", "too_long", ""},
		{"datadog.dogstatsd.client.metrics:18|c|#client:py", "ignored", ""},
		{"datadog.dogstatsd.clients:18|c", "counter datadog.dogstatsd.clients [18]", ""},
	})
}

func TestEvent_ParsesMarks(t *testing.T) {
	checkLines(t, []lineTest{
		{"_e{5,4}:title|text", `mark text "title"`, ""}, {"_e{5,0}:title|", `mark text "title"`, ""},
		{"_e{5,4}:ti|le|te|t|d:1795357692|h:host|p:low|t:error|#a:b", `mark text "ti|le" at 1.795357692e+09`, ""},
		{"_e{6,4}:größ|text", `mark text "größ"`, ""}, {"_e{5,9}:title|text", "malformed", ""},
		{"_e{0,4}:|text", "malformed", ""}, {"_e{5}:title|text", "malformed", ""},
		{"_e{5,4}:title|text|d:x", "malformed", ""}, {"_e{-5,4}:title|text", "malformed", ""},
		{"_e{99999999999999999999,4}:title|text", "malformed", ""}, {"_sc|check|0|m:fine", "ignored", ""},
	})
}

// hostile lists hostile lines and their results.
var hostile = slices.Concat(
	allAre("malformed",
		"\x00\x01\x02\xff\xfe", "a:1|c\xff", "a\xc3:1|c", " ", "a", "a:", "a:1", "a:1|", "a:|c", "a:1:|c", "a:x|c",
		"a:1 |c", "a:1_0|c", "a:0x10|c", "a:1e|c", "a:.|c", "a:--1|c", "a:1|x", "a:1|C", "a:1|c|", "a:1|c|x",
		"a:1|c|@", "a:1|c|@0", "a:1|c|@2", "a:1|c|@-0.5", "a:1|c|@NaN", "a:|s", ":1|c", "|c", "::|||", "cposix",
		"(dp0", "S'a' p1 I1 s.",
	),
	allAre("not_finite",
		"a:NaN|c", "a:inf|g", "a:-Infinity|h", "a:1e999|h", "a:1e101|h", "a:-1|ms", "a:1:-1|ms", "a:1|ms|@1e-200",
	),
	allAre("too_long", "a:1"+strings.Repeat(":1", MaxLine/2)+"|c", strings.Repeat("x", MaxLine+1),
		"a:"+strings.Repeat("x", MaxText+1)+"|s",
	),
)

func TestEvent_SurvivesHostileLines(t *testing.T) { checkLines(t, hostile) }

func TestEvent_AcceptsLineOfMaximumLength(t *testing.T) {
	line := "a:1" + strings.Repeat(":1", (MaxLine-5)/2) + "|c"
	var e Event
	if r := e.Parse([]byte(line), StatsD); r != Accepted || len(e.Values) != (MaxLine-3)/2 {
		t.Errorf("Parse of a line of %d bytes = %v with %d values, want %v with %d", len(line), r, len(e.Values), Accepted,
			(MaxLine-3)/2)
	}
}

func TestEvent_KeepsNothingOfPreviousLine(t *testing.T) {
	var used Event
	lines := []string{
		`{"op":"a","ms":1,"key":"k","bytes":5,"ts":1795357692,"tags":{"x":"y"}}`, "a:1|c|@0.5|#x:1", "a:joe|s",
		`{"transfer":"n","xfer_us":1,"post_us":2,"bytes":3,"descriptors":4,"rank":5}`, `{"transfer":"n","xfer_us":7}`,
		`{"op":"b","ok":false}`, "b:2|g", "_e{1,0}:t|", `{"transfers":"n","data":{},"rank":3}`, "", "b:1|ms", `{"op":"b","s":1}`,
		`{"attribute":"m","value":"text"}`, `{"attribute":"m","value":true}`, `{"attribute":"m","value":1}`,
		`{"proxystore":"1.1.0","metrics":{},"id":"w"}`, `{"observe":"b","value":3}`, `{"counter":"b","add":3}`, "bad",
	}
	for range 3 {
		for _, line := range lines {
			reason := used.Parse([]byte(line), StatsD)
			if want := got(line, StatsD); reason == Accepted && describe(&used) != want || reason != Accepted && want != reason.String() {
				t.Errorf("%q parsed into a reused Event = %v %s, want %s", line, reason, describe(&used), want)
			}
		}
	}
}
