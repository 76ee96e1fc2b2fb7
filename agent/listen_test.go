package agent

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// countersOf requests /metrics. It returns the names of the counters with a value, and the number of samples.
func countersOf(t *testing.T, url string) (names []string, samples int) {
	t.Helper()
	response := check.Value(http.Get(strings.TrimSuffix(url, "/") + "/metrics"))(t)
	defer response.Body.Close()

	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "{")
		if strings.HasSuffix(name, "_total") && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
		if name == "perfagent_samples_total" {
			samples = check.Value(strconv.Atoi(value[strings.LastIndex(value, " ")+1:]))(t)
		}
	}

	slices.Sort(names)
	return slices.Compact(names), samples
}

// untilSampled runs a command that ends with its stdin, or a sidecar if there is no command, until it has n samples.
func untilSampled(t *testing.T, o Options, n int) *Result {
	t.Helper()
	listening := make(chan string, 1)
	o.Listen, o.OnListen = "127.0.0.1:0", func(url string) { listening <- url }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run := Sidecar
	if o.Args != nil {
		stdin, end := io.Pipe()
		o.Stdin, run, stop = stdin, Run, func() { end.Close() }
	}
	var r *Result
	ended := make(chan error, 1)
	go func() {
		var err error
		r, err = run(ctx, o)
		ended <- err
	}()

	url := <-listening
	for samples := 0; samples < n; _, samples = countersOf(t, url) {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	check.Must(t, <-ended)
	return r
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
		later, samples := countersOf(t, url)
		for samples == 0 {
			time.Sleep(10 * time.Millisecond)
			later, samples = countersOf(t, url)
		}
		tell.Close()
		check.Must(t, <-ended)

		if !slices.Contains(first, "perfagent_cpu_seconds_total") || len(first) < 8 || !slices.Equal(first, later) {
			t.Fatalf("counters in the first response:\n%v\nwant at least 8 with CPU seconds, as in a later response:\n%v",
				first, later)
		}
	}
}
