package mlflow

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// environment reads variables and keeps all that is wrong with them in err.
type environment struct {
	lookup func(string) (string, bool)
	err    error
}

// text is a variable's value, "" when it is not set.
func (e *environment) text(name string) string {
	v, _ := e.lookup(name)
	return v
}

// firstOf is the first of the variables that is set.
func (e *environment) firstOf(names ...string) string {
	for _, name := range names {
		if v := e.text(name); v != "" {
			return v
		}
	}
	return ""
}

// boolean reads a variable as MLflow does: true and 1, false and 0, in any case of letters.
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

// integer reads a whole number from least to most.
func (e *environment) integer(name string, def, least, most int) int {
	v := strings.TrimSpace(e.text(name))
	if v == "" {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		e.bad(name, fmt.Sprintf("want a whole number from %d to %d", least, most))
		return def
	}
	return n
}

// seconds reads a number that is not negative.
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

// unsupportedAuth notes the kinds of authentication that this client lacks.
func (e *environment) unsupportedAuth() {
	if e.boolean("MLFLOW_TRACKING_AWS_SIGV4", false) {
		e.fail(fmt.Errorf("MLFLOW_TRACKING_AWS_SIGV4: requests cannot be signed for AWS: unset it: %w", ErrUnsupportedAuth))
	}
	if e.text("MLFLOW_TRACKING_AUTH") != "" {
		e.fail(fmt.Errorf("MLFLOW_TRACKING_AUTH: it names a plugin of MLflow for Python: use"+
			" MLFLOW_TRACKING_TOKEN, or user name and password: %w", ErrUnsupportedAuth))
	}
}

// bad notes a value that can't be used. The value is not quoted: a secret may have got into the wrong variable.
func (e *environment) bad(name, want string) { e.fail(fmt.Errorf("%s: %s", name, want)) }

func (e *environment) fail(err error) { e.err = errors.Join(e.err, err) }

// credentials are user name and password, each from its variable or else from the credentials file.
func (e *environment) credentials() (user, password string) {
	user, password = e.text("MLFLOW_TRACKING_USERNAME"), e.text("MLFLOW_TRACKING_PASSWORD")
	home := e.text("HOME")
	if user != "" && password != "" || home == "" {
		return user, password
	}
	file := filepath.Join(home, ".mlflow", "credentials")
	text, err := readFile(file, maxCredentials)
	if errors.Is(err, errUnfit) {
		e.fail(err)
	}
	if err != nil {
		return user, password // Python's parser passes over a file that it may not read, too
	}
	section, err := parseCredentials(string(text))
	if err != nil {
		e.fail(fmt.Errorf("read %s: %w", file, err))
		return user, password
	}
	if user == "" {
		user = section["mlflow_tracking_username"]
	}
	if password == "" {
		password = section["mlflow_tracking_password"]
	}
	return user, password
}

// parseCredentials reads the section [mlflow] of a file in the format of Python's configparser, as far as two plain
// keys need it: sections, "key = value" or "key: value" with keys in any case, lines that begin with # or ; as
// comments, %% for a percent sign, [DEFAULT] for what the section lacks. No line's text gets into an error.
func parseCredentials(text string) (map[string]string, error) {
	defaults, section := map[string]string{}, map[string]string{}
	var in map[string]string // the section that is being read; nil before the first
	for i, raw := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line := strings.TrimSpace(raw)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			in = map[string]string{} // a section that is not for us
			if line == "[mlflow]" {
				in = section
			} else if line == "[DEFAULT]" {
				in = defaults
			}
			continue
		case in == nil:
			return nil, fmt.Errorf("line %d: no section yet: the file begins with [mlflow]", i+1)
		}
		eq := strings.IndexAny(line, "=:")
		if eq <= 0 {
			return nil, fmt.Errorf("line %d: want key = value", i+1)
		}
		key := strings.ToLower(strings.TrimSpace(line[:eq]))
		in[key] = strings.ReplaceAll(strings.TrimSpace(line[eq+1:]), "%%", "%")
	}
	for key, value := range defaults {
		if _, ok := section[key]; !ok {
			section[key] = value
		}
	}
	return section, nil
}
