package store_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/store"
)

func TestRedis_BehavesLikeDirectory(t *testing.T) {
	address := storetest.Redis(t)
	for _, scheme := range []string{"redis://", "proxystore+redis://"} {
		t.Run(scheme, func(t *testing.T) { wantAlike(t, scheme+address) })
	}
}

// The server holds the documented keys with their lifetimes, values in gzip with the time of the put, and the key that
// Python uses in a ProxyStore.
func TestRedis_StoresDocumentedKeysAndLifetimes(t *testing.T) {
	address := storetest.Redis(t)
	begun := time.Now().Truncate(time.Second)
	put(t, open(t, "redis://"+address+"/2?prefix=a*b&ttl=1h"), "job/node-0", "text")
	put(t, open(t, "redis://"+address+"/2?prefix=axb&ttl=0"), "job/node-1", "text")
	put(t, open(t, "proxystore+redis://"+address), "job/node-0", "text")

	raw := rawRedis(t, address)
	if got := raw("GET perfagent:job:node-0"); got != "US\ntext" {
		t.Errorf("the value of a ProxyStore's key is %q, want the tag US and text", got)
	}
	raw("SELECT 2")
	stored := raw("GET a*b:job:node-0")
	r, err := gzip.NewReader(strings.NewReader(stored))
	if err != nil {
		t.Fatalf("the value is not gzip: %v: %q", err, stored)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "text" || r.ModTime.Before(begun) {
		t.Errorf("the value is %q with the time %v, error %v; want text, not before %v", data, r.ModTime, err, begun)
	}
	if ttl := raw("TTL a*b:job:node-0"); ttl != "3600" && ttl != "3599" {
		t.Errorf("TTL with ttl=1h is %s, want 3600 or 3599", ttl)
	}
	if ttl := raw("TTL axb:job:node-1"); ttl != "-1" {
		t.Errorf("TTL with ttl=0 is %s, want -1", ttl)
	}
	if list, err := open(t, "redis://"+address+"/2?prefix=a*b").List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("List with the prefix a*b = %v, %v, want one object: the star is not a pattern", list, err)
	}
}

// A value that is empty or not a string takes its name and is listed, and Get returns the reason why it is unreadable.
// A deleted key is not listed.
func TestRedis_ListsUnreadableValues(t *testing.T) {
	address := storetest.Redis(t)
	raw := rawRedis(t, address)
	raw(`SET perfagent:job:node-0 ""`)
	raw("LPUSH perfagent:job:node-1 x")
	raw("SET perfagent:job:node-2 x PX 1")
	for raw("EXISTS perfagent:job:node-2") != "0" {
	}

	s := open(t, "redis://"+address)
	list, err := s.List(t.Context(), "job/")
	if err != nil || len(list) != 2 || list[0].Name != "job/node-0" || list[1].Name != "job/node-1" {
		t.Errorf("List = %v, %v, want job/node-0 and job/node-1", list, err)
	}
	for name, words := range map[string]string{"job/node-0": "it is empty", "job/node-1": "WRONGTYPE"} {
		if _, err := s.Get(t.Context(), name); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("Get(%s): %v, want %q", name, err, words)
		}
		if err := s.Put(t.Context(), name, []byte("x")); !errors.Is(err, store.ErrExists) {
			t.Errorf("Put(%s): %v, want ErrExists", name, err)
		}
	}
}

// rawRedis returns a function that sends a command to the server and returns the response, in the form that redis-cli
// prints.
func rawRedis(t *testing.T, address string) func(command string) string {
	t.Helper()
	conn := check.Value(net.Dial("tcp", address))(t)
	t.Cleanup(func() { conn.Close() })
	in := bufio.NewReader(conn)
	return func(command string) string {
		t.Helper()
		fmt.Fprintf(conn, "%s\r\n", command)
		line := strings.TrimRight(check.Value(in.ReadString('\n'))(t), "\r\n")
		var n int
		if _, err := fmt.Sscanf(line, "$%d", &n); err != nil || n < 0 {
			return strings.TrimLeft(line, ":+")
		}
		data := make([]byte, n+2)
		check.Must(t, second(io.ReadFull(in, data)))
		return string(data[:n])
	}
}

// All objects are listed exactly once, in far fewer SCANs than there are keys.
func TestRedis_ListsManyKeysPerRoundTrip(t *testing.T) {
	address := storetest.Redis(t)
	raw := rawRedis(t, address)
	const n = 10000
	raw(fmt.Sprintf(`EVAL "for i=1,%d do redis.call('SET','perfagent:run-'..i..':node-0','x') end return 1" 0`, n))
	raw("SET perfagent:other 1")
	raw("SET perfagent:a:node-0:b 1")
	raw("CONFIG RESETSTAT")

	list, err := open(t, "redis://"+address).List(t.Context(), "")
	if err != nil || len(list) != n {
		t.Fatalf("List: error %v, %d objects, want %d", err, len(list), n)
	}
	var scans int
	_, rest, _ := strings.Cut(raw("INFO commandstats"), "cmdstat_scan:calls=")
	if fmt.Sscan(rest, &scans); scans == 0 || 2*scans > n/1000 {
		t.Errorf("%d SCANs for %d objects, want 1 to %d", scans, n, n/2000)
	}
}

// A password is used but never shown. A password from Credentials is used only for the same server.
func TestRedis_UsesButNeverShowsPasswords(t *testing.T) {
	const secret = "s3cr%t/w"
	address := storetest.Redis(t, "--requirepass", secret)
	with := "redis://:" + url.QueryEscape(secret) + "@" + address
	put(t, open(t, with), "job/node-0", "text")
	if got := open(t, with).URL(); got != "redis://"+address {
		t.Errorf("URL() = %s, want redis://%s without the password", got, address)
	}

	for credentials, ok := range map[string]bool{
		with: true, "": false, "redis://:wrong@" + address: false, strings.Replace(with, "redis:", "rediss:", 1): false,
		strings.Replace(with, address, "127.0.0.2", 1): false, "%": false,
	} {
		s := check.Value(store.Open("redis://"+address, store.Options{Credentials: credentials}))(t)
		_, err := s.Get(t.Context(), "job/node-0")
		if (err == nil) != ok || err != nil && (strings.Contains(err.Error(), "s3cr") || strings.Contains(err.Error(), "wrong@")) {
			t.Errorf("Get with the Credentials %q: %v, want success %v and no password in the error", credentials, err, ok)
		}
		if err != nil && store.Temporary(err) {
			t.Errorf("Temporary(%v) = true, want false", err)
		}
		s.Close()
	}
}

// A server without AUTH repeats the command's argument, and a server that refuses a command may name the user. Errors
// contain neither of them, only the server's code.
func TestRedis_ErrorsHideRepeatedSecrets(t *testing.T) {
	const user, secret = "hugo", "s3cr3t"
	long := strings.Repeat("0123456789", 30) // more than a server repeats
	real := storetest.Redis(t, "--rename-command", "AUTH", "")
	for name, c := range map[string]struct{ address, words string }{
		"server without AUTH": {user + ":" + secret + "@" + real, "ERR to the user and password"},
		"long password":       {user + ":" + long + "@" + real, "ERR to the user and password"},
		"no user name":        {":" + secret + "@" + real, "ERR to the user and password"},
		"error without code":  {user + ":" + secret + "@" + fakeRedis(t, "-"+secret+"\r\n", true), "ERR to the user and password"},
		"not permitted":       {user + ":" + secret + "@" + fakeRedis(t, "+OK\r\n-NOPERM User hugo has no permissions to run it\r\n", true), "NOPERM"},
		"error after login":   {user + ":" + secret + "@" + fakeRedis(t, "+OK\r\n-"+secret+" is odd\r\n", true), "ERR"},
	} {
		t.Run(name, func(t *testing.T) {
			anew := func() *store.Store { return open(t, "redis://"+c.address) } // the fake responds once
			for op, err := range map[string]error{
				"put": anew().Put(t.Context(), "job/node-0", nil), "list": second(anew().List(t.Context(), "")),
				"get": second(anew().Get(t.Context(), "job/node-0")), "evict": anew().Evict(t.Context(), "job/node-0"),
			} {
				if err == nil || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%s: error %v, want one containing %q", op, err, c.words)
					continue
				}
				for _, hidden := range []string{user, secret, long[:20]} {
					if strings.Contains(err.Error(), hidden) {
						t.Errorf("%s: error %v contains the secret %q", op, err, hidden)
					}
				}
			}
		})
	}
}

// Messages of a server are shown on terminals and in reports, so they are shortened and made printable.
func TestRedis_ErrorsAreShortAndPrintable(t *testing.T) {
	address := fakeRedis(t, "-ERR \x1b[2J\u202e\xff"+strings.Repeat("x", 60000)+"\r\n", true)
	_, err := open(t, "redis://"+address).Get(t.Context(), "job/node-0")
	if err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\x1b\u202e") || !utf8.ValidString(err.Error()) {
		t.Errorf("the error is %.600q, want at most 500 bytes of printable UTF-8", err)
	}
}

// TLS uses the certificates in SSL_CERT_FILE. A process reads them only once, so the test starts another process.
func TestRedis_TLSUsesCertificatesOfSSLCertFile(t *testing.T) {
	if port := os.Getenv("STORE_TEST_TLS"); port != "" {
		testTLS(t, port)
		return
	}
	dir := t.TempDir()
	key := check.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate := check.Value(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	private := check.Value(x509.MarshalPKCS8PrivateKey(key))(t)
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	_, port, _ := net.SplitHostPort(storetest.FreeAddress(t))
	storetest.Redis(t, "--tls-port", port, "--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile,
		"--tls-auth-clients", "no")

	cmd := exec.Command(os.Args[0], "-test.run=^TestRedis_TLSUsesCertificatesOfSSLCertFile$", "-test.v")
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+certFile, "STORE_TEST_TLS="+port)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestRedis_TLSUsesCertificatesOfSSLCertFile") {
		t.Errorf("the test with SSL_CERT_FILE failed: %v\n%s", err, out)
	}
}

// testTLS uses a server with a certificate for 127.0.0.1.
func testTLS(t *testing.T, port string) {
	s := open(t, "rediss://127.0.0.1:"+port)
	put(t, s, "job/node-0", "text")
	want(t, s, "job/node-0", "text")
	if _, err := open(t, "rediss://localhost:"+port).Get(t.Context(), "job/node-0"); err == nil || store.Temporary(err) {
		t.Errorf("Get with a certificate for another name: %v, want a permanent error", err)
	}
}

// The store reconnects after the server has closed the connection.
func TestRedis_ReconnectsAfterClosedConnection(t *testing.T) {
	address := storetest.Redis(t)
	s := open(t, "redis://"+address)
	put(t, s, "job/node-0", "text")
	rawRedis(t, address)("CLIENT KILL TYPE normal SKIPME yes")
	put(t, s, "job/node-1", "text")
}

// fakeRedis starts a server that sends answer as the response to each request, and then closes the connection unless
// hang is set.
func fakeRedis(t *testing.T, answer string, hang bool) string {
	t.Helper()
	l := check.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for asked := make([]byte, 1<<16); ; {
					if _, err := conn.Read(asked); err != nil {
						return
					}
					io.WriteString(conn, answer)
					if !hang {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// Faults of a server are reported within the time limit, and classified as temporary or permanent.
func TestRedis_ClassifiesFaults(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		hang   bool
		words  string
		passes bool
	}{
		"no response":       {"", true, "deadline exceeded", true},
		"truncated":         {"$10\r\nabc", false, "unexpected EOF", true},
		"connection closed": {"", false, "unexpected EOF", true},
		"loading":           {"-LOADING Redis is loading the dataset in memory\r\n", true, "LOADING", true},
		"out of memory":     {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", true, "OOM", true},
		"read only":         {"-READONLY You can't write against a read only replica.\r\n", true, "READONLY", true},
		"cluster":           {"-MOVED 3999 127.0.0.1:6381\r\n", true, "a Redis cluster is not supported: name the node", false},
		"wrong password":    {"-WRONGPASS invalid username-password pair\r\n", true, "WRONGPASS", false},
		"huge response":     {"$99999999999\r\n", true, "too large", false},
		"not Redis":         {"HTTP/1.1 400 Bad Request\r\n\r\n", true, "not from a Redis server", false},
		"number":            {":1\r\n", true, "not from a Redis server", false},
		"negative length":   {"$-7\r\n", true, "not from a Redis server", false},
		"deeply nested":     {strings.Repeat("*1\r\n", 100), true, "not from a Redis server", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if c.answer == "" && c.hang {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			_, err := open(t, "redis://"+fakeRedis(t, c.answer, c.hang)).Get(ctx, "job/node-0")
			if err == nil || !strings.Contains(err.Error(), c.words) || store.Temporary(err) != c.passes {
				t.Errorf("Get: error %v, temporary %v; want one containing %q, temporary %v", err, store.Temporary(err), c.words, c.passes)
			}
		})
	}

	if _, err := open(t, "redis://"+storetest.FreeAddress(t)).Get(t.Context(), "job/node-0"); !store.Temporary(err) {
		t.Errorf("Get where nothing listens: %v, want a temporary error", err)
	}
	if _, err := open(t, "redis://host.invalid").Get(t.Context(), "job/node-0"); err == nil {
		t.Error("Get from a host that does not exist succeeded, want an error")
	}
}

// A put is retried until the time limit.
func TestRedis_RetriesUntilTheDeadline(t *testing.T) {
	testenv.SkipIfShort(t, "a second between two attempts")
	address := storetest.FreeAddress(t)
	s := open(t, "redis://"+address)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	put := make(chan error, 1)
	go func() { put <- s.Put(ctx, "job/node-0", []byte("text")) }()
	for len(put) == 0 && s.Metrics().Counters["store.put.retries"] == 0 {
		time.Sleep(time.Millisecond) // until the first attempt has failed
	}
	l := check.Value(net.Listen("tcp", address))(t)
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conn.Read(make([]byte, 1<<16))
			io.WriteString(conn, "+OK\r\n")
		}
	}()
	if err := <-put; err != nil {
		t.Errorf("Put after a retry: %v", err)
	}
}

// A small object that expands to more than any report is refused.
func TestRedis_RefusesZipBombs(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU")
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for zeros, i := make([]byte, 1<<20), 0; i <= store.MaxSize>>20; i++ {
		w.Write(zeros)
	}
	w.Close()
	address := fakeRedis(t, fmt.Sprintf("$%d\r\n%s\r\n", bomb.Len(), bomb.Bytes()), true)
	if _, err := open(t, "redis://"+address).Get(t.Context(), "job/node-0"); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Get of an object that expands to more than MaxSize: %v, want \"too large\"", err)
	}
}

// Python's RedisConnector reads our objects, and we read the objects that it stored.
func TestRedis_SharesObjectsWithPython(t *testing.T) {
	address := storetest.Redis(t)
	_, port, _ := net.SplitHostPort(address)
	for i, c := range []struct{ environment, options, tag string }{{"OPS", "", "US"}, {"OPS_06", "?serializer=02", "02"}} {
		t.Run(c.environment, func(t *testing.T) {
			s := open(t, "proxystore+redis://"+address+c.options)
			put(t, s, fmt.Sprintf("job-7/node-%d", i), `{"a": "é"}`)
			key := fmt.Sprintf("perfagent:job-7:node-%d", i)
			if stored := rawRedis(t, address)("GET " + key); stored != c.tag+"\n"+`{"a": "é"}` {
				t.Errorf("the value is %q, want the text with the tag %s", stored, c.tag)
			}
			var got []any
			python(t, c.environment, &got, "connectors.py", port, "get", key, "perfagent:job-7:node-9")
			same(t, "objects that Python reads", got, []any{`{"a": "é"}`, nil})

			var keys []string
			python(t, c.environment, &keys, "connectors.py", port, "put")
			wantOfPython(t, s, keys)
		})
	}
}

// The size of a response is limited, however its lists are nested.
func TestRedis_LimitsResponseSize(t *testing.T) {
	const most = 1 << 16
	for name, value := range map[string]string{
		"strings": "$1000\r\n" + strings.Repeat("x", 1000) + "\r\n", "lines": "+" + strings.Repeat("x", 1000) + "\r\n",
		"lists": "*1000\r\n" + strings.Repeat(":1\r\n", 1000),
	} {
		all := "*1000\r\n" + strings.Repeat(value, 100)
		in := bufio.NewReader(strings.NewReader(all))
		if answer, err := store.ReadAnswer(in, most); answer != nil || err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: read a %T, error %v, want nil and an error other than ErrUnexpectedEOF", name, answer, err)
		}
	}
}

// Any response is either read or refused, without a panic.
func FuzzRedis(f *testing.F) {
	for _, s := range []string{
		"$4\r\ntext\r\n", "$-1\r\n", "-ERR x\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$5\r\nab:cd\r\n", ":1\r\n", "+OK\r\n", "*-1\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		store.ReadAnswer(bufio.NewReader(bytes.NewReader(answer)), store.MaxSize)
	})
}
