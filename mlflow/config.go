package mlflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"
)

// ErrUnsupportedAuth is the error of NewConfig, for errors.Is, where MLFLOW_TRACKING_AWS_SIGV4 or MLFLOW_TRACKING_AUTH
// ask for a kind of authentication that this client does not have. To go on without it would mean requests that the
// server refuses, or takes for somebody else's.
var ErrUnsupportedAuth = errors.New("authentication not supported by this client")

// Config says where the server is and how to talk to it. NewConfig makes one from the environment; one made by hand
// needs only URI (and then does not retry).
//
// There are secrets in it. Printing, logging and encoding it as JSON show none of them.
type Config struct {
	// URI is the server's address: http(s)://host[:port][/prefix], without user info, query and fragment.
	URI string

	// Username and Password, when neither is empty, are sent as Basic authentication. Else Token, when not empty,
	// is sent as a Bearer token.
	Username, Password, Token string

	// InsecureTLS leaves the server's certificate unchecked. It excludes CAPath.
	InsecureTLS bool

	// CAPath is a file of certificates (PEM), or a folder of such files, that the server's certificate must come
	// from; they replace the system's. ClientCertPath is a PEM file with our certificate and its key. "": none. What is no
	// regular file or has more than 16 MiB is not read.
	CAPath, ClientCertPath string

	// Workspace is sent as X-MLFLOW-WORKSPACE, for servers with several of them. "": not sent.
	Workspace string

	// MaxRetries is how often a request is sent again after the first try, BackoffFactor and BackoffJitter are
	// seconds: before retry 1 there is no wait, before retry n ≥ 2 it is BackoffFactor·2^(n-1) plus a random part
	// of BackoffJitter, at most MaxBackoff (0: 120 s). So urllib3 has it.
	MaxRetries                   int
	BackoffFactor, BackoffJitter float64
	MaxBackoff                   time.Duration

	// Timeout is for one request from dialling to the last byte of the answer. 0: 120 s.
	Timeout time.Duration

	// MaxAnswer bounds how many bytes of an answer are read, after decompression. 0, as what is larger, leaves it at
	// 64 MiB for lists and runs, 4 MiB for all else, and 64 KiB for what is shown of errors. An answer that is cut by
	// it is an error that does not pass.
	MaxAnswer int64

	// IgnoreRetryAfter waits as said above even if the server's answer says how long to wait.
	IgnoreRetryAfter bool

	// NoRedirects makes every redirect an error.
	NoRedirects bool

	// OnRetry, if any, is asked before a request is sent again: err is what went wrong, wait how long it will be
	// until then. false ends the tries.
	OnRetry func(err error, wait time.Duration) (again bool)

	// UserAgent is sent as User-Agent. "": the one of package net/http.
	UserAgent string

	// userInfo is true when the credentials come from the URI: they are used even if one of the two is empty.
	userInfo bool
}

const (
	defaultTimeout    = 120 * time.Second // of MLflow
	defaultMaxBackoff = 120 * time.Second // of urllib3
)

// NewConfig makes a Config for a tracking URI (the value of MLFLOW_TRACKING_URI, or what was given instead) and the
// MLFLOW_* variables, which lookup returns (os.LookupEnv). They mean what they mean to MLflow's Python client, and have
// its defaults; but an empty one counts as not set. What it can't make sense of is an error that names the variable.
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
//	MLFLOW_TRACKING_AWS_SIGV4, MLFLOW_TRACKING_AUTH    ErrUnsupportedAuth
//
// User info in the URI (http://user:password@host) beats user name, password and token of the variables, because the
// Python client's HTTP library lets it overwrite their header; a user name without a colon is ignored, as there.
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
	e.unsupportedAuth()
	if cfg.CAPath == "" && !cfg.InsecureTLS {
		cfg.CAPath = e.firstOf("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
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

// setServer splits a URI that CheckURI found good into address and credentials, and adds those of the environment.
func (c *Config) setServer(uri string, e *environment) {
	u, err := url.Parse(strings.TrimSpace(uri))
	if err != nil {
		return // not after CheckURI
	}
	c.Username, c.Password = e.credentials()
	c.Token = e.text("MLFLOW_TRACKING_TOKEN")
	user, password := u.User.Username(), ""
	if p, ok := u.User.Password(); ok && (user != "" || p != "") {
		password = p
		c.Username, c.Password, c.userInfo = user, password, true
	}
	c.URI = address(u)
}

// check finds what no server is needed to know for wrong.
func (c *Config) check() error {
	if c.InsecureTLS && c.CAPath != "" {
		return errors.New("MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH exclude each other: unset one of them")
	}
	for _, v := range []string{c.Token, c.Workspace, c.UserAgent} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return errors.New("MLFLOW_TRACKING_TOKEN, MLFLOW_WORKSPACE and the user agent go into HTTP headers:" +
				" one of them has a line end or another control character")
		}
	}
	return nil
}

// basic tells whether user name and password are what is sent.
func (c *Config) basic() bool { return c.userInfo || c.Username != "" && c.Password != "" }

// String shows what is no secret.
func (c Config) String() string {
	auth := "no credentials"
	switch {
	case c.basic():
		auth = "user name and password"
	case c.Token != "":
		auth = "token"
	}
	return fmt.Sprintf("%s (%s)", PublicURI(c.URI), auth)
}

// Format writes String for every verb, so that none shows the fields.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// LogValue is String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON encodes String.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }
