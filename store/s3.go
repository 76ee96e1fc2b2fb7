package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/internal/retry"
	"github.com/perfagent/perfagent/internal/text"
)

// An s3 is a Connector that stores objects in a bucket of Amazon S3 or of a compatible server. The object RUN-ID/node-N
// has the key PREFIX/RUN-ID/node-N.json.
type s3 struct {
	layout
	url         url.URL // the store's address
	endpoint    url.URL // scheme and host; with style=host, the bucket's host
	bucket      string  // "" if the host includes the bucket
	region      string
	credentials *credentialsProvider
	client      *http.Client

	unconditional atomic.Bool // an object was put without a condition, because the server does not support conditions
}

// defaultRegion is the region for which requests are signed if no region is set.
const defaultRegion = "us-east-1"

// newS3 returns the connector for u, an s3: URL. It sends no request.
func newS3(u *url.URL) (*s3, error) {
	options, err := optionsOf(u, "endpoint", "region", "style")
	if err != nil {
		return nil, err
	}
	bucket := u.Hostname()
	switch {
	case u.User != nil:
		return nil, errors.New("open store: an address of S3 has no user: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case bucket == "" || u.Port() != "" || escape(bucket, false) != bucket:
		return nil, errors.New("open store: the address of a bucket is s3://BUCKET[/PREFIX]")
	}

	s := &s3{layout: outLayout, url: *u, bucket: bucket}
	s.region = cmp.Or(options.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), defaultRegion)
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		parts := strings.Split(prefix, "/")
		if slices.Contains(parts, ".") || slices.Contains(parts, "..") || slices.Contains(parts, "") {
			return nil, errors.New("open store: the prefix of a bucket must not have parts that are empty or dots")
		}
		s.prefix = prefix + "/"
	}
	if err := s.setEndpoint(options); err != nil {
		return nil, err
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // objects are not decompressed
	transport.MaxIdleConnsPerHost = 8
	transport.ResponseHeaderTimeout = responseTimeout
	transport.MaxResponseHeaderBytes = maxLine
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the signature is valid for one host
	}}
	s.credentials = &credentialsProvider{region: s.region}
	return s, nil
}

// setEndpoint sets s.endpoint from the options or the environment. With style=host, it moves the bucket into the host.
func (s *s3) setEndpoint(options url.Values) error {
	given := cmp.Or(options.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	style := options.Get("style")
	switch {
	case style != "" && style != "path" && style != "host":
		return errors.New("open store: style must be path or host")
	case options.Has("endpoint") && options.Get("endpoint") == "", options.Has("region") && options.Get("region") == "":
		return errors.New("open store: endpoint and region must not be empty")
	case given == "":
		s.endpoint = url.URL{Scheme: "https", Host: "s3." + s.region + ".amazonaws.com"}
		if style == "" && !strings.Contains(s.bucket, ".") { // wildcard certificates match only one label
			style = "host"
		}
	default:
		e, err := url.Parse(given)
		if err != nil || e.User != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" ||
			strings.Trim(e.Path, "/") != "" {
			return errors.New("open store: endpoint must be http://HOST[:PORT] or https://HOST[:PORT], without a user")
		}
		s.endpoint = url.URL{Scheme: e.Scheme, Host: e.Host}
	}

	if style == "host" {
		s.endpoint.Host, s.bucket = s.bucket+"."+s.endpoint.Host, ""
	}
	return nil
}

// check implements checker.
func (s *s3) check(_ context.Context, name string) error {
	if !IsName(name) {
		return ErrName
	}
	return nil
}

// A request is a request to an S3 server.
type request struct {
	method, key string
	query       url.Values
	onlyNew     bool // a PUT succeeds only if the object does not exist
	body        []byte
}

// do signs and sends q. A response with an error status becomes an *s3Error.
func (s *s3) do(ctx context.Context, q request) (*http.Response, error) {
	k, err := s.credentials.get(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.newRequest(ctx, q)
	if err != nil {
		return nil, err
	}
	sign(r, q.body, k, s.region, "s3", time.Now())

	response, err := s.client.Do(r)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, newS3Error(response, k)
}

// newRequest returns the unsigned HTTP request for q.
func (s *s3) newRequest(ctx context.Context, q request) (*http.Request, error) {
	to := s.endpoint
	to.Path = "/" + strings.TrimPrefix(s.bucket+"/"+q.key, "/")
	to.RawPath = escape(to.Path, true)
	to.RawQuery = strings.ReplaceAll(q.query.Encode(), "+", "%20") // as in the signed form

	r, err := http.NewRequestWithContext(ctx, q.method, to.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, errors.New("the endpoint is malformed")
	}
	if q.method == http.MethodPut {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.onlyNew {
		r.Header.Set("If-None-Match", "*")
	}
	return r, nil
}

// requestError returns the cause of ctx if that has ended, and otherwise err without the address of the request.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if _, cut := errors.AsType[textproto.ProtocolError](err); cut {
		return fmt.Errorf("%w in the headers of the response", io.ErrUnexpectedEOF)
	}
	return unexpected(err)
}

// Put implements Connector. If the server does not support conditions, another process may put an object of the same
// name between the check and the put.
func (s *s3) Put(ctx context.Context, name string, data []byte) error {
	response, err := s.do(ctx, request{method: http.MethodHead, key: s.Key(name)})
	if err == nil {
		response.Body.Close()
		return ErrExists
	}
	if busy, answered := serverBusy(err); busy || !answered { // without permission to list, the status is not 404
		return err
	}

	put := request{method: http.MethodPut, key: s.Key(name), body: data, onlyNew: true}
	err = s.send(ctx, put)
	if isStatus(err, http.StatusNotImplemented) {
		s.unconditional.Store(true)
		put.onlyNew = false
		err = s.send(ctx, put)
	}
	if isStatus(err, http.StatusPreconditionFailed) {
		return ErrExists
	}
	return err
}

// Replace implements Connector.
func (s *s3) Replace(ctx context.Context, name string, data []byte) error {
	return s.send(ctx, request{method: http.MethodPut, key: s.Key(name), body: data})
}

// send sends q, and discards the body of the response.
func (s *s3) send(ctx context.Context, q request) error {
	response, err := s.do(ctx, q)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxLine)) // so that the connection can be reused
	return response.Body.Close()
}

// Get implements Connector.
func (s *s3) Get(ctx context.Context, name string) ([]byte, error) {
	response, err := s.do(ctx, request{method: http.MethodGet, key: s.Key(name)})
	if isNoObject(err) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	return readBody(ctx, response, MaxSize)
}

// readBody reads the body of response. A body of more than most bytes is an error.
func readBody(ctx context.Context, response *http.Response, most int64) ([]byte, error) {
	if response.ContentLength > most {
		return nil, fmt.Errorf("it is too large: %d bytes", response.ContentLength)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, most+1)) // as it arrives: the length may be false
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it is too large: more than %d bytes", most)
	}
	return data, nil
}

// Exists implements Connector.
func (s *s3) Exists(ctx context.Context, name string) (bool, error) {
	response, err := s.do(ctx, request{method: http.MethodHead, key: s.Key(name)})
	switch {
	case isStatus(err, http.StatusNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, response.Body.Close()
}

// Evict implements Connector.
func (s *s3) Evict(ctx context.Context, name string) error {
	err := s.send(ctx, request{method: http.MethodDelete, key: s.Key(name)})
	if isNoObject(err) {
		return nil
	}
	return err
}

// A listResult is a response to ListObjectsV2 (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html).
type listResult struct {
	EncodingType          string // "url" if the keys are encoded as requested
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key          string
		LastModified time.Time
		Size         int64
	}
}

// Limits of a list of objects.
const (
	maxListing = 4 << 20 // bytes of one response, which has at most a thousand objects
	maxPages   = 10000
)

// List implements Connector. It requests a thousand objects at a time.
func (s *s3) List(ctx context.Context, prefix string) ([]ObjectInfo, error) {
	var list []ObjectInfo
	token := ""
	for range maxPages {
		page, err := s.page(ctx, s.prefix+prefix, token)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Contents {
			if name, ok := s.nameOf(c.Key); ok {
				list = append(list, ObjectInfo{name, c.Size, c.LastModified})
			}
		}

		if !page.IsTruncated || page.NextContinuationToken == "" || page.NextContinuationToken == token {
			return list, nil
		}
		token = page.NextContinuationToken
	}
	return nil, errors.New("the list of objects does not end")
}

// page requests one page of the objects with keys that begin with prefix. It requests encoded keys, because XML cannot
// represent control characters: one key with such a character would make the list unreadable.
func (s *s3) page(ctx context.Context, prefix, token string) (*listResult, error) {
	query := url.Values{"encoding-type": {"url"}, "list-type": {"2"}, "prefix": {prefix}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	response, err := s.do(ctx, request{method: http.MethodGet, query: query})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := readBody(ctx, response, maxListing)
	if err != nil {
		return nil, err
	}
	return parseListing(data)
}

// parseListing parses a response to ListObjectsV2.
func parseListing(data []byte) (*listResult, error) {
	out := new(listResult)
	if err := xml.Unmarshal(data, out); err != nil {
		return nil, errors.New("the list of objects is not from an S3 server")
	}
	if out.EncodingType != "url" {
		return out, nil
	}

	for i := range out.Contents {
		if key, err := url.QueryUnescape(out.Contents[i].Key); err == nil {
			out.Contents[i].Key = key
		}
	}
	return out, nil
}

// URL implements Connector.
func (s *s3) URL() string { return s.url.String() }

// Close implements Connector.
func (s *s3) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// An s3Error is a response with an error status.
type s3Error struct {
	status        int
	code, message string        // from the server; "" if none
	region        string        // region of the bucket, if that is not the region of the request
	after         time.Duration // wait requested by the server, or 0
}

// Error implements error.
func (e *s3Error) Error() string {
	said := strconv.Itoa(e.status) + " " + cmp.Or(e.code, http.StatusText(e.status))
	if e.message != "" {
		said += ": " + e.message
	}
	if e.region != "" {
		return "the bucket is in another region: add region=" + text.Printable(text.Clip(e.region, maxMessage))
	}
	return "the server responds: " + text.Printable(text.Clip(said, maxMessage))
}

// isTemporary reports whether the server may respond differently later.
func (e *s3Error) isTemporary() bool {
	switch e.code {
	case "RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "SlowDown":
		return true
	}
	return e.status >= 500 && e.status != http.StatusNotImplemented || e.status == http.StatusTooManyRequests
}

// newS3Error returns the error for resp, a response with an error status. The message is left out if it
// repeats the credentials k.
func newS3Error(resp *http.Response, k credentials) error {
	var said struct{ Code, Message string }
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	if err == nil {
		_ = xml.Unmarshal(data, &said) // the response may be from a proxy
	}

	e := &s3Error{status: resp.StatusCode, code: said.Code, message: said.Message, after: retry.After(resp.Header)}
	for _, secret := range []string{k.ID, k.Secret, k.Token} {
		if secret != "" && strings.Contains(e.message+e.code, secret) {
			e.code, e.message = "", ""
		}
	}
	if resp.StatusCode/100 == 3 {
		e.region = resp.Header.Get("X-Amz-Bucket-Region")
	}
	return e
}

// isStatus reports whether err is a response with the given status.
func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*s3Error](err)
	return ok && e.status == status
}

// isNoObject reports whether err means that the requested object does not exist. A response without a code may mean
// that the bucket does not exist.
func isNoObject(err error) bool {
	e, ok := errors.AsType[*s3Error](err)
	return ok && e.status == http.StatusNotFound && (e.code == "" || e.code == "NoSuchKey")
}

// isMetadataHost reports whether host may be a service that provides this machine's credentials, because it is a
// loopback, link-local, or private IPv6 address.
func isMetadataHost(host string) bool {
	ip := net.ParseIP(host)
	ours := ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsPrivate() && ip.To4() == nil // false for nil
	return host == "localhost" || ours
}

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

// sign signs r and all its headers with Signature Version 4. body is the body of r.
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
