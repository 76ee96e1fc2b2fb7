package mlflow

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
)

const (
	maxCredentials = 1 << 20  // bytes of ~/.mlflow/credentials
	maxCertificate = 16 << 20 // bytes of a file of certificates
)

// An environment parses variables, which lookup returns. It collects the errors in err.
type environment struct {
	lookup func(string) (string, bool)
	err    error
}

// text returns the value of the variable name, or "" if that is not set.
func (e *environment) text(name string) string {
	v, _ := e.lookup(name)
	return v
}

// boolean parses a variable as MLflow does: true or 1, false or 0, in upper or lower case. def is the default.
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

// integer parses a variable that is a whole number from lowest to highest. def is the default.
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

// seconds parses a variable that is a number, not negative. def is the default.
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

// rejectUnsupportedAuth records an error if a kind of authentication is set that this client lacks. Without it, the
// server would refuse requests, or attribute them to another user.
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

// credentials returns user name and password, each from a variable or else from the credentials file.
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

// parseCredentials parses the section [mlflow] of a file in the format of Python's configparser. It supports what two
// plain keys need: sections, "key = value" or "key: value" with keys in upper or lower case, and comment lines that
// begin with # or ;. %% is a percent sign, and [DEFAULT] has keys that the section lacks. Errors contain no line of the
// file.
func parseCredentials(text string) (map[string]string, error) {
	defaults, section := map[string]string{}, map[string]string{}
	var in map[string]string // the section of the line; nil before the first
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
