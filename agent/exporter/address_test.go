package exporter

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

func TestParseAddress_AcceptsAllForms(t *testing.T) {
	for want, texts := range map[Address][]string{
		{Host: "127.0.0.1", Port: "9100"}:                    {"9100", ":9100", "127.0.0.1:9100"},
		{Host: "127.0.0.1", Port: "0"}:                       {"0", ":0", "localhost.:0"},
		{Host: "127.0.0.1", Port: "65535"}:                   {"65535"},
		{Host: "127.0.0.1", Port: "80"}:                      {"080"},
		{Host: "127.0.0.1", Port: "1"}:                       {"localhost:1", "LocalHost:1", "LOCALHOST.:1"},
		{Host: "a-b--c.x-1.org", Port: "1", Name: true}:      {"a-b--c.x-1.org:1"},
		{Host: "0.0.0.0", Port: "9100"}:                      {"0.0.0.0:9100"},
		{Host: "10.1.2.3", Port: "9100"}:                     {"10.1.2.3:9100"},
		{Host: "::1", Port: "9100"}:                          {"[::1]:9100"},
		{Host: "::", Port: "9100"}:                           {"[::]:9100"},
		{Host: "fe80::1%eth0", Port: "9100"}:                 {"[fe80::1%eth0]:9100"},
		{Host: "node-17", Port: "9100", Name: true}:          {"node-17:9100"},
		{Host: "node_17.hpc.local.", Port: "9", Name: true}:  {"node_17.hpc.local.:9"},
		{Host: "1st.example.org", Port: "65535", Name: true}: {"1st.example.org:65535"},
	} {
		for _, text := range texts {
			if got, err := ParseAddress(text); err != nil || got != want {
				t.Errorf("ParseAddress(%q) = %+v, %v; want %+v, nil", text, got, err, want)
			}
		}
	}
}

func TestParseAddress_RefusesInvalidAddresses(t *testing.T) {
	for _, text := range []string{
		"", ":", "x", "off", "-1", ":-1", "+80", ":+80", "65536", ":65536", "127.0.0.1:65536", "99999999999999999999", "0x50", "9100.0", "1e3",
		"127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:9100:1", "127.0.0.1: 9100", " 9100", "9100 ", "9100\n",
		"::1", "[::1]", "[::1]9100", "::1:9100", "[]:9100", "[x]:9100", "[::1", "[::1]:", "[::g]:1",
		"256.1.1.1:1", "1.2.3:1", "1.2.3.4.5:1", "0:1", "*:9100", "a b:1", "a..b:1", ".:1", "a/b:1", "ü:1", "http://127.0.0.1:9100", "http://x",
		"user@host:1", "a\x00b:1", "-:x", "-a:0", "a-:0", "-:1", "a.-b:1", "a-.b:1", "a.b-.:1", ".a:1", "a..:1", "localhost..:1", "a+b:1", "a%b:1", strings.Repeat("a", 300) + ":1",
	} {
		if got, err := ParseAddress(text); err == nil {
			t.Errorf("ParseAddress(%q) = %+v, want an error", text, got)
		} else if err.Error() == "" || strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("ParseAddress(%q): error %q, want one line of text", text, err)
		}
	}
}

func TestURL_HasPortOfListener(t *testing.T) {
	for text, want := range map[string]string{
		"0":           "http://127.0.0.1:PORT/",
		"localhost:0": "http://127.0.0.1:PORT/",
		"0.0.0.0:0":   "http://node-17:PORT/",
	} {
		a := check.Value(ParseAddress(text))(t)
		l := check.Value(a.Listen(t.Context()))(t)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if got := URL(l, a, "node-17"); got != strings.Replace(want, "PORT", port, 1) || port == "0" {
			t.Errorf("URL for %s: %s, want %s with the port %s", text, got, want, port)
		}
		_ = l.Close()
	}
}

// An error of Listen is the operating system's text. It lacks the address, which the caller adds.
func TestAddress_ListenErrorLacksAddress(t *testing.T) {
	taken := check.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for address, word := range map[Address]string{
		{Host: loopback, Port: port}:                       "address already in use",
		{Host: "192.0.2.1", Port: "0"}:                     "cannot assign requested address", // TEST-NET-1: no host
		{Host: "nowhere.invalid", Port: "0", Name: true}:   "nowhere.invalid",
		{Host: "fe80::1%nowhere0", Port: "0", Name: false}: "",
	} {
		l, err := address.Listen(t.Context())
		if err == nil {
			l.Close()
			t.Errorf("Listen on %v returned no error, want one with %q", address, word)
		} else if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "listen tcp") || strings.Contains(err.Error(), "bind:") {
			t.Errorf("Listen on %v: error %v, want %q, without the call and the address", address, err, word)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := (Address{Host: "nowhere.invalid", Port: "0", Name: true}).Listen(cancelled); err == nil {
		l.Close()
		t.Error("Listen with a canceled context succeeded, want an error")
	}
}
