package mlflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// defaults returns the result of NewConfig for http://h:5000 without variables.
func defaults() Config {
	return Config{URI: "http://h:5000", MaxRetries: 7, BackoffFactor: 2, BackoffJitter: 1,
		MaxBackoff: 120 * time.Second, Timeout: 120 * time.Second}
}

func TestNewConfig_ReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	credentials := []string{"MLFLOW_TRACKING_USERNAME=u", "MLFLOW_TRACKING_PASSWORD=p", "MLFLOW_TRACKING_TOKEN=t"}
	for name, tt := range map[string]struct {
		uri  string
		env  []string
		want func(*Config)
	}{
		"defaults":               {"", nil, func(*Config) {}},
		"slash, query, fragment": {" HTTP://h:5000/a/b/?x=secret#y \n", nil, func(c *Config) { c.URI = "http://h:5000/a/b" }},
		"user and password":      {"", credentials, func(c *Config) { c.Username, c.Password, c.Token = "u", "p", "t" }},
		"empty means not set": {"",
			[]string{"MLFLOW_TRACKING_INSECURE_TLS=", "MLFLOW_HTTP_REQUEST_TIMEOUT=", "MLFLOW_TRACKING_AUTH="},
			func(*Config) {}},
		"user info takes precedence": {"http://a:b%20c@h:5000", credentials,
			func(c *Config) { c.Username, c.Password, c.Token, c.userInfo = "a", "b c", "t", true }},
		"user info without password": {"http://a:@h:5000", []string{"MLFLOW_TRACKING_TOKEN=t"},
			func(c *Config) { c.Username, c.Token, c.userInfo = "a", "t", true }},
		"user name alone is ignored": {"http://a@h:5000", nil, func(*Config) {}},
		"TLS": {"", []string{"MLFLOW_TRACKING_SERVER_CERT_PATH=/ca", "REQUESTS_CA_BUNDLE=/no",
			"MLFLOW_TRACKING_CLIENT_CERT_PATH=/cert"},
			func(c *Config) { c.CAPath, c.ClientCertPath = "/ca", "/cert" }},
		"CA bundle of requests": {"", []string{"REQUESTS_CA_BUNDLE=/r", "CURL_CA_BUNDLE=/c"}, func(c *Config) { c.CAPath = "/r" }},
		"CA bundle of curl":     {"", []string{"CURL_CA_BUNDLE=/c"}, func(c *Config) { c.CAPath = "/c" }},
		"insecure takes precedence over CA bundle": {"", []string{"MLFLOW_TRACKING_INSECURE_TLS=TRUE", "CURL_CA_BUNDLE=/c"},
			func(c *Config) { c.InsecureTLS = true }},
		"retries": {"", []string{"MLFLOW_HTTP_REQUEST_MAX_RETRIES=0", "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR= 119 ",
			"MLFLOW_HTTP_REQUEST_BACKOFF_JITTER=0.25", "MLFLOW_HTTP_REQUEST_TIMEOUT=3",
			"MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER=False", "MLFLOW_ALLOW_HTTP_REDIRECTS=0"}, func(c *Config) {
			c.MaxRetries, c.BackoffFactor, c.BackoffJitter, c.Timeout = 0, 119, 0.25, 3*time.Second
			c.IgnoreRetryAfter, c.NoRedirects = true, true
		}},
		"workspace": {"", []string{"MLFLOW_WORKSPACE= team-a "}, func(c *Config) { c.Workspace = "team-a" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := check.Value(NewConfig(cmp.Or(tt.uri, "http://h:5000"), env(tt.env...)))(t), defaults()
			if tt.want(&want); !reflect.DeepEqual(got, want) {
				// fields is used instead of %v, because a Config hides its fields.
				t.Errorf("got %s\nwant %s", fields(got), fields(want))
			}
		})
	}
}

// fields formats all fields of a Config.
func fields(c Config) string {
	type open Config
	return fmt.Sprintf("%+v", open(c))
}

func TestNewConfig_RefusesInvalidValues(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"MLFLOW_HTTP_REQUEST_MAX_RETRIES":    {"10", "-1", "1.5"},
		"MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": {"120", "-2", "0.5"},
		"MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": {"-1", "NaN", "inf"},
		"MLFLOW_HTTP_REQUEST_TIMEOUT":        {"0", "2m", "99999999999999999999"},
		"MLFLOW_TRACKING_INSECURE_TLS":       {"yes"}, "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": {"on"},
		"MLFLOW_ALLOW_HTTP_REDIRECTS": {"2"}, "MLFLOW_TRACKING_AWS_SIGV4": {"maybe"}, "MLFLOW_TRACKING_TOKEN": {"a\nb"},
	} {
		for _, v := range values {
			_, err := NewConfig("http://h", env(name+"="+v))
			wantText(t, err, name)
		}
	}
	_, err := NewConfig("http://h", env("MLFLOW_TRACKING_INSECURE_TLS=1", "MLFLOW_TRACKING_SERVER_CERT_PATH=/ca"))
	wantText(t, err, "MLFLOW_TRACKING_INSECURE_TLS", "MLFLOW_TRACKING_SERVER_CERT_PATH")
	_, err = NewConfig("http://h", env("MLFLOW_TRACKING_AWS_SIGV4=true"))
	wantText(t, err, "MLFLOW_TRACKING_AWS_SIGV4", "authentication not supported")
	_, err = NewConfig("http://h", env("MLFLOW_TRACKING_AUTH=kubernetes"))
	wantText(t, err, "MLFLOW_TRACKING_AUTH", "authentication not supported")
	_, err = NewConfig("http://h", env("MLFLOW_HTTP_REQUEST_TIMEOUT=x", "MLFLOW_TRACKING_AUTH=y"))
	wantText(t, err, "MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_TRACKING_AUTH") // one error names all of them
}

func TestNewConfig_ReadsTheCredentialsFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, variable, user, password, bad string }{
		"plain": {file: "[mlflow]\nmlflow_tracking_username = alice\nmlflow_tracking_password = wonder = land\n",
			user: "alice", password: "wonder = land"},
		"colons, case": {
			file: "# c\n; c\n[other]\nx=1\n[mlflow]\r\nMLFLOW_Tracking_USERNAME: a\r\nmlflow_tracking_password:b%%c\r\n",
			user: "a", password: "b%c"},
		"default": {file: "[DEFAULT]\nmlflow_tracking_username=d\nmlflow_tracking_password=e\n[mlflow]\nmlflow_tracking_username=a",
			user: "a", password: "e"},
		"variables take precedence": {file: "[mlflow]\nmlflow_tracking_username=a\nmlflow_tracking_password=b",
			variable: "MLFLOW_TRACKING_PASSWORD=env", user: "a", password: "env"},
		"only another section": {file: "[databricks]\nmlflow_tracking_username=a\n"},
		"no section":           {file: "mlflow_tracking_password=hunter22\n", bad: "line 1"},
		"no key":               {file: "[mlflow]\n\nhunter22\n", bad: "line 3"},
		"no file":              {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if tt.file != "" {
				writeFile(t, filepath.Join(home, ".mlflow", "credentials"), tt.file)
			}
			cfg, err := NewConfig("http://h", env("HOME="+home, tt.variable))
			if tt.bad != "" {
				if wantText(t, err, "credentials", tt.bad); strings.Contains(err.Error(), "hunter22") {
					t.Errorf("the error contains the password: %v", err)
				}
				return
			}
			if err != nil || cfg.Username != tt.user || cfg.Password != tt.password {
				t.Errorf("user %q, password %q, error %v; want %q, %q", cfg.Username, cfg.Password, err, tt.user, tt.password)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestConfig_HidesSecrets(t *testing.T) {
	t.Parallel()
	cfg := Config{URI: "http://h", Username: "alice-user", Password: "hunter22", Token: "tok-en-123"}
	c := client(t, cfg)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cfg", cfg, "ptr", &cfg, "client", c)
	encoded, _ := json.Marshal(struct {
		C Config
		P *Config
		K *Client
	}{cfg, &cfg, c})
	outer := struct{ C any }{cfg}
	texts := []string{log.String(), string(encoded), cfg.String(), c.String(), fmt.Sprintf("%#v %#v", cfg, c)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, v := range []any{cfg, &cfg, c, outer, *c} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
	}
	for _, text := range texts {
		for _, s := range []string{"alice", "hunter", "tok-en", "616c696365"} {
			if strings.Contains(text, s) {
				t.Errorf("%q contains the secret %q", text, s)
			}
		}
	}
}
