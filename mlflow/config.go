package mlflow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
)

// A Config says where the server is and how to talk to it. NewConfig makes one from the
// environment. One made by hand needs only URI, and then there are no retries.
//
// There are secrets in it. Printing it, logging it and encoding it as JSON show none of them.
type Config struct {
	// URI is the server's address: http(s)://host[:port][/prefix], without user info, query and
	// fragment.
	URI string

	// Username and Password are sent as Basic authentication if neither is empty. Otherwise Token
	// is sent as a Bearer token, unless it is empty.
	Username, Password, Token string

	// InsecureTLS leaves the server's certificate unchecked. It excludes CAPath.
	InsecureTLS bool

	// CAPath is a file of certificates (PEM), or a folder of such files, that the server's
	// certificate must come from. They replace the system's. ClientCertPath is a PEM file with our
	// certificate and its key. "" means none. Only regular files of up to 16 MiB are read.
	CAPath, ClientCertPath string

	// Workspace is sent as X-MLFLOW-WORKSPACE, for servers with several workspaces. "" is not sent.
	Workspace string

	// MaxRetries is how often a request is sent again after the first try. There is no wait before
	// the first retry. Before retry n ≥ 2 the wait is BackoffFactor·2^(n-1) seconds plus a random
	// part of BackoffJitter seconds, and at most MaxBackoff (0: 120 s). These are urllib3's rules.
	MaxRetries                   int
	BackoffFactor, BackoffJitter float64
	MaxBackoff                   time.Duration

	// Timeout is for one request, from dialling to the last byte of the answer. 0 means 120 s.
	Timeout time.Duration

	// MaxResponse limits how many bytes of an answer are read, after decompression. The default,
	// which cannot be exceeded, is 64 MiB, and 64 KiB for what is shown of errors. An answer that is
	// longer is an error that does not pass by itself.
	MaxResponse int64

	// IgnoreRetryAfter waits as described above even if the server says how long to wait.
	IgnoreRetryAfter bool

	// NoRedirects makes every redirect an error.
	NoRedirects bool

	// OnRetry, if not nil, is called before a request is sent again. err is what went wrong, and
	// wait is how long it will be until then. If it returns false, there is no further try.
	OnRetry func(err error, wait time.Duration) (again bool)

	// OnWait, if not nil, is called in a goroutine of its own when a request has waited for its answer for 5 s, and may
	// wait until limit is over. op says what was requested.
	OnWait func(op string, limit time.Duration)

	// UserAgent is sent as User-Agent. "" means that of package net/http.
	UserAgent string

	// userInfo is true if the credentials come from the URI. Then they are used even if one of the
	// two is empty.
	userInfo bool
}

const (
	defaultTimeout    = 120 * time.Second // of MLflow
	defaultMaxBackoff = 120 * time.Second // of urllib3
)

// NewConfig returns a Config for a tracking URI, which is the value of MLFLOW_TRACKING_URI or
// another one, and the MLFLOW_* variables, which lookup returns (os.LookupEnv). They have the
// meaning and the defaults of MLflow's Python client, but an empty one counts as not set. A value
// that makes no sense is an error that names the variable.
//
//	MLFLOW_TRACKING_USERNAME, _PASSWORD      each, if not set, from the section [mlflow] of ~/.mlflow/credentials
//	MLFLOW_TRACKING_TOKEN                    used when user name or password is missing
//	MLFLOW_TRACKING_INSECURE_TLS             true, false, 1 or 0
//	MLFLOW_TRACKING_SERVER_CERT_PATH         else REQUESTS_CA_BUNDLE, else CURL_CA_BUNDLE, unless insecure
//	MLFLOW_TRACKING_CLIENT_CERT_PATH
//	MLFLOW_WORKSPACE
//	MLFLOW_HTTP_REQUEST_MAX_RETRIES          0 to 9, default 7
//	MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR       0 to 119, default 2
//	MLFLOW_HTTP_REQUEST_BACKOFF_JITTER       default 1.0
//	MLFLOW_HTTP_REQUEST_TIMEOUT              whole seconds, default 120
//	MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER   default true
//	MLFLOW_ALLOW_HTTP_REDIRECTS              default true
//	MLFLOW_TRACKING_AWS_SIGV4, _AUTH         not supported: an error, because the server would refuse every request
//
// User info in the URI (http://user:password@host) beats user name, password and token of the
// variables, because the Python client's HTTP library lets it overwrite their header. As there, a
// user name without a colon is ignored.
func NewConfig(uri string, lookup func(string) (string, bool)) (Config, error) {
	if err := CheckURI(uri); err != nil {
		return Config{}, err
	}

	e := environment{lookup: lookup}
	cfg := Config{
		InsecureTLS:      e.boolean("MLFLOW_TRACKING_INSECURE_TLS", false),
		CAPath:           e.text("MLFLOW_TRACKING_SERVER_CERT_PATH"),
		ClientCertPath:   e.text("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
		Workspace:        strings.TrimSpace(e.text("MLFLOW_WORKSPACE")),
		MaxRetries:       e.integer("MLFLOW_HTTP_REQUEST_MAX_RETRIES", 7, 0, 9),
		BackoffFactor:    float64(e.integer("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", 2, 0, 119)),
		BackoffJitter:    e.seconds("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", 1),
		MaxBackoff:       defaultMaxBackoff,
		Timeout:          time.Duration(e.integer("MLFLOW_HTTP_REQUEST_TIMEOUT", 120, 1, 1e9)) * time.Second,
		IgnoreRetryAfter: !e.boolean("MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER", true),
		NoRedirects:      !e.boolean("MLFLOW_ALLOW_HTTP_REDIRECTS", true),
	}
	e.rejectUnsupportedAuth()
	if cfg.CAPath == "" && !cfg.InsecureTLS {
		cfg.CAPath = cmp.Or(e.text("REQUESTS_CA_BUNDLE"), e.text("CURL_CA_BUNDLE"))
	}
	cfg.setServer(uri, &e)

	if e.err == nil {
		e.err = cfg.check()
	}
	if e.err != nil {
		return Config{}, e.err
	}
	return cfg, nil
}

// setServer splits a URI that has passed CheckURI into address and credentials. If it has
// none, the credentials of the environment are used.
func (c *Config) setServer(uri string, e *environment) {
	u, err := url.Parse(strings.TrimSpace(uri))
	if err != nil {
		return // not after CheckURI
	}
	c.URI = baseURL(u)
	c.Username, c.Password = e.credentials()
	c.Token = e.text("MLFLOW_TRACKING_TOKEN")
	user := u.User.Username()
	if password, ok := u.User.Password(); ok && (user != "" || password != "") {
		c.Username, c.Password, c.userInfo = user, password, true
	}
}

// check returns what is wrong with a config, as far as that can be known without a server.
func (c *Config) check() error {
	if c.InsecureTLS && c.CAPath != "" {
		return errors.New("MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH exclude each other:" +
			" unset one of them")
	}
	for _, v := range []string{c.Token, c.Workspace, c.UserAgent} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return errors.New("MLFLOW_TRACKING_TOKEN, MLFLOW_WORKSPACE and the user agent go into HTTP headers:" +
				" one of them has a line end or another control character")
		}
	}
	return nil
}

// usesBasicAuth reports whether user name and password are sent.
func (c *Config) usesBasicAuth() bool { return c.userInfo || c.Username != "" && c.Password != "" }

// String returns what is not secret.
func (c Config) String() string {
	auth := "no credentials"
	switch {
	case c.usesBasicAuth():
		auth = "user name and password"
	case c.Token != "":
		auth = "token"
	}
	return fmt.Sprintf("%s (%s)", PublicURI(c.URI), auth)
}

// Format writes String for every verb, so that none shows the fields.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// MarshalJSON encodes what String returns.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }
