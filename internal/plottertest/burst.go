package plottertest

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// WantBurst checks that, in svg, the band around the mean over all CPUs reaches 100 % at the given position on the time
// axis, from 0 to 1, and that the line of the mean does not.
func WantBurst(t testing.TB, svg string, at float64) {
	t.Helper()
	left, right := math.Inf(1), math.Inf(-1)
	for _, p := range paths(t, svg, "g") {
		left, right = min(left, p.x), max(right, p.x)
	}
	top, x := paths(t, svg, "g")[0].y, left+at*(right-left)
	for _, p := range paths(t, svg, "g") {
		top = min(top, p.y)
	}

	highest := func(class string) float64 {
		y := math.Inf(1)
		for _, p := range paths(t, svg, class) {
			if math.Abs(p.x-x) < 4 {
				y = min(y, p.y)
			}
		}
		return y
	}

	if got := highest("b"); got != top {
		t.Errorf("the band reaches y = %v near x = %v, want %v, which is 100 %%: the burst is lost", got, x, top)
	}

	if got := highest("j"); got < top+20 {
		t.Errorf("the line of the mean reaches y = %v, want at least %v: only the envelope may show the burst", got,
			top+20)
	}
}

// point is a corner of a path.
type point struct{ x, y float64 }

// paths returns the corners of the paths of the given class, in the CPU chart or in the chart of the only key.
func paths(t testing.TB, svg, class string) []point {
	t.Helper()
	if _, rest, found := strings.Cut(svg, ">CPU of the node<"); found {
		svg = rest
	}
	svg, _, _ = strings.Cut(svg, ">Disk reads")
	var out []point
	for _, path := range regexp.MustCompile(`<path class="`+class+`" d="([^"]*)"`).FindAllStringSubmatch(svg, -1) {
		var at point
		for _, step := range regexp.MustCompile(`([MLHV])([\d.]+)(?: ([\d.]+))?`).FindAllStringSubmatch(path[1], -1) {
			a, _ := strconv.ParseFloat(step[2], 64)
			b, _ := strconv.ParseFloat(step[3], 64)
			switch step[1] {
			case "H":
				at.x = a
			case "V":
				at.y = a
			default:
				at = point{a, b}
			}
			out = append(out, at)
		}
	}

	if len(out) == 0 {
		t.Fatalf("SVG has no path of class %q: %.300s", class, svg)
	}

	return out
}
