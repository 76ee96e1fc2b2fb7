package mlflow

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckURI_ExplainsRefusedURIs(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"http://h", "https://h:5000", "HTTP://h:5000/", "http://h/prefix/more",
		"http://u:p@h:5000", "http://u:p%40%2F@h",
		"http://127.0.0.1:5000", "http://[::1]:5000", "https://h?x=1#y", "  http://h \n",
		"http://mlflow.svc.cluster.local:80/a%20b"} {
		if err := CheckURI(uri); err != nil {
			t.Errorf("CheckURI(%q): %v, want nil", uri, err)
		}
	}
	for kind, uris := range map[string][]string{
		"folder": {"file:///tmp/mlruns", "file:mlruns", "/data/mlruns", "./mlruns", "../x", "~/x", "a/b", `C:\mlruns`},
		"SQL": {"sqlite:///mlflow.db", "sqlite://", "postgresql://u:secret@h/db", "mysql+pymysql://u:secret@h/db",
			"mssql+pyodbc:///?odbc_connect=PWD%3Dsecret"},
		"Databricks": {"databricks", "databricks://profile", "databricks-uc", "databricks-uc://p", "uc", "uc:http://localhost:8080"},
		"Azure":      {"azureml://region.api/secret"},
		"AWS":        {"arn:aws:sagemaker:x:secret"},
		"plugin":     {"htp://user:secret@h", "user:secret@h", "s3://secret"},
	} {
		for _, uri := range uris {
			err := CheckURI(uri)
			if !errors.Is(err, ErrUnsupportedURI) {
				t.Errorf("CheckURI(%q): %v, want ErrUnsupportedURI", uri, err)
				continue
			}
			wantText(t, err, kind, "http://")
		}
	}
	for _, uri := range []string{"", " ", "localhost", "localhost:5000", "h:5000/x", "[::1]:5000", "http:",
		"http:/h", "http://", "http://:5000", "http://h:port",
		"http://h:0", "http://h:65536", "http://h h", "http://h\x00", `http://h\secret`, "http://user:se/cret@h",
		"http://user:12/secret@h", "http://user:12?secret@h",
		"http://user:12#secret@h", "http://user:secret%@h", "http://u:sec ret@h", "://h", "http://[::1", "!x:y"} {
		if err := CheckURI(uri); err == nil || errors.Is(err, ErrUnsupportedURI) {
			t.Errorf("CheckURI(%q): %v, want an error other than ErrUnsupportedURI", uri, err)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "cret@") {
			t.Errorf("CheckURI(%q): %v, which contains the secret", uri, err)
		}
	}
}

func TestPublicURI_HidesSecrets(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"http://h:5000":                   "http://h:5000",
		"https://u:p@h:5000/a/b/?q=1#f":   "https://h:5000/a/b",
		"http://u:p@x@h":                  "http://h",
		"http://user:12/secret@h":         "http://(hidden)",
		"http://user:pa#ss@h/x":           "http://(hidden)",
		"http://user:pa?ss@h/x":           "http://(hidden)",
		"postgresql://u:p@h/db":           "postgresql://h/db",
		"postgresql://u:p@h/db?pass=1":    "postgresql://h/db",
		"mssql+pyodbc:///?odbc_connect=P": "mssql+pyodbc://",
		"sqlserver://h;password=x":        "sqlserver://h",
		"sqlite:////data/mlflow.db":       "sqlite:////data/mlflow.db",
		"file:///tmp/x":                   "file:///tmp/x",
		"databricks":                      "databricks",
		"user:secret@h":                   "(hidden)",
		"user:secret@x://h":               "(hidden)",
		"http://h\x1b[31m\n/x":            "http://h[31m/x",
		"":                                "",
	} {
		if got := PublicURI(uri); got != want {
			t.Errorf("PublicURI(%q) = %q, want %q", uri, got, want)
		}
	}
}

func FuzzURI(f *testing.F) {
	f.Add("user", "pass", "h/?#")
	f.Add("u:@/", "p?#@//", "h:5000/x")
	f.Fuzz(func(t *testing.T, user, password, host string) {
		const secret = "\u00a7ecret"
		if strings.Contains(user+host, "\u00a7") {
			return
		}
		for _, uri := range []string{"http://" + user + ":" + secret + password + "@" + host,
			user + ":" + secret + password + "@" + host, "http://" + host + "?" + secret + password} {
			if public := PublicURI(uri); strings.Contains(public, "\u00a7") && !strings.Contains(user, "/") {
				t.Errorf("PublicURI(%q) = %q, which contains the secret", uri, public)
			}
			err := CheckURI(uri)
			if err != nil && strings.Contains(err.Error(), "\u00a7") {
				t.Errorf("CheckURI(%q): %v, which contains the secret", uri, err)
			}
			cfg, err := NewConfig(uri, env())
			if err == nil && strings.Contains(cfg.URI, "ecret") && !strings.Contains(user+password+host, "ecret") {
				t.Errorf("NewConfig(%q): the URI is %q, which contains a secret", uri, cfg.URI)
			}
		}
	})
}
