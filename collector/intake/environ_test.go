package intake

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAddress_RefusesInvalidValues(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for value, want := range map[string]Address{
		"off": {}, "": {}, "on": {Host: loopback}, "8125": {Host: loopback, Port: 8125},
		"127.0.0.1:8125": {Host: loopback, Port: 8125}, "localhost:1": {Host: loopback, Port: 1},
		"0.0.0.0:8125": {Host: netip.MustParseAddr("0.0.0.0"), Port: 8125}, "[::1]:8125": {Host: netip.MustParseAddr("::1"), Port: 8125},
		"unix:/run/x.sock": {Path: "/run/x.sock"},
	} {
		if got, err := ParseAddress(value); err != nil || got != want {
			t.Errorf("ParseAddress(%q) = %+v, %v; want %+v", value, got, err, want)
		}
	}
	for value, want := range map[string]string{
		"yes": `"yes" is not a port`, "-1": "is not a port", "65535": "is not a port from 0 to 65534",
		"65536": "is not a port", "host:8125": "is not an IP address", "127.0.0.1": "is not a port", "127.0.0.1:": "is not a port",
		":8125": "is not an IP address", "unix:": "unix: has no path", "unix:/" + strings.Repeat("x", 103): "of a socket has at most 103",
		"8125/udp": "is not a port",
	} {
		if got, err := ParseAddress(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAddress(%q) = %+v, %v; want an error with %q", value, got, err, want)
		}
	}
	for value, want := range map[string]bool{"on": false, "0.0.0.0:1": true, "10.0.0.1:1": true, "[::1]:1": false, "unix:/x": false, "off": false} {
		if a, err := ParseAddress(value); err != nil || a.IsPublic() != want {
			t.Errorf("ParseAddress(%q): IsPublic %t, error %v; want %t", value, a.IsPublic(), err, want)
		}
	}
}

func TestParseEndpoint_HidesPasswordInError(t *testing.T) {
	for _, value := range []string{"http://127.0.0.1:8000/metrics", "https://user:secret@host/metrics?x=y"} {
		if u, err := ParseEndpoint(value); err != nil || u.String() != value {
			t.Errorf("ParseEndpoint(%q) = %v, %v; want the same URL", value, u, err)
		}
	}
	for _, value := range []string{"", "127.0.0.1:8000", "ftp://user:secret@x/", "http://", "http:///x", "http://user:secret@[x", "http://user:secret@ x/"} {
		u, err := ParseEndpoint(value)
		if err == nil {
			t.Errorf("ParseEndpoint(%q) = %v, want an error", value, u)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseEndpoint(%q): the error contains the password: %v", value, err)
		}
	}
}

// at returns an Intake with sockets at the given addresses that are not open.
func at(ports ...string) *Intake {
	in := &Intake{}
	for _, p := range ports {
		in.sockets = append(in.sockets, &socket{address: jobAddress(netip.MustParseAddrPort(p))})
	}
	return in
}

func TestIntake_EnvironKeepsUserVariables(t *testing.T) {
	const first, second = "127.0.0.1:43121", "127.0.0.1:43122"
	own := []string{"PERFAGENT_OPS_ADDR=" + first, "PERFAGENT_OPS_HOST=127.0.0.1", "PERFAGENT_OPS_PORT=43121", "PERFAGENT_OPS_DOGSTATSD_ADDR=" + second}
	statsd := []string{"STATSD_HOST=127.0.0.1", "STATSD_PORT=43121"}
	dog := []string{"DD_DOGSTATSD_URL=udp://" + second}
	outer := []string{"PERFAGENT_OPS_ADDR=127.0.0.1:1", "PERFAGENT_OPS_HOST=127.0.0.1", "PERFAGENT_OPS_PORT=1", "PERFAGENT_OPS_DOGSTATSD_ADDR=127.0.0.1:2"}
	all := func(lists ...[]string) []string { return slices.Concat(lists...) }
	for name, tt := range map[string]struct{ environ, want, notes []string }{
		"nothing set":         {nil, all(own, statsd, dog), nil},
		"unrelated variables": {[]string{"PATH=/bin", "STATSD_PREFIX=x"}, all([]string{"PATH=/bin", "STATSD_PREFIX=x"}, own, statsd, dog), nil},
		"StatsD host set": {[]string{"STATSD_HOST=graphite"}, all([]string{"STATSD_HOST=graphite"}, own, dog),
			[]string{"STATSD_HOST=graphite STATSD_PORT= is set, so the job's StatsD goes there"}},
		"StatsD port set": {[]string{"STATSD_PORT=1"}, all([]string{"STATSD_PORT=1"}, own, dog),
			[]string{"STATSD_HOST= STATSD_PORT=1 is set, so the job's StatsD goes there"}},
		"DogStatsD URL set": {[]string{"DD_DOGSTATSD_URL=udp://x:1"}, all([]string{"DD_DOGSTATSD_URL=udp://x:1"}, own, statsd),
			[]string{"DD_DOGSTATSD_URL=udp://x:1 is set, so the job's DogStatsD goes there"}},
		"agent host set": {[]string{"DD_AGENT_HOST=x"}, all([]string{"DD_AGENT_HOST=x"}, own, statsd),
			[]string{"DD_AGENT_HOST=x is set, so the job's DogStatsD goes there"}},
		"DogStatsD port set": {[]string{"DD_DOGSTATSD_PORT=1"}, all([]string{"DD_DOGSTATSD_PORT=1"}, own, statsd),
			[]string{"DD_DOGSTATSD_PORT=1 is set, so the job's DogStatsD goes there"}},
		"nested perfagent": {all(outer, []string{"STATSD_HOST=127.0.0.1", "STATSD_PORT=1", "DD_DOGSTATSD_URL=udp://127.0.0.1:2", "X=y"}),
			all([]string{"X=y"}, own, statsd, dog), nil},
		"nested, other addresses set by the user": {all(outer, []string{"STATSD_HOST=127.0.0.1", "STATSD_PORT=9", "DD_DOGSTATSD_URL=udp://127.0.0.1:9"}),
			all([]string{"STATSD_HOST=127.0.0.1", "STATSD_PORT=9", "DD_DOGSTATSD_URL=udp://127.0.0.1:9"}, own),
			[]string{"STATSD_HOST=127.0.0.1 STATSD_PORT=9 is set, so the job's StatsD goes there",
				"DD_DOGSTATSD_URL=udp://127.0.0.1:9 is set, so the job's DogStatsD goes there"}},
		"nested in a perfagent with a Unix socket": {[]string{"PERFAGENT_OPS_SOCKET=/x", "DD_DOGSTATSD_URL=unix:///x"}, all(own, statsd, dog), nil},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(tt.environ)
			got, notes := at(first, second).Environ(tt.environ)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if !slices.Equal(given, tt.environ) {
				t.Errorf("Environ changed its argument to %q, want %q", tt.environ, given)
			}
		})
	}

	unix := &Intake{sockets: []*socket{{path: "/run/x"}}}
	got, _ := unix.Environ(outer)
	if diff := cmp.Diff([]string{"PERFAGENT_OPS_SOCKET=/run/x", "DD_DOGSTATSD_URL=unix:///run/x"}, got); diff != "" {
		t.Errorf("environment with a Unix socket (-want +got):\n%s", diff)
	}
	if got, notes := (&Intake{}).Environ(outer); !slices.Equal(got, outer) || notes != nil {
		t.Errorf("without sockets: environment %q, notes %q; want %q and no notes", got, notes, outer)
	}
	open, _ := at("0.0.0.0:7", "[::]:8").Environ(nil)
	if !slices.Contains(open, "PERFAGENT_OPS_ADDR=127.0.0.1:7") || !slices.Contains(open, "PERFAGENT_OPS_DOGSTATSD_ADDR=[::1]:8") {
		t.Errorf("environment = %q, want loopback instead of wildcard addresses: 127.0.0.1:7 and [::1]:8", open)
	}
}
