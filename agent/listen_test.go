package agent

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// countersOf requests /metrics. It returns the names of the counters with a value, and whether a sample has been taken.
func countersOf(t *testing.T, url string) (names []string, sampled bool) {
	t.Helper()
	response := check.Value(http.Get(strings.TrimSuffix(url, "/") + "/metrics"))(t)
	defer response.Body.Close()

	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "{")
		if strings.HasSuffix(name, "_total") && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
		sampled = sampled || name == "perfagent_samples_total" && !strings.HasSuffix(value, " 0")
	}

	slices.Sort(names)
	return slices.Compact(names), sampled
}

// The first response, before any sample, has all the counters of later responses.
func TestLivePage_FirstResponseHasAllCounters(t *testing.T) {
	for range testenv.Rounds(20, 4) {
		o := shell(t, "read until_told")
		o.Listen, o.Interval = "127.0.0.1:0", 100*time.Millisecond
		stdin, tell := io.Pipe()
		o.Stdin = stdin
		listening := make(chan string, 1)
		o.OnListen = func(url string) { listening <- url }

		ended := make(chan error, 1)
		go func() {
			_, err := Run(t.Context(), o)
			ended <- err
		}()

		url := <-listening
		first, _ := countersOf(t, url)
		later, sampled := countersOf(t, url)
		for !sampled {
			time.Sleep(10 * time.Millisecond)
			later, sampled = countersOf(t, url)
		}
		tell.Close()
		check.Must(t, <-ended)

		if !slices.Contains(first, "perfagent_cpu_seconds_total") || len(first) < 8 || !slices.Equal(first, later) {
			t.Fatalf("counters in the first response:\n%v\nwant at least 8 with CPU seconds, as in a later response:\n%v",
				first, later)
		}
	}
}
