package mlflow

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

func TestClient_SendsCredentials(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  Config
		want string
	}{
		"no credentials":                    {Config{}, ""},
		"basic":                             {Config{Username: "u", Password: "p"}, "Basic dTpw"},
		"basic takes precedence over token": {Config{Username: "u", Password: "p", Token: "t"}, "Basic dTpw"},
		"only user name":                    {Config{Username: "u", Token: "t"}, "Bearer t"},
		"only password":                     {Config{Password: "p", Token: "t"}, "Bearer t"},
		"token":                             {Config{Token: "t"}, "Bearer t"},
		"user info in URI":                  {Config{Username: "u", Token: "t", userInfo: true}, "Basic dTo="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization"); got != tt.want {
					t.Errorf("Authorization is %q, want %q", got, tt.want)
				}
				if r.Header.Get("X-MLFLOW-WORKSPACE") != "team" || r.Header.Get("User-Agent") != "me/1" {
					t.Errorf("header %v, want the workspace team and the user agent me/1", r.Header)
				}
				io.WriteString(w, goodRun)
			}))
			defer server.Close()
			tt.cfg.URI, tt.cfg.Workspace, tt.cfg.UserAgent = server.URL, "team", "me/1"
			check.Must(t, getRun(client(t, tt.cfg)))
		})
	}
}

func TestClient_NamesVariablesIfCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	uri := answering(t, 401, "").URI()
	for want, cfg := range map[string]Config{
		"set MLFLOW_TRACKING_USERNAME":                 {},
		"does not accept the user name and password":   {Username: "u", Password: "p"},
		"does not accept the token of MLFLOW_TRACKING": {Token: "t"},
	} {
		cfg.URI = uri
		wantFinal(t, getRun(client(t, cfg)), want, "401")
	}
}

func TestClient_FollowsRedirectsOnTheSameHost(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 307, 308} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/new/") {
				http.Redirect(w, r, "/new"+r.URL.RequestURI(), status)
				return
			}
			if r.Method == http.MethodPost {
				if m := bodyOf(t, r); m["key"] != "k" {
					t.Errorf("redirect with status %d: the body is %v, want the key k", status, m)
				}
				io.WriteString(w, "{}")
				return
			}
			if r.FormValue("run_id") != "r1" || r.Header.Get("Authorization") != "Bearer t" {
				t.Errorf("redirect with status %d: request %s with %v, want the run r1 and the token", status, r.URL, r.Header)
			}
			io.WriteString(w, goodRun)
		})
		c.config.Token = "t"
		if err := getRun(c); err != nil {
			t.Errorf("redirect with status %d: %v", status, err)
		}
		err := c.SetTag(context.Background(), "r1", Tag{"k", "v"})
		if status >= 307 && err != nil {
			t.Errorf("POST redirected with status %d: %v", status, err)
		}
		if status < 307 {
			wantText(t, err, "redirects to "+c.URI()+"/new/api", "MLFLOW_TRACKING_URI to "+c.URI()+"/new")
		}
		c.config.NoRedirects = true
		wantText(t, getRun(c), "redirects to")
	}
}

func TestClient_StopsEndlessRedirects(t *testing.T) {
	t.Parallel()
	n := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
	})
	if wantText(t, getRun(c), "too many redirects"); n != maxRedirects {
		t.Errorf("%d requests, want %d", n, maxRedirects)
	}
}

func TestClient_RefusesRedirectWithoutAddress(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"", "http://", ":", "mailto:s3cret", "://x?token=s3cret"} {
			n := 0
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				n++
				w.Header()["Location"] = []string{location}
				w.WriteHeader(status)
			})
			c.config.MaxRetries = 3
			e := wantText(t, getRun(c), "a redirect to nowhere", strconv.Itoa(status))
			if text := fmt.Sprint(e, e.Err); n != 1 || Temporary(e) || strings.Contains(text, "s3cret") {
				t.Errorf("Location %q: %d requests, temporary %v, error %s; want 1 request, false, no secret", location, n, Temporary(e), text)
			}
		}
	}
}

func TestClient_SendsNoCredentialsToOtherServers(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server received %s with %v, want no request", r.URL, r.Header)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "//", "//u:p@", 1)+r.URL.RequestURI(), status)
		})
		c.config.Username, c.config.Password = "alice", "secret"
		for _, err := range []error{getRun(c), c.SetTag(context.Background(), "r", Tag{"k", "v"}),
			c.UploadArtifact(context.Background(), &Run{ID: "r", ArtifactURI: "mlflow-artifacts:/0/r"}, "f", "", nil)} {
			e := wantText(t, err, "redirects to "+other.URL, "MLFLOW_TRACKING_URI to "+other.URL)
			if Temporary(err) || strings.Contains(e.advice, "/api/2.0/mlflow/") {
				t.Errorf("%v: temporary (%v), or %q has the path of the request; want neither", err, Temporary(err), e.advice)
			}
		}
	}
}

func TestSameServer_ComparesSchemeHostAndPort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"http://h/a", "http://H:80/b", true}, {"https://h", "https://h:443", true}, {"http://h", "https://h", true},
		{"http://h:80", "https://h:443", true},
		{"https://h", "http://h", false}, {"https://h:5000", "http://h:5000", false},
		{"http://h:5000", "https://h", false}, {"http://h:5000", "https://h:5000", false},
		{"http://h", "http://h:81", false}, {"http://h", "http://i", false}, {"http://h", "https://h.evil", false},
		{"http://h", "https://h:8443", false},
		{"http://[::1]:5", "http://[::1]:5", true}, {"http://h", "ftp://h", false},
	} {
		from, err1 := url.Parse(tt.from)
		if to, err2 := url.Parse(tt.to); err1 != nil || err2 != nil || sameServer(from, to) != tt.want {
			t.Errorf("sameServer(%s, %s): %v, %v, want %v", tt.from, tt.to, err1, err2, tt.want)
		}
	}
}

// authority is a private certificate authority.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.cert, a.key = a.issue(&x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "test CA"}})
	a.file = filepath.Join(t.TempDir(), "ca", "ca.pem")
	writeFile(t, a.file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})))
	return a
}

// issue signs a certificate. A nil authority returns a self-signed certificate.
func (a *authority) issue(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key := check.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = template.NotAfter.Add(-2 * time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der := check.Value(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(a.t)
	cert := check.Value(x509.ParseCertificate(der))(a.t)
	return cert, key
}

// server starts a server with a certificate from the authority. If demand is set, the server requires client
// certificates.
func (a *authority) server(template *x509.Certificate, demand bool) *httptest.Server {
	cert, key := a.issue(template)
	s := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, goodRun) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	if demand {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		s.TLS.ClientCAs.AddCert(a.cert)
	}
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return s
}

func loopback() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

func TestClient_ChecksCertificates(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	good := ca.server(loopback(), false).URL
	elsewhere := ca.server(&x509.Certificate{DNSNames: []string{"other.example"}}, false).URL
	old := loopback()
	old.NotAfter = time.Now().Add(-time.Minute)
	expired := ca.server(old, false).URL
	plainHTTP := httptest.NewServer(http.NotFoundHandler())
	defer plainHTTP.Close()

	for name, tt := range map[string]struct {
		cfg  Config
		want []string
	}{
		"right CA":      {Config{URI: good, CAPath: ca.file}, nil},
		"folder of CAs": {Config{URI: good, CAPath: filepath.Dir(ca.file)}, nil},
		"insecure":      {Config{URI: good, InsecureTLS: true}, nil},
		"no CA configured": {Config{URI: good}, []string{"does not trust", "MLFLOW_TRACKING_SERVER_CERT_PATH",
			"MLFLOW_TRACKING_INSECURE_TLS"}},
		"different CA":   {Config{URI: good, CAPath: stranger.file}, []string{"does not trust"}},
		"different host": {Config{URI: elsewhere, CAPath: ca.file}, []string{"another host name"}},
		"expired":        {Config{URI: expired, CAPath: ca.file}, []string{"not valid", "expired", "clock"}},
		"https URI of an http server": {Config{URI: strings.Replace(plainHTTP.URL, "http", "https", 1)},
			[]string{"does not speak TLS", "http://"}},
		"http URI of an https server": {Config{URI: strings.Replace(good, "https", "http", 1)}, []string{"HTTPS", "https://"}},
		"expired, not checked":        {Config{URI: expired, InsecureTLS: true}, nil},
	} {
		err := getRun(client(t, tt.cfg))
		if tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v, want no error", name, err)
			}
			continue
		}
		wantFinal(t, err, tt.want...)
	}
}

func TestClient_SendsItsCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.server(loopback(), true)
	// The server refuses after the client's part of the handshake: net/http may find the connection closed before it
	// has read the reason. That failure is temporary, and the next try gets the reason.
	wantFinal(t, getRun(client(t, Config{URI: server.URL, CAPath: ca.file, MaxRetries: 9})), "MLFLOW_TRACKING_CLIENT_CERT_PATH")
	cert, key := ca.issue(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	der := check.Value(x509.MarshalPKCS8PrivateKey(key))(t)
	certPEM := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for _, text := range []string{certPEM + keyPEM, keyPEM + certPEM} {
		file := filepath.Join(t.TempDir(), "me.pem")
		writeFile(t, file, text)
		check.Must(t, getRun(client(t, Config{URI: server.URL, CAPath: ca.file, ClientCertPath: file})))
	}
}

func TestNew_ReadsCertificates(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	writeFile(t, empty, "")
	for _, cfg := range []Config{{CAPath: "/nowhere/ca.pem"}, {CAPath: empty}, {CAPath: t.TempDir()},
		{ClientCertPath: "/nowhere/cert.pem"}, {ClientCertPath: empty}} {
		cfg.URI = "https://h"
		_, err := New(cfg)
		wantText(t, err, "MLFLOW_TRACKING_", "_CERT_PATH")
		cfg.URI = "http://h" // http needs no certificates
		check.Value(New(cfg))(t)
	}
	for _, cfg := range []Config{{URI: "x"}, {URI: "http://u:p@h"}, {URI: "http://h?q"},
		{URI: "http://h", InsecureTLS: true, CAPath: "x"}, {URI: "http://h", Token: "a\r\nb"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%s) succeeded, want an error", fields(cfg))
		}
	}
	if _, err := New(Config{URI: "sqlite:///x"}); !errors.Is(err, ErrUnsupportedURI) {
		t.Errorf("New with sqlite:///x: %v, want ErrUnsupportedURI", err)
	}
}
