package store

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

// responseTimeout limits the wait for a response if the context has no deadline.
const responseTimeout = time.Minute

// A redisClient sends commands to a Redis server over one connection, which it opens when needed.
type redisClient struct {
	address        string // HOST:PORT
	user, password string
	database       int
	dial           func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	conn net.Conn // nil: none
	in   *bufio.Reader
}

// do sends commands together and returns one response for each, which may be a redisError. If an old connection fails,
// do tries again on a new one, because servers close unused connections.
func (s *redisClient) do(ctx context.Context, commands ...[]string) ([]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	used := s.conn != nil
	responses, err := s.try(ctx, commands)
	if err != nil && used && ctx.Err() == nil {
		responses, err = s.try(ctx, commands)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return responses, err
}

// try executes commands on the connection, which it opens if there is none, and drops after an error.
func (s *redisClient) try(ctx context.Context, commands [][]string) (responses []any, err error) {
	if s.conn == nil {
		err = s.connect(ctx)
	}
	if err == nil {
		responses, err = s.exchange(ctx, commands)
	}
	if err != nil {
		s.drop()
	}
	return responses, err
}

// connect opens a connection and logs in.
func (s *redisClient) connect(ctx context.Context) error {
	conn, err := s.dial(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	s.conn, s.in = conn, bufio.NewReaderSize(conn, maxLine)

	var first [][]string
	if s.password != "" {
		login := []string{"AUTH", s.user, s.password}
		first = append(first, slices.DeleteFunc(login, func(word string) bool { return word == "" }))
	}
	if s.database != 0 {
		first = append(first, []string{"SELECT", strconv.Itoa(s.database)})
	}
	if len(first) == 0 {
		return nil
	}
	responses, err := s.exchange(ctx, first)
	if err != nil {
		return err
	}
	if refused, ok := responses[0].(redisError); ok && s.password != "" { // servers repeat unknown commands
		return redisError(refused.code() + " to the user and password")
	}
	return firstError(responses)
}

// exchange writes commands and reads their responses, until ctx ends.
func (s *redisClient) exchange(ctx context.Context, commands [][]string) ([]any, error) {
	conn := s.conn
	conn.SetDeadline(time.Now().Add(responseTimeout))
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	var out []byte
	for _, words := range commands {
		out = appendCommand(out, words...)
	}
	if _, err := conn.Write(out); err != nil {
		return nil, err
	}

	responses := make([]any, 0, len(commands))
	for range commands {
		response, err := readResponse(s.in)
		if err != nil {
			return nil, err
		}
		if refused, ok := response.(redisError); ok {
			response = refused.redact(s.user, s.password)
		}
		responses = append(responses, response)
	}
	return responses, nil
}

// drop closes the connection.
func (s *redisClient) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// one executes a single command. An error response of the server becomes an error.
func (s *redisClient) one(ctx context.Context, words ...string) (any, error) {
	responses, err := s.do(ctx, words)
	if err != nil {
		return nil, err
	}
	return responses[0], firstError(responses)
}

// firstError returns the first error among responses.
func firstError(responses []any) error {
	for _, a := range responses {
		if err, ok := a.(redisError); ok {
			return err
		}
	}
	return nil
}

// A redis is a Connector that stores objects on a Redis server. The object RUN-ID/node-N has the key
// PREFIX:RUN-ID:node-N.
type redis struct {
	layout
	server     *redisClient
	url        url.URL       // without user
	ttl        time.Duration // lifetime of an object; 0: forever
	proxyStore bool          // any key is a name; objects never change, and the time of their put is unknown
}

// check implements checker.
func (r *redis) check(_ context.Context, name string) error {
	if !IsName(name) && (!r.proxyStore || name == "" || len(name) > maxLine) {
		return ErrName
	}
	return nil
}

// Put implements Connector.
func (r *redis) Put(ctx context.Context, name string, data []byte) error {
	return r.set(ctx, name, data, "NX")
}

// Replace implements Connector.
func (r *redis) Replace(ctx context.Context, name string, data []byte) error {
	if r.proxyStore {
		return errors.ErrUnsupported
	}
	return r.set(ctx, name, data)
}

// set stores an object with options of the command SET.
func (r *redis) set(ctx context.Context, name string, data []byte, options ...string) error {
	if r.ttl > 0 {
		options = append(options, "PX", strconv.FormatInt(r.ttl.Milliseconds(), 10))
	}

	response, err := r.server.one(ctx, append([]string{"SET", r.Key(name), string(data)}, options...)...)
	if err == nil && response == nil { // NX
		return ErrExists
	}
	return err
}

// Get implements Connector.
func (r *redis) Get(ctx context.Context, name string) ([]byte, error) {
	response, err := r.server.one(ctx, "GET", r.Key(name))
	if err != nil {
		return nil, err
	}

	switch v := response.(type) {
	case nil:
		return nil, ErrNotFound
	case string:
		return []byte(v), nil
	}
	return nil, errProtocol
}

// Exists implements Connector.
func (r *redis) Exists(ctx context.Context, name string) (bool, error) {
	response, err := r.server.one(ctx, "EXISTS", r.Key(name))
	return response == int64(1), err
}

// Evict implements Connector.
func (r *redis) Evict(ctx context.Context, name string) error {
	_, err := r.server.one(ctx, "DEL", r.Key(name))
	return err
}

// scanCount is the number of slots for keys that one SCAN visits. It keeps the server busy for about 2 ms.
const scanCount = "10000"

// List implements Connector. It requests thousands of keys at a time, and then the sizes and times of their values.
func (r *redis) List(ctx context.Context, prefix string) ([]ObjectInfo, error) {
	pattern := escapeGlob(r.prefix+strings.Replace(prefix, "/", r.separator, 1)) + "*"
	found := make(map[string]ObjectInfo) // SCAN may return a key twice
	for cursor := "0"; ; {
		response, err := r.server.one(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", scanCount)
		if err != nil {
			return nil, err
		}
		page, _ := response.([]any) // the next cursor and the keys
		if len(page) != 2 {
			return nil, errProtocol
		}
		next, isText := page[0].(string)
		keys, isList := page[1].([]any)
		if !isText || !isList {
			return nil, errProtocol
		}
		if err := r.statKeys(ctx, keys, found); err != nil {
			return nil, err
		}
		if cursor = next; cursor == "0" {
			return slices.Collect(maps.Values(found)), nil
		}
	}
}

// statKeys adds the objects of keys to into, with sizes and times. It includes values that are empty or not strings, so
// that reading them as reports fails with an error.
func (r *redis) statKeys(ctx context.Context, keys []any, into map[string]ObjectInfo) error {
	var names []string
	var commands [][]string
	for _, k := range keys {
		key, _ := k.(string)
		if name, ok := r.nameOf(key); ok {
			names = append(names, name)
			commands = append(commands, []string{"EXISTS", key}, []string{"STRLEN", key},
				[]string{"GETRANGE", key, "0", strconv.Itoa(gzipHeader - 1)})
		}
	}
	if len(names) == 0 {
		return nil
	}
	responses, err := r.server.do(ctx, commands...)
	if err != nil {
		return err
	}

	var header gzip.Reader
	for i, name := range names {
		if responses[3*i] == int64(0) { // the object was deleted in the meantime
			continue
		}
		e := ObjectInfo{Name: name}
		e.Size, _ = responses[3*i+1].(int64)
		begin, _ := responses[3*i+2].(string)
		if !r.proxyStore && header.Reset(strings.NewReader(begin)) == nil {
			e.Modified = header.ModTime
		}
		into[name] = e
	}
	return nil
}

// gzipHeader is the length of gzip's header, which has the time of the put (RFC 1952).
const gzipHeader = 10

// escapeGlob escapes the special characters of Redis patterns.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// URL implements Connector.
func (r *redis) URL() string { return r.url.String() }

// Close implements Connector.
func (r *redis) Close() error {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.drop()
	return nil
}

// The defaults of a Redis store.
const (
	defaultTTL    = 7 * 24 * time.Hour
	defaultPrefix = "perfagent"
	redisPort     = "6379"
)

// userOf returns the user of u. If u has no password, it returns the user of credentials, if that is an address of the
// same server.
func userOf(u *url.URL, credentials string) *url.Userinfo {
	if _, has := u.User.Password(); has {
		return u.User
	}
	other, err := url.Parse(credentials)
	if err != nil || other.Scheme != u.Scheme || other.Hostname() != u.Hostname() ||
		cmp.Or(other.Port(), redisPort) != cmp.Or(u.Port(), redisPort) {
		return u.User
	}
	if _, has := other.User.Password(); has {
		return other.User
	}
	return u.User
}

// newRedis returns the connector of a redis:, rediss: or proxystore+redis: URL. known are the allowed options.
func newRedis(u *url.URL, credentials string, known ...string) (*redis, error) {
	options, err := optionsOf(u, known...)
	if err != nil {
		return nil, err
	}
	host, port := u.Hostname(), cmp.Or(u.Port(), redisPort)
	if host == "" {
		return nil, fmt.Errorf("open store: the address of a Redis server is %s://HOST[:PORT]", u.Scheme)
	}

	r := &redis{url: *u, ttl: defaultTTL, proxyStore: u.Scheme == "proxystore+redis"}
	r.url.User = nil
	r.server = &redisClient{address: net.JoinHostPort(host, port), dial: new(net.Dialer).DialContext}
	if u.Scheme == "rediss" {
		r.server.dial = (&tls.Dialer{Config: &tls.Config{ServerName: host}}).DialContext
	}
	if user := userOf(u, credentials); user != nil {
		r.server.user = user.Username()
		r.server.password, _ = user.Password()
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		if r.server.database, err = strconv.Atoi(path); err != nil || r.server.database < 0 {
			return nil, errors.New("open store: the server's name must be followed by the number of a database")
		}
	}
	prefix := defaultPrefix
	if options.Has("prefix") {
		if prefix = options.Get("prefix"); prefix == "" || len(prefix) > 200 {
			return nil, errors.New("open store: the prefix is empty or longer than 200 bytes")
		}
	}
	r.layout = layout{prefix: prefix + ":", separator: ":", bare: true}
	if options.Has("ttl") {
		if r.ttl, err = time.ParseDuration(options.Get("ttl")); err != nil || r.ttl < 0 || r.ttl > 0 && r.ttl < time.Second {
			return nil, errors.New("open store: ttl must be a time such as 168h, at least 1s, or 0 for no expiry")
		}
	}
	return r, nil
}

// Limits of a response: bytes of a line, items of a list, and depth of nested lists.
const (
	maxLine  = 64 << 10
	maxItems = 1 << 20
	maxDepth = 4

	valueSize = 16 // assumed memory of a value in a list, in bytes
)

// A redisError is an error response of a Redis server: "NOAUTH Authentication required."
type redisError string

// maxMessage limits how many bytes of a server's error message are shown.
const maxMessage = 200

// Error implements error.
func (e redisError) Error() string {
	if e.code() == "MOVED" || e.code() == "ASK" {
		return "a Redis cluster is not supported: name the node that has the key"
	}
	return "the server responds: " + text.Printable(text.Clip(string(e), maxMessage))
}

// code returns the first word, which is in capitals, or ERR if there is none.
func (e redisError) code() string {
	code, _, _ := strings.Cut(string(e), " ")
	if code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "ERR"
	}
	return code
}

// redact returns e, without its message if that repeats one of secrets.
func (e redisError) redact(secrets ...string) redisError {
	for _, secret := range secrets {
		if secret != "" && strings.Contains(string(e), secret) {
			return redisError(e.code() + ", in a message that repeats the user or the password")
		}
	}
	return e
}

// isTemporary reports whether the server may respond differently later.
func (e redisError) isTemporary() bool {
	passing := []string{"LOADING", "BUSY", "OOM", "READONLY", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MISCONF"}
	return slices.Contains(passing, e.code())
}

// errProtocol is the error for a response that is not in the Redis serialization protocol.
var errProtocol = errors.New("the response is not from a Redis server")

// appendCommand appends the command in words to out, in RESP2
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).
func appendCommand(out []byte, words ...string) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n", len(w))
		out = append(append(out, w...), "\r\n"...)
	}
	return out
}

// A responseReader reads the response to a command.
type responseReader struct {
	in   *bufio.Reader
	left int64 // bytes of memory that the response may still use, with all nested lists
}

// readResponse reads a response: a string, an int64, a list of responses, nil, or a redisError. After an error, the
// connection cannot be used again.
func readResponse(in *bufio.Reader) (any, error) {
	a := responseReader{in: in, left: MaxSize + maxLine}
	return a.read(0)
}

func (a *responseReader) read(depth int) (any, error) {
	line, err := readLine(a.in)
	if err != nil {
		return nil, err
	}
	if a.left -= valueSize + int64(len(line)); line == "" || depth > maxDepth || a.left < 0 {
		return nil, errProtocol
	}

	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return redisError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
	case kind == ':':
		return n, nil
	case (kind == '$' || kind == '*') && n == -1:
		return nil, nil
	case kind == '$' && n >= 0:
		return a.readBulk(n)
	case kind == '*' && n >= 0 && n <= maxItems:
		return a.readList(n, depth)
	}
	return nil, errProtocol
}

// readLine reads a line up to its \r\n. The line must fit into the buffer.
func readLine(in *bufio.Reader) (string, error) {
	data, err := in.ReadSlice('\n')
	line, ok := strings.CutSuffix(string(data), "\r\n")
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && !ok:
		return "", errProtocol
	case err != nil:
		return "", unexpected(err)
	}
	return line, nil
}

// readBulk reads a string of n bytes. It allocates memory as the bytes arrive, because the length may be false.
func (a *responseReader) readBulk(n int64) (any, error) {
	if n > min(MaxSize, a.left) {
		return nil, fmt.Errorf("it is too large: %d bytes", n)
	}
	a.left -= n

	const end = "\r\n"
	var data strings.Builder
	if _, err := io.CopyN(&data, a.in, n+int64(len(end))); err != nil {
		return nil, unexpected(err)
	}
	value, ok := strings.CutSuffix(data.String(), end)
	if !ok {
		return nil, errProtocol
	}
	return value, nil
}

// readList reads a list of n responses.
func (a *responseReader) readList(n int64, depth int) (any, error) {
	list := []any{}
	for range n {
		one, err := a.read(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// unexpected turns io.EOF into io.ErrUnexpectedEOF, for an EOF where a response was expected.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
