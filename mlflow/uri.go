package mlflow

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ErrUnsupportedURI is the error of CheckURI for a tracking URI that MLflow's Python client may support, but that
// cannot be used with the REST interface.
var ErrUnsupportedURI = errors.New("perfagent can reach only http:// and https://")

// CheckURI returns nil if a Client can use uri as a tracking URI, judging by its text. The error is ErrUnsupportedURI
// if MLflow supports uri but this client does not, and a different error if uri is malformed. The error never quotes
// the user info or the query. White space around the URI is ignored.
func CheckURI(uri string) error {
	uri = strings.TrimSpace(uri)
	scheme, rest, found := strings.Cut(uri, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case uri == "":
		return errors.New("the tracking URI is empty: give one like http://host:5000")
	case found && (scheme == "http" || scheme == "https"):
		return checkHTTP(uri, rest)
	case isDatabricks(uri):
		return unsupported(uri)
	case isFolder(uri, scheme, found):
		return unsupported("file")
	case !found || isPort(rest):
		return errors.New("the tracking URI has no scheme: put http:// or https:// in front of it")
	case !isScheme(scheme):
		return errors.New("the tracking URI is malformed: give one like http://host:5000")
	}
	return unsupported(scheme)
}

// unsupported returns the error for a scheme, or for a word that MLflow accepts instead of a URI.
func unsupported(scheme string) error {
	const (
		startServer = `start "mlflow server --backend-store-uri" on it and use that server's address`
		otherServer = "use an MLflow server's address"
	)

	kind, advice := "of a kind that needs a plugin of MLflow's Python client", otherServer
	switch engine, _, _ := strings.Cut(scheme, "+"); { // mysql+pymysql
	case scheme == "file":
		kind, advice = "a folder", startServer
	case slices.Contains([]string{"sqlite", "mysql", "postgresql", "postgres", "mssql"}, engine):
		kind, advice = "an SQL database", startServer
	case isDatabricks(scheme):
		kind = "a Databricks profile or Unity Catalog"
		advice = "use the workspace's https:// address and MLFLOW_TRACKING_TOKEN"
	case scheme == "azureml":
		kind = "an Azure ML workspace"
	case scheme == "arn":
		kind = "an AWS resource"
	}
	return fmt.Errorf("the tracking URI is %s, but %w: %s", kind, ErrUnsupportedURI, advice)
}

// isDatabricks reports whether MLflow interprets s, a scheme or a whole URI, as Databricks.
func isDatabricks(s string) bool { return s == "databricks" || s == "databricks-uc" || s == "uc" }

// checkHTTP returns an error if uri is malformed. rest is the part after "http:" or "https:".
func checkHTTP(uri, rest string) error {
	malformed := errors.New("the tracking URI is malformed: want http(s)://host[:port][/prefix]," +
		" with special characters in user name and password percent-encoded")
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }
	if !strings.HasPrefix(rest, "//") || strings.ContainsFunc(uri, odd) {
		return malformed
	}

	// An @ after the host is most likely from a password with a slash. Such a password would be parsed as a path, and
	// paths are shown.
	if _, path := splitAuthority(rest[2:]); strings.Contains(path, "@") {
		return malformed
	}
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" {
		return malformed // err may quote parts of a password
	}
	if u.Port() != "" && !isPort(u.Port()) {
		return malformed
	}
	return nil
}

// PublicURI returns uri, which may be of any kind, in a form that may be shown and written to files: without user info,
// query and fragment. If their positions are uncertain, little more than the scheme is left.
func PublicURI(uri string) string {
	uri = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.TrimSpace(uri))

	scheme, rest, found := strings.Cut(uri, "://")
	switch {
	case !found && !strings.Contains(uri, "@"):
		return cutQuery(uri)
	case !found, !isScheme(scheme):
		return "(hidden)" // it may be user:password@host
	}
	authority, path := splitAuthority(rest)
	if strings.Contains(path, "@") {
		return scheme + "://(hidden)"
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	return scheme + "://" + strings.TrimRight(cutQuery(host+path), "/")
}

// baseURL returns u in the form of Config.URI.
func baseURL(u *url.URL) string {
	a := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return strings.TrimRight(a.String(), "/")
}

// splitAuthority splits s, the part of a URI after "//", into the authority and the rest.
func splitAuthority(s string) (authority, rest string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutQuery drops the query, the fragment, and parameters after a semicolon, which contain passwords in database
// addresses.
func cutQuery(s string) string {
	if i := strings.IndexAny(s, "?#;"); i >= 0 {
		return s[:i]
	}
	return s
}

// isFolder reports whether MLflow interprets uri as a path, such as C:\runs. scheme is the part before the first colon,
// if there is one.
func isFolder(uri, scheme string, colon bool) bool {
	drive := colon && len(scheme) == 1 && isScheme(scheme) && len(uri) > 2 && (uri[2] == '/' || uri[2] == '\\')
	return drive || uri[0] == '/' || uri[0] == '.' || uri[0] == '~' || !colon && strings.ContainsAny(uri, `/\`)
}

// isPort reports whether s, a text after a colon, begins with a port, so that the text before the colon is a host.
func isPort(s string) bool {
	s, _, _ = strings.Cut(s, "/")
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n <= 65535
}

// isScheme reports whether s has the form of a URI's scheme.
func isScheme(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Contains(letters, s[:1]) && strings.Trim(s, letters+"0123456789+-.") == ""
}
