//go:build e2e

package browser

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A live page with a password in its address is updated, although fetch rejects such addresses.
func TestBrowser_PasswordInAddressKeepsLiveUpdates(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(1)
	page := growing(t, &seconds).Config.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, token, _ := r.BasicAuth(); token != "t0k" {
			w.Header().Set("WWW-Authenticate", `Basic realm="perfagent"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	b := newTab(t)
	b.visit(strings.Replace(server.URL, "http://", "http://me:t0k@", 1) + "/")
	b.whole()
	seconds.Store(30)
	b.length(30)
}
