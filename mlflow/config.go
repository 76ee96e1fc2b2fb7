package mlflow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/durable"
)

// A Config holds the address of the server and the settings of the client. NewConfig reads a Config from the
// environment. A Config with only a URI is also valid, and means no retries.
//
// A Config contains secrets, but printing it, logging it or encoding it as JSON reveals none.
type Config struct {
	// URI is the server's address, http(s)://host[:port][/prefix], without user info, query and fragment.
	URI string

	// Username and Password are sent as Basic authentication if neither is empty. Otherwise Token, if not empty, is
	// sent as a Bearer token.
	Username, Password, Token string

	// InsecureTLS disables the check of the server's certificate. It cannot be combined with CAPath.
	InsecureTLS bool

	// CAPath is a file with PEM certificates, or a folder of such files, to use instead of the system's authorities.
	// ClientCertPath is a PEM file with the client's certificate and key. "" means none. Only regular files of up to 16
	// MiB are read.
	CAPath, ClientCertPath string

	// Workspace is sent as X-MLFLOW-WORKSPACE unless it is empty. It is for servers with several workspaces.
	Workspace string

	// MaxRetries limits the retries of a request. There is no wait before the first retry. Before retry n ≥ 2, the wait
	// is BackoffFactor·2^(n-1) seconds plus a random part of BackoffJitter seconds, but at most MaxBackoff (0 means 120
	// s). These are urllib3's rules.
	MaxRetries                   int
	BackoffFactor, BackoffJitter float64
	MaxBackoff                   time.Duration

	// Timeout limits one try of a request, from dialing to the last byte of the response. 0 means 120 s.
	Timeout time.Duration

	// MaxResponse limits the size of a response in bytes, after decompression. The default and maximum is 64 MiB. A
	// longer response is a permanent error. Only the first 64 KiB of an error response are read.
	MaxResponse int64

	// IgnoreRetryAfter makes the client ignore the server's Retry-After.
	IgnoreRetryAfter bool

	// NoRedirects makes every redirect an error.
	NoRedirects bool

	// OnRetry, if not nil, is called before the wait for a retry. err is the failure, and wait is the time until the
	// retry. If OnRetry returns false, there is no retry.
	OnRetry func(err error, wait time.Duration) (again bool)

	// OnWait, if not nil, is called in another goroutine after a request has waited 5 s for its response. op describes
	// the request, and limit is its Timeout.
	OnWait func(op string, limit time.Duration)

	// UserAgent is sent as User-Agent. "" means the default of net/http.
	UserAgent string

	// userInfo means that Username and Password come from the URI. They are used even if one of the two is empty.
	userInfo bool
}

const (
	defaultTimeout    = 120 * time.Second // MLflow's
	defaultMaxBackoff = 120 * time.Second // urllib3's
)

// NewConfig returns a Config for a tracking URI, usually the value of MLFLOW_TRACKING_URI, and the MLFLOW_* variables.
// lookup returns the variables, as os.LookupEnv does. They have the same meaning and defaults as in MLflow's Python
// client, except that an empty variable is treated as not set. For an invalid value, the error names the variable.
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
// User info in the URI (http://user:password@host) takes precedence over the variables for user name, password and
// token, as in the Python client. A user name without a colon is ignored, also as in the Python client.
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

// setServer splits uri, which has passed CheckURI, into address and credentials. If the URI has no credentials,
// setServer takes them from e.
func (c *Config) setServer(uri string, e *environment) {
	u, err := url.Parse(strings.TrimSpace(uri))
	if err != nil {
		return // impossible after CheckURI
	}
	c.URI = baseURL(u)
	c.Username, c.Password = e.credentials()
	c.Token = e.text("MLFLOW_TRACKING_TOKEN")
	user := u.User.Username()
	if password, ok := u.User.Password(); ok && (user != "" || password != "") {
		c.Username, c.Password, c.userInfo = user, password, true
	}
}

// check returns an error if c is invalid for any server.
func (c *Config) check() error {
	if c.InsecureTLS && c.CAPath != "" {
		return errors.New("MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH cannot both be set:" +
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

// usesBasicAuth reports whether requests are sent with a user name and password.
func (c *Config) usesBasicAuth() bool { return c.userInfo || c.Username != "" && c.Password != "" }

// String returns the address and the kind of credentials. It contains no secrets.
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

// Format writes the result of String for every verb, so that no verb prints the fields.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// MarshalJSON encodes the result of String.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

const (
	maxCredentials = 1 << 20  // bytes of ~/.mlflow/credentials
	maxCertificate = 16 << 20 // bytes of a certificate file
)

// An environment parses the variables that lookup returns. It collects errors in err.
type environment struct {
	lookup func(string) (string, bool)
	err    error
}

// text returns the value of the variable name, or "" if it is not set.
func (e *environment) text(name string) string {
	v, _ := e.lookup(name)
	return v
}

// boolean parses a variable as MLflow does: true, 1, false or 0, in upper or lower case. def is the default.
func (e *environment) boolean(name string, def bool) bool {
	switch strings.ToLower(e.text(name)) {
	case "":
		return def
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	e.bad(name, "want true, false, 1 or 0")
	return def
}

// integer parses a variable as a whole number from lowest to highest. def is the default.
func (e *environment) integer(name string, def, lowest, highest int) int {
	v := strings.TrimSpace(e.text(name))
	if v == "" {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < lowest || n > highest {
		e.bad(name, fmt.Sprintf("want a whole number from %d to %d", lowest, highest))
		return def
	}
	return n
}

// seconds parses a variable as a number that is not negative. def is the default.
func (e *environment) seconds(name string, def float64) float64 {
	v := strings.TrimSpace(e.text(name))
	if v == "" {
		return def
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		e.bad(name, "want a number of seconds, 0 or more")
		return def
	}
	return n
}

// rejectUnsupportedAuth records an error if a kind of authentication is set that this client lacks. Without that
// authentication, the server would refuse requests, or attribute them to another user.
func (e *environment) rejectUnsupportedAuth() {
	if e.boolean("MLFLOW_TRACKING_AWS_SIGV4", false) {
		e.fail(errors.New("MLFLOW_TRACKING_AWS_SIGV4: perfagent cannot sign requests for AWS; unset it:" +
			" authentication not supported by this client"))
	}
	if e.text("MLFLOW_TRACKING_AUTH") != "" {
		e.fail(errors.New("MLFLOW_TRACKING_AUTH: it names a plugin of MLflow for Python: use MLFLOW_TRACKING_TOKEN," +
			" or user name and password: authentication not supported by this client"))
	}
}

// bad records that the variable name has an invalid value. The error does not quote the value, because a secret may be
// in the wrong variable.
func (e *environment) bad(name, want string) { e.fail(fmt.Errorf("%s: %s", name, want)) }

func (e *environment) fail(err error) { e.err = errors.Join(e.err, err) }

// credentials returns the user name and the password, each from a variable or, if that is not set, from the credentials
// file.
func (e *environment) credentials() (user, password string) {
	user, password = e.text("MLFLOW_TRACKING_USERNAME"), e.text("MLFLOW_TRACKING_PASSWORD")
	home := e.text("HOME")
	if user != "" && password != "" || home == "" {
		return user, password
	}

	file := filepath.Join(home, ".mlflow", "credentials")
	text, err := durable.ReadRegular(file, maxCredentials)
	info, missing := os.Stat(file)
	if missing != nil || info.IsDir() || errors.Is(err, fs.ErrPermission) {
		return user, password // Python's parser also ignores a file that it may not read
	}

	section := make(map[string]string)
	if err == nil {
		section, err = parseCredentials(string(text))
	}
	if err != nil {
		e.fail(fmt.Errorf("read %s: %w", file, err))
	}
	user = cmp.Or(user, section["mlflow_tracking_username"])
	return user, cmp.Or(password, section["mlflow_tracking_password"])
}

// parseCredentials parses the section [mlflow] of a file in the format of Python's configparser. It supports the syntax
// that two plain keys need: sections, "key = value" or "key: value" with keys in upper or lower case, and comment lines
// that begin with # or ;. %% is a percent sign, and [DEFAULT] supplies keys that the section lacks. Errors do not quote
// the file.
func parseCredentials(text string) (map[string]string, error) {
	defaults, section := map[string]string{}, map[string]string{}
	var in map[string]string // the section of the line; nil before the first section
	for i, raw := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line := strings.TrimSpace(raw)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			switch line {
			case "[mlflow]":
				in = section
			case "[DEFAULT]":
				in = defaults
			default:
				in = map[string]string{} // ignored
			}
			continue
		case in == nil:
			return nil, fmt.Errorf("line %d: no section yet: the file must begin with [mlflow]", i+1)
		}
		eq := strings.IndexAny(line, "=:")
		if eq <= 0 {
			return nil, fmt.Errorf("line %d: want key = value", i+1)
		}
		key := strings.ToLower(strings.TrimSpace(line[:eq]))
		in[key] = strings.ReplaceAll(strings.TrimSpace(line[eq+1:]), "%%", "%")
	}

	maps.Copy(defaults, section)
	return defaults, nil
}
