package intake

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// An Address is the destination for the job's operations: two UDP ports, or the path of a Unix socket. The zero value
// means no address.
type Address struct {
	Host netip.Addr
	Port uint16 // for StatsD; the next port is for DogStatsD. 0 = any two free ports
	Path string // absolute path of a Unix socket, if Host and Port are not used
}

// ParseAddress parses the value of --ops: "off", "on" for any two free ports of 127.0.0.1, "[HOST:]PORT", or
// "unix:PATH". HOST is an IP address or localhost, because looking up a name would delay the job.
func ParseAddress(value string) (Address, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	switch path, unix := strings.CutPrefix(value, "unix:"); {
	case value == "off", value == "":
		return Address{}, nil
	case value == "on":
		return Address{Host: loopback}, nil
	case unix:
		return parsePath(path)
	}

	a := Address{Host: loopback}
	port := value
	if i := strings.LastIndexByte(value, ':'); i >= 0 {
		host := strings.TrimSuffix(strings.TrimPrefix(value[:i], "["), "]")
		port = value[i+1:]
		ip, err := netip.ParseAddr(host)
		switch {
		case host == "localhost":
		case err != nil:
			return Address{}, fmt.Errorf("%q is not an IP address: give on, PORT, ADDRESS:PORT or unix:PATH", host)
		default:
			a.Host = ip
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 1<<16-1 {
		return Address{}, fmt.Errorf(
			"%q is not a port from 0 to 65534: give on, PORT, ADDRESS:PORT or unix:PATH", port)
	}
	a.Port = uint16(n)

	return a, nil
}

// maxPath is the maximum length, in bytes, of a Unix socket's path that all systems accept.
const maxPath = 103

// parsePath parses the path after "unix:".
func parsePath(path string) (Address, error) {
	if path == "" {
		return Address{}, fmt.Errorf("unix: has no path: give unix:PATH")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Address{}, fmt.Errorf("find the directory of unix:PATH: %w", err)
	}
	if len(path) > maxPath {
		return Address{}, fmt.Errorf("%[2]q has %[3]d bytes, but the path of a socket has at most %[1]d: give a shorter one",
			maxPath, path, len(path))
	}
	return Address{Path: path}, nil
}

// IsPublic reports whether other machines can send to the address.
func (a Address) IsPublic() bool { return a.Path == "" && a.Host.IsValid() && !a.Host.IsLoopback() }

// jobAddress returns the address at which the job reaches a UDP port: loopback if the port is open on all addresses.
func jobAddress(port netip.AddrPort) string {
	a := port.Addr().Unmap()
	switch {
	case a.IsUnspecified() && a.Is4():
		a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case a.IsUnspecified():
		a = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(a, port.Port()).String()
}

// ParseEndpoint parses a value of --scrape, the URL of a Prometheus endpoint.
func ParseEndpoint(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	switch {
	case err != nil: // do not show the URL and err, which may contain a password
		return nil, errors.New("an endpoint is not a URL: give http://HOST:PORT/PATH")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%s is not the URL of an endpoint: give http://HOST:PORT/PATH", u.Redacted())
	}
	return u, nil
}
