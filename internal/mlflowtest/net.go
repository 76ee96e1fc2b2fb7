package mlflowtest

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// TLSProxy starts an HTTPS proxy for the server target. Only the file at caPath contains the certificate of the proxy's
// authority.
func TLSProxy(tb testing.TB, target string) (address, caPath string) {
	tb.Helper()
	to, err := url.Parse(target)
	if err != nil {
		tb.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	front := httptest.NewUnstartedServer(proxy)
	front.Config.ErrorLog = quiet()
	front.StartTLS()
	tb.Cleanup(front.Close)

	caPath = filepath.Join(tb.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(caPath, ca, 0o600); err != nil {
		tb.Fatal(err)
	}
	return front.URL, caPath
}
