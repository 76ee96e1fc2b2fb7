package mlflow

import (
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is how many answers in a row may be redirects, including the last one.
const maxRedirects = 10

// redirect returns where to send a call next. That is "" if the answer is not a redirect, and an error
// if it is one that is not followed.
func (c *Client) redirect(q *call, from string, resp *http.Response) (next string, e *Error) {
	follow := !c.config.NoRedirects
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound:
		follow = follow && q.method == http.MethodGet // the method of others would change
	case http.StatusSeeOther:
		follow = false
	default:
		return "", nil
	}

	e = &Error{Op: q.op, URL: q.url, Status: resp.StatusCode, Message: "a redirect to nowhere", final: true}
	old, err := url.Parse(from)
	if err != nil {
		return "", e
	}
	to, err := old.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == "" || resp.Header.Get("Location") == "" {
		return "", e
	}

	to.User, to.Fragment, to.RawFragment = nil, "", ""
	if follow && sameServer(old, to) {
		return to.String(), nil
	}
	e.Message = c.clean("the server redirects to " + PublicURI(to.String()))
	if old.Scheme == "https" && to.Scheme == "http" {
		e.advice = "which is not encrypted, and not followed: a proxy in front of it may not know that it serves https"
		return "", e
	}
	base := c.clean(movedBase(q.url, c.config.URI, to))
	e.advice = "if that is where the tracking server is, set MLFLOW_TRACKING_URI to " + base
	return "", e
}

// sameServer reports whether credentials for one URL may go to another. Both must have the same
// scheme, host and port. The step from the default port of http to that of https is allowed,
// because the certificate proves the host's name.
func sameServer(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == to.Scheme {
		return portOf(from) == portOf(to)
	}
	return from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443"
}

// portOf returns a URL's port, also if it is the default of the scheme.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// movedBase returns the tracking URI that would have led to where a request was redirected: the new
// URL without what the request had added to the old base.
func movedBase(asked, base string, to *url.URL) string {
	added := strings.TrimPrefix(asked, base)
	return strings.TrimRight(strings.TrimSuffix(PublicURI(to.String()), added), "/")
}
