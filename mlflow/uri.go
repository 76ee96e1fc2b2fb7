package mlflow

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// UnsupportedURIError is the error of CheckURI for a tracking URI that is good for MLflow's Python client, or may be,
// and that no client of the REST interface can talk to.
type UnsupportedURIError struct {
	// Kind is what the URI means: "a folder", "an SQL database".
	Kind string
	// Instead is what to do, the second half of Error.
	Instead string
}

// Error says in one sentence what it is and what to do instead.
func (e *UnsupportedURIError) Error() string {
	return "the tracking URI is " + e.Kind + ", and only http:// and https:// can be reached from here: " + e.Instead
}

// CheckURI tells whether a client can talk to a tracking URI, from the text alone. The error is nil, an
// *UnsupportedURIError for what MLflow knows and this client can't do, or any other for what is malformed. It never
// quotes user info or query. White space around the URI is no harm.
func CheckURI(uri string) error {
	uri = strings.TrimSpace(uri)
	scheme, rest, found := strings.Cut(uri, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case uri == "":
		return errors.New("the tracking URI is empty: give one like http://host:5000")
	case found && (scheme == "http" || scheme == "https"):
		return checkHTTP(uri, rest)
	case isWord(uri, "databricks", "databricks-uc", "uc"):
		return unsupported(uri)
	case isFolder(uri, scheme, found):
		return &UnsupportedURIError{"a folder", `start "mlflow server --backend-store-uri" on it and use that server's address`}
	case !found || isPort(rest):
		return errors.New("the tracking URI has no scheme: put http:// or https:// in front of it")
	case !isScheme(scheme):
		return errors.New("the tracking URI is malformed: give one like http://host:5000")
	}
	return unsupported(scheme)
}

// unsupported describes a scheme (or a word that stands for a URI) that is not ours.
func unsupported(scheme string) error {
	engine, _, _ := strings.Cut(scheme, "+") // mysql+pymysql
	switch {
	case scheme == "file":
		return &UnsupportedURIError{"a folder", `start "mlflow server --backend-store-uri" on it and use that server's address`}
	case isWord(engine, "sqlite", "mysql", "postgresql", "postgres", "mssql"):
		return &UnsupportedURIError{"an SQL database", `start "mlflow server --backend-store-uri" on it and use that server's address`}
	case isWord(scheme, "databricks", "databricks-uc", "uc"):
		return &UnsupportedURIError{"a Databricks profile or Unity Catalog",
			"use the workspace's https:// address and MLFLOW_TRACKING_TOKEN"}
	case scheme == "azureml":
		return &UnsupportedURIError{"an Azure ML workspace", "use an MLflow server's address"}
	case scheme == "arn":
		return &UnsupportedURIError{"an AWS resource", "use an MLflow server's address"}
	}
	return &UnsupportedURIError{"of a kind that needs a plugin of MLflow for Python", "use an MLflow server's address"}
}

// checkHTTP looks at a URI and at what follows its "http:" or "https:".
func checkHTTP(uri, rest string) error {
	malformed := errors.New("the tracking URI is malformed: want http(s)://host[:port][/prefix]," +
		" with special characters in user name and password percent-encoded")
	if !strings.HasPrefix(rest, "//") || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return malformed
	}
	// An @ behind the host is most likely one of a password with a slash in it, which thus is no password but
	// a path that would be shown to everybody.
	if _, path := splitAuthority(rest[2:]); strings.Contains(path, "@") {
		return malformed
	}
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" {
		return malformed // err quotes parts of what may be a password
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return malformed
		}
	}
	return nil
}

// PublicURI is a URI of any kind as it may be shown and written to files: without user info, query and fragment. Where
// it can't be told for sure where those are, little more than the scheme is left.
func PublicURI(uri string) string {
	uri = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.TrimSpace(uri))
	scheme, rest, found := strings.Cut(uri, "://")
	if !found {
		if strings.Contains(uri, "@") {
			return "(hidden)" // user:password@host, or an address of another kind
		}
		return cutQuery(uri)
	}
	if !isScheme(scheme) {
		return "(hidden)"
	}
	authority, path := splitAuthority(rest)
	if strings.Contains(path, "@") {
		return scheme + "://(hidden)"
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	return scheme + "://" + strings.TrimRight(cutQuery(host+path), "/")
}

// address is a good URI in the form of Config.URI.
func address(u *url.URL) string {
	a := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return strings.TrimRight(a.String(), "/")
}

// splitAuthority splits what follows the "//" of a URI into authority and the rest.
func splitAuthority(s string) (authority, rest string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutQuery drops query, fragment, and parameters, in which databases have their passwords.
func cutQuery(s string) string {
	if i := strings.IndexAny(s, "?#;"); i >= 0 {
		return s[:i]
	}
	return s
}

func isWord(s string, words ...string) bool {
	for _, w := range words {
		if s == w {
			return true
		}
	}
	return false
}

// isFolder tells whether MLflow takes a URI, cut at its first colon, for a path: also C:\runs.
func isFolder(uri, scheme string, colon bool) bool {
	drive := colon && len(scheme) == 1 && isScheme(scheme) && len(uri) > 2 && (uri[2] == '/' || uri[2] == '\\')
	return strings.HasPrefix(uri, "/") || strings.HasPrefix(uri, ".") || strings.HasPrefix(uri, "~") ||
		drive || !colon && strings.ContainsAny(uri, `/\`)
}

// isPort tells whether what follows a colon is a port, and what is before it therefore a host.
func isPort(s string) bool {
	s, _, _ = strings.Cut(s, "/")
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n <= 65535
}

// isScheme tells whether s has the form of a URI's scheme.
func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return s != ""
}
