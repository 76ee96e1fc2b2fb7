package mlflow

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/internal/durable"
)

// A Client sends requests to one tracking server. It is safe for concurrent use.
//
// Proxies come from HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Redirects (307 and 308; 301 and 302 for GET) are followed if
// scheme, host and port stay the same, or if they change from http on port 80 to https on port 443 of the same host
// name. Any other redirect is an error that contains the new address. So credentials are sent to only one server.
type Client struct {
	config    Config
	base      *url.URL
	transport http.RoundTripper // an *http.Transport, except in tests
	redactor  *redactor
	clock     *clock
}

// New returns a client. It reads the certificates in cfg and does not use the network. With an http URI, unreadable
// certificates are ignored.
func New(cfg Config) (*Client, error) {
	if err := CheckURI(cfg.URI); err != nil {
		return nil, err
	}
	base, err := url.Parse(strings.TrimSpace(cfg.URI))
	if err != nil {
		return nil, errors.New("the tracking URI is malformed")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("the tracking URI of a Config must not have user info, query or fragment: use NewConfig")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}

	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = defaultMaxBackoff
	}
	cfg.URI = baseURL(base)

	tlsConfig, err := newTLSConfig(cfg)
	if err != nil && base.Scheme == "https" {
		return nil, err
	}
	return &Client{
		config: cfg, base: base, transport: newTransport(tlsConfig), redactor: newRedactor(cfg), clock: new(clock),
	}, nil
}

// newTransport returns a transport that shares no state with the rest of the process. It sets no time limit for the
// response, because Config.Timeout limits the whole request.
func newTransport(tlsConfig *tls.Config) *http.Transport {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 30 * time.Second,
		MaxIdleConns: 2, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 256 << 10,
	}
}

// newTLSConfig reads the certificates in cfg. If it returns an error, the returned configuration is incomplete but
// usable.
func newTLSConfig(cfg Config) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: cfg.InsecureTLS}
	if cfg.CAPath != "" {
		pool, err := readCAs(cfg.CAPath)
		if err != nil {
			return c, fmt.Errorf("read the certificates of MLFLOW_TRACKING_SERVER_CERT_PATH: %w", err)
		}
		c.RootCAs = pool
	}

	if cfg.ClientCertPath != "" {
		pem, err := durable.ReadRegular(cfg.ClientCertPath, maxCertificate)
		var cert tls.Certificate
		if err == nil {
			cert, err = tls.X509KeyPair(pem, pem)
		}
		if err != nil {
			return c, fmt.Errorf("read the certificate and key of MLFLOW_TRACKING_CLIENT_CERT_PATH, one PEM file"+
				" with both, %s: %w", cfg.ClientCertPath, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// readCAs reads the certificates in the file path, or in all files of the folder path.
func readCAs(path string) (*x509.CertPool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*")); err != nil {
			return nil, err
		}
	}

	pool, found := x509.NewCertPool(), false
	for _, file := range files {
		pem, err := durable.ReadRegular(file, maxCertificate)
		if err != nil && !info.IsDir() {
			return nil, err
		}
		found = pool.AppendCertsFromPEM(pem) || found
	}
	if !found {
		return nil, fmt.Errorf("%s has no certificate (PEM)", path)
	}
	return pool, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	if t, ok := c.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// URI returns the server's address, without secrets and without a trailing slash.
func (c *Client) URI() string { return c.config.URI }

// String returns the URI.
func (c Client) String() string { return c.config.URI }

// Format writes the URI for every verb, so that no verb prints the fields.
func (c Client) Format(f fmt.State, _ rune) { io.WriteString(f, c.config.URI) }

// dateAge is the assumed maximum age of a response's Date, which is in whole seconds, and which servers may update only
// once per second. The Date of a busy server may sometimes be older.
const dateAge = 2 * time.Second

// A clock estimates from Date headers how far this machine's clock is ahead of the server's. The difference is at least
// low and at most high. Both are the minimum over all responses.
type clock struct {
	mu        sync.Mutex
	known     bool // there was a response with a Date
	low, high time.Duration
}

// note adds a response with the given header. sent and answered are the times of the request and the response,
// according to this machine's clock.
func (c *clock) note(sent, answered time.Time, header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil || header.Get("Age") != "" { // a cached response has an old Date
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := sent.Sub(date)-dateAge, answered.Sub(date)
	if c.known {
		low, high = min(low, c.low), min(high, c.high)
	}
	c.known, c.low, c.high = true, low, high
}

// ClockAhead returns the smallest difference between this machine's clock and the server's that is consistent with the
// responses so far. It is positive if this machine's clock is ahead, and 0 if no difference is certain.
func (c *Client) ClockAhead() time.Duration {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	return max(0, c.clock.low) + min(0, c.clock.high)
}
