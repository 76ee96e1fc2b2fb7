package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// An Address is the address of a server. The zero value means no address.
type Address struct {
	// Host is an IP address or, if Name is set, a host name.
	Host string
	Port string // decimal; 0 is any free port
	// Name reports whether Host is a name that must be looked up, which may take time.
	Name bool
}

const (
	loopback = "127.0.0.1" // host of an address with only a port
	digits   = "0123456789"
	letters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
)

// ParseAddress parses PORT, :PORT, HOST:PORT or [IPV6]:PORT. A missing HOST and localhost mean the loopback address
// 127.0.0.1.
func ParseAddress(text string) (Address, error) {
	if text == "" {
		return Address{}, errors.New("an empty address")
	}

	host, port, alone := "", text, strings.Trim(text, digits) == ""
	if !alone {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return Address{}, fmt.Errorf("%q is not PORT, :PORT, HOST:PORT or [IPV6]:PORT", text)
		}
	}

	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strings.Trim(port, digits) != "" { // no service names, no sign
		return Address{}, fmt.Errorf("%q: the port must be a number from 0 to 65535", text)
	}

	a := Address{Host: host, Port: strconv.FormatUint(n, 10)}
	_, err = netip.ParseAddr(host)
	switch {
	case alone, host == "" && text[0] == ':', strings.EqualFold(strings.TrimSuffix(host, "."), "localhost"):
		a.Host = loopback
	case err == nil:
	case text[0] != '[' && isHostName(host):
		a.Name = true
	default:
		return Address{}, fmt.Errorf("%q: %q is neither an IP address nor the name of a host", text, host)
	}

	return a, nil
}

// isHostName reports whether host consists of labels of letters, digits, '-' and '_' that neither begin nor end with
// '-'. A name with a numeric last label is refused, because it would be a malformed IP address.
func isHostName(host string) bool {
	name := strings.TrimSuffix(host, ".")
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, letters+digits) != "" {
			return false
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	return len(name) <= 253 && strings.Trim(last, digits) != ""
}

// String returns HOST:PORT.
func (a Address) String() string { return net.JoinHostPort(a.Host, a.Port) }

// Listen listens on the address. The error is the operating system's, without the address.
func (a Address) Listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false) // no client needs it, and it hides the socket from ss
	l, err := config.Listen(ctx, "tcp", a.String())
	var call *os.SyscallError
	var op *net.OpError
	switch {
	case errors.As(err, &call):
		return nil, call.Err
	case errors.As(err, &op):
		return nil, op.Err
	}

	return l, err
}

// URL returns the URL of l, which listens on a. If l listens on all addresses, the URL has hostname as its host.
func URL(l net.Listener, a Address, hostname string) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		port = a.Port
	}

	host := a.Host
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = cmp.Or(hostname, loopback)
	}

	// The zone of an IPv6 address is escaped in a URL (RFC 6874).
	return "http://" + strings.Replace(net.JoinHostPort(host, port), "%", "%25", 1) + "/"
}
