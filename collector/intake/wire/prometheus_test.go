package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// samples reads a body, and describes each sample in a line of text.
func samples(body string) (lines []string, err error) {
	t := NewPrometheusReader(strings.NewReader(body))
	for t.Next() {
		s := &t.Sample
		line := fmt.Sprintf("%s %s %s %v", [...]string{"untyped", "counter", "gauge", "histogram", "summary"}[s.Type],
			[...]string{"whole", "bucket", "quantile", "sum", "count"}[s.Part], s.Series, s.Value)
		if s.Part == Bucket {
			line += fmt.Sprintf(" le %v", s.Bound)
		}
		if s.Reason != Accepted {
			line = s.Reason.String()
		}
		lines = append(lines, line)
	}
	return lines, t.Err()
}

// bodies lists valid bodies and their samples.
var bodies = []struct {
	name, body string
	want       []string
}{
	{"empty body", "", nil},
	{"comments and empty lines", "# hello\n\n#\n# HELP a b\n \t\r\n", nil},
	{"no TYPE line", "a 1\n", []string{"untyped whole a 1"}},
	{"types", "# TYPE a counter\na 1\n# TYPE b gauge\nb{x=\"y\"} 2.5\n# TYPE c untyped\nc 3\n",
		[]string{"counter whole a 1", `gauge whole b{x="y"} 2.5`, "untyped whole c 3"}},
	{"type of another metric", "# TYPE a counter\nb 1\nab 2\na_sum 3\n",
		[]string{"untyped whole b 1", "untyped whole ab 2", "untyped whole a_sum 3"}},
	{"histogram with a name like a counter's", "# TYPE vllm:iteration_tokens_total histogram\n" +
		"vllm:iteration_tokens_total_bucket{engine=\"0\",le=\"1.0\"} 2\nvllm:iteration_tokens_total_bucket{engine=\"0\",le=\"+Inf\"} 3\n" +
		"vllm:iteration_tokens_total_count{engine=\"0\"} 3\nvllm:iteration_tokens_total_sum{engine=\"0\"} 4.5\n",
		[]string{`histogram bucket vllm:iteration_tokens_total{engine="0"} 2 le 1`,
			`histogram bucket vllm:iteration_tokens_total{engine="0"} 3 le +Inf`,
			`histogram count vllm:iteration_tokens_total{engine="0"} 3`, `histogram sum vllm:iteration_tokens_total{engine="0"} 4.5`}},
	{"summary", "# TYPE a summary\na{quantile=\"0.5\"} 1\na_sum 2\na_count 3\na_bucket{le=\"1\"} 4\n",
		[]string{"summary quantile a 1", "summary sum a 2", "summary count a 3", `untyped whole a_bucket{le="1"} 4`}},
	{"spaces, times and a trailing comma", "a \t 1 \t 1795357692000\nb { x = \"1\" , y=\"2\", } -1 -5\n",
		[]string{"untyped whole a 1", `untyped whole b{x="1",y="2"} -1`}},
	{"unsorted and empty labels", "a{z=\"1\",b=\"\",c=\"2\"} 1\n", []string{`untyped whole a{c="2",z="1"} 1`}},
	{"escapes", `a{x="q\"b\\n\n}, é"} 1` + "\n", []string{`untyped whole a{x="q\"b\\n\n}, é"} 1`}},
	{"numbers", "a NaN\na +Inf\na -Inf\na 1e3\na .5\na 1e999\n", []string{"untyped whole a NaN", "untyped whole a +Inf",
		"untyped whole a -Inf", "untyped whole a 1000", "untyped whole a 0.5", "untyped whole a +Inf"}},
	{"too long", strings.Repeat("x", MaxText+1) + " 1\na{x=\"" + strings.Repeat("x", MaxText) + "\"} 1\n", []string{"too_long", "too_long"}},
	{"labels in any form", `a{b="1",c="2"} 1` + "\n" + `a{c="2",b="1"} 1` + "\n" + `a {b="1",c="2"} 1` + "\n" +
		`a{b="1", c="2"} 1` + "\n" + `a{b = "1",c="2"} 1` + "\n" + `a{b="1",c="2",} 1` + "\n" + `a{b="1",b="1",c="2"} 1` + "\n",
		slices.Repeat([]string{`untyped whole a{b="1",c="2"} 1`}, 7)},
	{"labels to escape", `a{b="1\n",c="\"\\"} 1` + "\n" + `a{} 1` + "\n" + `a{b="ä, {}"} 1` + "\n",
		[]string{`untyped whole a{b="1\n",c="\"\\"} 1`, "untyped whole a 1", `untyped whole a{b="ä, {}"} 1`}},
	{"labels of parts", "# TYPE a histogram\na_bucket{b=\"1\",le=\"1\"} 1\n" +
		"# TYPE s summary\ns{b=\"1\",quantile=\"0.5\"} 1\ns_count{b=\"1\",c=\"2\"} 1\n",
		[]string{`histogram bucket a{b="1"} 1 le 1`, `summary quantile s{b="1"} 1`, `summary count s{b="1",c="2"} 1`}},
	{"longest name", strings.Repeat("a", MaxText) + "{b=\"1\"} 1\n",
		[]string{"untyped whole " + strings.Repeat("a", MaxText) + `{b="1"} 1`}},
	{"too many labels", "a{" + manyLabels(17) + "} 1\n", []string{"too_long"}},
}

func manyLabels(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`l%d="x"`, i))
	}
	return strings.Join(list, ",")
}

func TestPrometheusReader_ReadsValidBodies(t *testing.T) {
	for _, tt := range bodies {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := samples(tt.body); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("body %q: samples %q, error %v; want %q, no error", tt.body, got, err, tt.want)
			}
		})
	}
}

// badBodies lists invalid bodies and their errors.
var badBodies = []struct{ body, want string }{
	{"a 1", "line 1: the last line has no end"},
	{"a 1\n" + strings.Repeat("x", maxBodyLine-1), "line 2: the last line has no end"},
	{"# HELP " + strings.Repeat("x", maxBodyLine), "line 1: the last line has no end"},
	{"# TYPE a gauge\na 1\nb", "line 3: the last line has no end"},
	{"{" + strings.Repeat("x", 99) + "\n", `line 1: "{` + strings.Repeat("x", 39) + `" is not the name of a metric`},
	{"a 1\nb\n", "line 2: the name of a metric is not followed by a space"},
	{"1a 1\n", `line 1: "1a 1" is not the name of a metric`},
	{"a{b=\"c\"}\n", `line 1: "" is not a value`},
	{"a{b=\"c} 1\n", "line 1: the value of a label has no end"},
	{"a{b=c} 1\n", "line 1: the value of a label is not between quotation marks"},
	{"a{b} 1\n", "line 1: a label is not NAME=\"VALUE\""},
	{"a{\"b\"} 1\n", "line 1: a label is not NAME=\"VALUE\""},
	{"a{b=\"c\" d=\"e\"} 1\n", "line 1: labels do not end with \"}\""},
	{`a{b="\x"} 1` + "\n", `line 1: \x is not an escape in the value of a label`},
	{"a{b=\"\xff\"} 1\n", "line 1: the value of a label is not UTF-8"},
	{"a x\n", `line 1: "x" is not a value`},
	{"a 0x10\n", `line 1: "0x10" is not a value`},
	{"a 1_0\n", `line 1: "1_0" is not a value`},
	{"a 1 x\n", `line 1: "x" is not a time in milliseconds`},
	{"a 1 1 1\n", "line 1: there is more text after the value and time"},
	{"a 1 # {trace=\"x\"} 1\n", `line 1: "#" is not a time in milliseconds`},
	{"# TYPE a info\n", `line 1: "info" is not a type of the text format 0.0.4`},
	{"# TYPE a\n", `line 1: "" is not a type of the text format 0.0.4`},
	{"# TYPE 1 gauge\n", `line 1: a TYPE line is not "# TYPE NAME TYPE"`},
	{"# TYPE a gauge x\n", `line 1: a TYPE line is not "# TYPE NAME TYPE"`},
	{"# TYPE a histogram\na_bucket 1\n", "line 2: a bucket has no label le"},
	{"# TYPE a histogram\na_bucket{le=\"x\"} 1\n", `line 2: "x" is not the bound of a bucket`},
	{"<html>\n", `line 1: "<html>" is not the name of a metric`},
	{"{\"a\":1}\n", `line 1: "{\"a\":1}" is not the name of a metric`},
	{"\x1f\x8b\x08\n", `line 1: "\x1f\x8b\b" is not the name of a metric`},
}

func TestPrometheusReader_RefusesInvalidBodies(t *testing.T) {
	for _, tt := range badBodies {
		if got, err := samples(tt.body); err == nil || err.Error() != tt.want {
			t.Errorf("body %q: error %v, want %s", tt.body, err, tt.want)
		} else if strings.HasPrefix(tt.want, "line 1") && len(got) > 0 {
			t.Errorf("body %q with an error in line 1: samples %q, want none", tt.body, got)
		}
	}
}

// The body of a vLLM server, which prometheus_client wrote, is read in the same way as by prometheus_client's parser.
func TestPrometheusReader_AgreesWithPrometheusClient(t *testing.T) {
	python := os.Getenv("PERFAGENT_TEST_PYTHON")
	if python == "" || exec.Command(python, "-c", "import prometheus_client").Run() != nil {
		testenv.SkipOrFail(t, "needs Python with prometheus_client: make test installs it, PERFAGENT_TEST_PYTHON names it")
	}

	const script = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(open(sys.argv[1]).read()):
    for s in family.samples:
        print(json.dumps([s.name, sorted((k, repr(float(v)) if k == 'le' else v) for k, v in s.labels.items() if v), repr(s.value)]))
`
	out := check.Value(exec.Command(python, "-c", script, "testdata/vllm.txt").Output())(t)
	body := check.Value(os.ReadFile("testdata/vllm.txt"))(t)

	want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	slices.Sort(want)
	var got []string
	text := NewPrometheusReader(bytes.NewReader(body))
	for text.Next() {
		got = append(got, asPython(t, &text.Sample))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); text.Err() != nil || len(got) < 1000 || diff != "" {
		t.Errorf("got %d samples, error %v; want at least 1000 and the same as from prometheus_client (-client +got):\n%s", len(got),
			text.Err(), diff)
	}
}

// asPython returns a sample in the form in which the script above prints it.
func asPython(t *testing.T, s *Sample) string {
	t.Helper()
	suffix := [...]string{Whole: "", Bucket: "_bucket", Quantile: "", Sum: "_sum", Count: "_count"}[s.Part]
	labels := [][2]string{}
	for _, l := range s.labels {
		labels = append(labels, [2]string{string(l.key), string(l.value)})
	}
	if s.Part == Bucket {
		labels = append(labels, [2]string{"le", pythonFloat(s.Bound)})
	}
	slices.SortFunc(labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	line := check.Value(json.Marshal([]any{string(s.Name) + suffix, labels, pythonFloat(s.Value)}))(t)
	return strings.ReplaceAll(string(line), ",", ", ")
}

// pythonFloat formats a number like Python's repr.
func pythonFloat(v float64) string {
	switch text := strconv.FormatFloat(v, 'g', -1, 64); {
	case math.IsInf(v, 1):
		return "inf"
	case strings.Contains(text, "e") && math.Abs(v) < 1e16 && math.Abs(v) >= 1e-4:
		return strconv.FormatFloat(v, 'f', -1, 64) + strings.Repeat(".0", btoi(v == math.Trunc(v)))
	case !strings.ContainsAny(text, "e."):
		return text + ".0"
	default:
		return text
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The result does not depend on how reads split the body.
func TestPrometheusReader_ReadsBodySplitAnywhere(t *testing.T) {
	t.Parallel()
	body := check.Value(os.ReadFile("testdata/vllm.txt"))(t)
	all := func(r io.Reader) (out []string) {
		text := NewPrometheusReader(r)
		for text.Next() {
			out = append(out, asPython(t, &text.Sample))
		}
		if text.Err() != nil {
			t.Errorf("read the body: %v", text.Err())
		}
		return out
	}

	want := all(bytes.NewReader(body))
	if len(body) < 4*maxBodyLine || len(want) < 1000 {
		t.Fatalf("got %d samples from %d bytes, want at least 1000 from at least %d bytes", len(want), len(body), 4*maxBodyLine)
	}
	for name, r := range map[string]io.Reader{
		"single bytes": iotest.OneByteReader(bytes.NewReader(body)), "halves": iotest.HalfReader(bytes.NewReader(body)),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(body)),
	} {
		if diff := cmp.Diff(want, all(r)); diff != "" {
			t.Errorf("%s: samples differ (-whole +split):\n%s", name, diff)
		}
	}
}

// A line that is longer than the buffer is skipped if it is a comment, and otherwise reported as too long.
func TestPrometheusReader_SkipsLongLine(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 3*maxBodyLine)
	text := NewPrometheusReader(strings.NewReader("# HELP a " + x + "\n# TYPE " + x + "\na 1\nb{c=\"" + x + "\"} 2\nd 3\n"))
	var got []string
	for text.Next() {
		got = append(got, fmt.Sprintf("%s %s %v", text.Sample.Name, text.Sample.Series, text.Sample.Reason))
	}
	want := []string{"a a " + Accepted.String(), "b  " + TooLong.String(), "d d " + Accepted.String()}
	if diff := cmp.Diff(want, got); diff != "" || text.Err() != nil {
		t.Errorf("error %v, want none; samples of a body with long lines (-want +got):\n%s", text.Err(), diff)
	}
}

func TestPrometheusReader_ReturnsReadError(t *testing.T) {
	t.Parallel()
	text := NewPrometheusReader(io.MultiReader(strings.NewReader("a 1\nb"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	for text.Next() {
	}
	if !errors.Is(text.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("Err() after a read error = %v, want %v", text.Err(), io.ErrUnexpectedEOF)
	}
}
