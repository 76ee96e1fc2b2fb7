package mlflow

import (
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is how many answers in a row may be redirects, the last answer included.
const maxRedirects = 10

// redirect returns where to send a request next, "" when the answer is no redirect, or an error when it is one that is
// not followed.
func (c *Client) redirect(q *call, from string, resp *http.Response) (next string, e *Error) {
	follow := false
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		follow = true
	case http.StatusMovedPermanently, http.StatusFound:
		follow = q.method == http.MethodGet // the method of others would change
	case http.StatusSeeOther:
	default:
		return "", nil
	}
	e = &Error{Op: q.op, URL: q.url, Status: resp.StatusCode, final: true}
	old, err := url.Parse(from)
	if err != nil {
		e.Message = "a redirect from a malformed URL"
		return "", e
	}
	to, err := old.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == "" || resp.Header.Get("Location") == "" {
		e.Message = "a redirect to nowhere"
		return "", e
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	if follow && !c.config.NoRedirects && sameServer(old, to) {
		return to.String(), nil
	}
	e.Message = c.clean("the server redirects to " + PublicURI(to.String()))
	if old.Scheme == "https" && to.Scheme == "http" {
		e.advice = "which is not encrypted, and not followed: a proxy in front of it may not know that it serves https"
		return "", e
	}
	e.advice = "if that is where the tracking server is, set MLFLOW_TRACKING_URI to " + c.clean(movedBase(q.url, c.config.URI, to))
	return "", e
}

// sameServer tells whether credentials for one URL may go to another: same scheme, host and port, or the step from the
// default port of http to that of https, where the certificate proves the host's name.
func sameServer(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == to.Scheme {
		return portOf(from) == portOf(to)
	}
	return from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443"
}

// portOf is a URL's port, also where it is the scheme's default.
func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// movedBase is the tracking URI that would have led to where a request was redirected: the new URL without the part
// that the request had added to the old one.
func movedBase(asked, base string, to *url.URL) string {
	added := strings.TrimPrefix(asked, base)
	return strings.TrimRight(strings.TrimSuffix(PublicURI(to.String()), added), "/")
}
