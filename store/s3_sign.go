package store

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// credentials are the keys that sign a request. Services of containers and instances return them as JSON, AWS STS as
// XML.
type credentials struct {
	ID     string    `json:"AccessKeyId" xml:"AccessKeyId"`
	Secret string    `json:"SecretAccessKey" xml:"SecretAccessKey"`
	Token  string    `json:"Token" xml:"SessionToken"`
	Expire time.Time `json:"Expiration" xml:"Expiration"` // zero: never
}

// The formats of times and names in Signature Version 4
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
const (
	amzTime      = "20060102T150405Z"
	amzDate      = "20060102"
	amzAlgorithm = "AWS4-HMAC-SHA256"
)

// sign signs r, including all its headers, with Signature Version 4. body is the body of r.
func sign(r *http.Request, body []byte, k credentials, region, service string, at time.Time) {
	r.Header.Set("X-Amz-Date", at.UTC().Format(amzTime))
	r.Header.Set("X-Amz-Content-Sha256", sha256Hex(body))
	if k.Token != "" {
		r.Header.Set("X-Amz-Security-Token", k.Token)
	}

	names, headers := canonicalHeaders(r)
	request := strings.Join([]string{
		r.Method, cmp.Or(r.URL.EscapedPath(), "/"), r.URL.RawQuery, headers, names, sha256Hex(body),
	}, "\n")
	scope := strings.Join([]string{at.UTC().Format(amzDate), region, service, "aws4_request"}, "/")
	text := strings.Join([]string{amzAlgorithm, at.UTC().Format(amzTime), scope, sha256Hex([]byte(request))}, "\n")

	key := []byte("AWS4" + k.Secret)
	for _, part := range append(strings.Split(scope, "/"), text) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	r.Header.Set("Authorization", amzAlgorithm+" Credential="+k.ID+"/"+scope+", SignedHeaders="+names+
		", Signature="+hex.EncodeToString(key))
}

// canonicalHeaders returns the names of the headers and their lines, in the sorted form that is signed.
func canonicalHeaders(r *http.Request) (names, lines string) {
	list := []string{"host"}
	for name := range r.Header {
		list = append(list, strings.ToLower(name))
	}
	slices.Sort(list)

	var out strings.Builder
	for _, name := range list {
		value := r.URL.Host
		if name != "host" {
			value = strings.TrimSpace(r.Header.Get(name))
		}
		out.WriteString(name + ":" + value + "\n")
	}
	return strings.Join(list, ";"), out.String()
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// escape escapes s for Signature Version 4: all characters except letters, digits, "-._~" and, if slashes is set,
// slashes.
func escape(s string, slashes bool) string {
	s = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	if slashes {
		s = strings.ReplaceAll(s, "%2F", "/")
	}
	return s
}
