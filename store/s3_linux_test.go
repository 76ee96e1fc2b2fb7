package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/store"
)

// setKeys sets the credentials for the servers of storetest, and unsets those of the machine.
func setKeys(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
	} {
		t.Setenv(name, "") // restores the variable after the test
		os.Unsetenv(name)
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_ACCESS_KEY_ID", storetest.S3KeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", storetest.S3Secret)
}

func TestS3_BehavesLikeDirectory(t *testing.T) {
	setKeys(t)
	server := storetest.S3(t)
	for _, folder := range []string{"", "a folder/of+signs%25"} {
		wantAlike(t, server.Address(folder))
	}
	wantOnePut(t, server.Address("x"))
	s := open(t, server.Address("y"))
	if put(t, s, "job/node-0", "text"); s.Unconditional() {
		t.Error("Unconditional() = true, want false: the server supports conditions")
	}
}

// One request lists a thousand objects. Objects with other names are left out.
func TestS3_ListsThousandObjectsPerRequest(t *testing.T) {
	setKeys(t)
	server := storetest.S3(t)
	s := open(t, server.Address("many"))
	const n = 2500
	var wg sync.WaitGroup
	for part := range 10 {
		wg.Go(func() {
			for i := part; i < n; i += 10 {
				if err := s.Put(t.Context(), fmt.Sprintf("run-%d/node-0", i), []byte("x")); err != nil {
					t.Errorf("Put(run-%d/node-0): %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	put(t, open(t, server.Address("many/more")), "job/node-0", "x")

	before := server.Requests(t, "ListObjectsV2")
	list, err := s.List(t.Context(), "")
	if err != nil || len(list) != n {
		t.Fatalf("List: error %v, %d objects, want %d", err, len(list), n)
	}
	if asked := server.Requests(t, "ListObjectsV2") - before; asked != 3 {
		t.Errorf("List of %d objects sent %d requests, want 3", n, asked)
	}
}

// A key that XML cannot represent does not make the others unreadable: the request asks for encoded keys, although a
// server may not support that.
func TestS3_ListToleratesKeysInvalidInXML(t *testing.T) {
	setKeys(t)
	for _, knows := range []bool{true, false} {
		address := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
			key := func(s string) string { return "<Contents><Key>" + s + "</Key></Contents>" }
			list := key("p q+%25/job/node-0.json")
			switch {
			case knows && r.FormValue("encoding-type") == "url":
				list = "<EncodingType>url</EncodingType>" + key("p+q%2B%2525%2Fjob%2Fnode-0.json") + key("p+q%2B%2525/job/%01%zz")
			case knows:
				list += key("p q+%25/job/&#x1;")
			}
			io.WriteString(w, "<ListBucketResult>"+list+"</ListBucketResult>")
		})
		list, err := open(t, strings.Replace(address, "?", "/p q+%2525?", 1)).List(t.Context(), "job/")
		if err != nil || len(list) != 1 || list[0].Name != "job/node-0" {
			t.Errorf("List with encoded keys supported %v: %v, %v, want job/node-0", knows, list, err)
		}
	}
}

// Amazon's Python library reads our objects, and we read the objects that it stored.
func TestS3_SharesObjectsWithBoto3(t *testing.T) {
	setKeys(t)
	python := filepath.Join(os.Getenv("PERFAGENT_TEST_OPS"), "bin", "python")
	if _, err := os.Stat(python); err != nil {
		testenv.SkipOrFail(t, "needs boto3: run make test, which installs it, or name a venv with boto3 in PERFAGENT_TEST_OPS")
	}
	server := storetest.S3(t)
	s := open(t, server.Address("p"))
	put(t, s, "job/node-0", "ours")
	out, err := exec.Command(python, "-c", `
import boto3, sys
s3 = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1")
got = s3.get_object(Bucket="runs", Key="p/job/node-0.json")
print(got["Body"].read().decode(), got["ContentType"])
s3.put_object(Bucket="runs", Key="p/job/node-1.json", Body=b"theirs")
`, server.Endpoint).CombinedOutput()
	if err != nil || string(out) != "ours application/json\n" {
		t.Errorf("Python printed %s (%v), want ours application/json", out, err)
	}
	want(t, s, "job/node-1", "theirs")
}

// Refusals by a real server are permanent errors without credentials.
func TestS3_RefusalsArePermanentAndHideKeys(t *testing.T) {
	server := storetest.S3(t)
	for words, wrong := range map[string]func(t *testing.T) string{
		"SignatureDoesNotMatch": func(t *testing.T) string {
			t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-s3cr3t")
			return server.Address("x")
		},
		"XAdminUserNotFound":   func(t *testing.T) string { t.Setenv("AWS_ACCESS_KEY_ID", "n0b0dy"); return server.Address("x") },
		"NoSuchBucket":         func(*testing.T) string { return "s3://elsewhere?endpoint=" + server.Endpoint },
		"no credentials found": func(t *testing.T) string { t.Setenv("AWS_ACCESS_KEY_ID", ""); return server.Address("x") },
		"AWS_PROFILE": func(t *testing.T) string {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_PROFILE", "p")
			return server.Address("x")
		},
		"AuthorizationHeader": func(*testing.T) string { return server.Address("x") + "&region=eu-nowhere-1" },
	} {
		t.Run(words, func(t *testing.T) {
			setKeys(t)
			s := open(t, wrong(t))
			for op, err := range map[string]error{
				"put": s.Put(t.Context(), "job/node-0", []byte("x")), "get": second(s.Get(t.Context(), "job/node-0")),
				"list": second(s.List(t.Context(), "")),
			} {
				if err == nil || !strings.Contains(err.Error(), words) || store.Temporary(err) {
					t.Errorf("%s: error %v, temporary %v; want a permanent one containing %q", op, err, store.Temporary(err), words)
					continue
				}
				for _, hidden := range []string{storetest.S3Secret, "wrong-s3cr3t", storetest.S3KeyID, "n0b0dy"} {
					if strings.Contains(err.Error(), hidden) {
						t.Errorf("%s: error %v contains the key %q", op, err, hidden)
					}
				}
			}
		})
	}
}

// fakeS3 starts a server for responses that a real server does not send on demand.
func fakeS3(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return "s3://runs?endpoint=" + server.URL
}

// Faults of a server are reported within the time limit, and classified as temporary or permanent.
func TestS3_ClassifiesFaults(t *testing.T) {
	testenv.SkipIfShort(t, "seconds between attempts")
	setKeys(t)
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); io.WriteString(w, body) }
	}
	header := func(name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(name, value) }
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		words  string
		passes bool
	}{
		"500":               {status(500, "<Error><Code>InternalError</Code><Message>We are sorry</Message></Error>"), "500 InternalError: We are sorry", true},
		"502":               {status(502, "<html>bad gateway"), "502 Bad Gateway", true},
		"access denied":     {status(403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"), "403 AccessDenied", false},
		"secret in message": {status(403, "<Error><Code>X</Code><Message>"+storetest.S3Secret+"</Message></Error>"), "403 Forbidden", false},
		"wrong clock":       {status(403, "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large</Message></Error>"), "RequestTimeTooSkewed", false},
		"wrong region": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-9")
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(301)
		}, "add region=eu-west-9", false},
		"long message": {status(400, "<Error><Code>"+strings.Repeat("\x1b[2Jx", 9000)+"</Code></Error>"), "400", false},
		"truncated body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "{")
		}, "unexpected EOF", true},
		"connection closed": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}, "EOF", true},
		"huge body":     {header("Content-Length", "999999999999"), "too large", false},
		"large headers": {header("X-A", strings.Repeat("a", 200000)), "headers exceeded", false},
		"no response":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded", true},
		"slow body": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			for r.Context().Err() == nil {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, "deadline exceeded", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, fakeS3(t, c.answer))
			var err error
			for limit := 300 * time.Millisecond; limit < time.Minute; limit *= 5 { // the first limits may be too short
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err = s.Get(ctx, "job/node-0")
				if cancel(); err == nil || strings.Contains(err.Error(), c.words) {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.words) || store.Temporary(err) != c.passes {
				t.Errorf("Get: error %v, temporary %v; want one containing %q, temporary %v", err, store.Temporary(err), c.words, c.passes)
			}
			if err != nil && (len(err.Error()) > 500 || strings.Contains(err.Error(), "\x1b") || strings.Contains(err.Error(), storetest.S3Secret)) {
				t.Errorf("the error is %q, want at most 500 bytes without control characters or the key", err)
			}
		})
	}
	if _, err := open(t, "s3://runs?endpoint=http://"+storetest.FreeAddress(t)).List(t.Context(), ""); !store.Temporary(err) {
		t.Errorf("List where nothing listens: %v, want a temporary error", err)
	}
	tls := httptest.NewTLSServer(status(200, ""))
	defer tls.Close()
	if _, err := open(t, "s3://runs?endpoint="+tls.URL).Get(t.Context(), "job/node-0"); err == nil || store.Temporary(err) {
		t.Errorf("Get with an unknown certificate: %v, want a permanent error", err)
	}
}

// On a server without support for conditions, an object is put without a condition, and Unconditional reports this.
func TestS3_PutsWithoutConditionIfUnsupported(t *testing.T) {
	setKeys(t)
	objects := make(map[string]string)
	address := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		_, there := objects[r.URL.Path]
		switch {
		case r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotImplemented)
		case r.Method == http.MethodPut:
			objects[r.URL.Path] = string(data)
		case !there:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	s := open(t, address)
	put(t, s, "job/node-0", "text")
	same(t, "objects, and Unconditional()", []any{objects, s.Unconditional()}, []any{map[string]string{"/runs/job/node-0.json": "text"}, true})
	if err := s.Put(t.Context(), "job/node-0", nil); !errors.Is(err, store.ErrExists) {
		t.Errorf("Put under a taken name: %v, want ErrExists", err)
	}
}

// A request to a busy server is repeated, but not before the time that the server asks for.
func TestS3_HonorsRetryAfter(t *testing.T) {
	testenv.SkipIfShort(t, "the second that the server asks for")
	setKeys(t)
	var asked atomic.Int32
	s := open(t, fakeS3(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			return
		}
		io.WriteString(w, "text")
	}))
	begun := time.Now()
	want(t, s, "job/node-0", "text")
	if took := time.Since(begun); took < time.Second {
		t.Errorf("retried after %v, want at least 1s", took)
	}
	if n := s.Metrics().Counters["store.get.retries"]; n != 1 {
		t.Errorf("%v retries, want 1", n)
	}
}

// Requests go to the hosts documented for each form of address.
func TestS3_SendsRequestsToDocumentedHosts(t *testing.T) {
	setKeys(t)
	for address, words := range map[string]string{
		"s3://": "s3://BUCKET", "s3://b:80": "s3://BUCKET", "s3://u:s3cr3t@b": "AWS_ACCESS_KEY_ID", "s3://b+c": "s3://BUCKET",
		"s3://b?endpoint=http://u:s3cr3t@h": "without a user", "s3://b?endpoint=h": "endpoint must be", "s3://b?endpoint=": "must not be empty",
		"s3://b?endpoint=http://h/path": "endpoint must be", "s3://b?style=x": "style must be", "s3://b?acl=x": "unknown option",
		"s3://b/../c": "must not have parts", "s3://b/a//b": "must not have parts",
	} {
		if _, err := store.Open(address, store.Options{}); err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("Open(%s): error %v, want one containing %q and no secret", address, err, words)
		}
	}

	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.URL.EscapedPath())
		w.WriteHeader(http.StatusNotFound)
	}))
	defer proxy.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(proxy.URL, "http://"))
	for _, options := range []string{"", "&style=path"} {
		_, _ = open(t, "s3://bucket/p q?endpoint=http://localhost:"+port+options).Get(t.Context(), "job/node-0")
	}
	_, err := open(t, "s3://bucket?style=host&endpoint=http://host.invalid").Get(t.Context(), "job/node-0")
	if err == nil || !strings.Contains(err.Error(), "bucket.host.invalid") {
		t.Errorf("Get with style=host: %v, want the host bucket.host.invalid in the error", err)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	t.Setenv("AWS_ENDPOINT_URL_S3", proxy.URL)
	_, _ = open(t, "s3://bucket").Get(t.Context(), "job/node-0")
	local := "localhost:" + port + "/bucket/p%20q/job/node-0.json"
	same(t, "requested URLs", asked, []string{local, local, "127.0.0.1:" + port + "/bucket/job/node-0.json"})
}

// Credentials are looked up in the same places and order as by Amazon's tools.
func TestS3_FindsCredentialsLikeAWSTools(t *testing.T) {
	asked := make(chan string, 10)
	s3 := fakeS3(t, func(w http.ResponseWriter, r *http.Request) {
		id, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
		asked <- id + " " + r.Header.Get("X-Amz-Security-Token")
		io.WriteString(w, "x")
	})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const keys = `{"AccessKeyId":"%s","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"}`
		switch {
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
			io.WriteString(w, "imds")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/" && r.Header.Get("X-aws-ec2-metadata-token") == "imds":
			io.WriteString(w, "role")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/role" && r.Header.Get("X-aws-ec2-metadata-token") == "imds":
			fmt.Fprintf(w, keys, "of-instance")
		case r.URL.Path == "/container" && r.Header.Get("Authorization") == "secret token":
			fmt.Fprintf(w, keys, "of-container")
		case r.FormValue("Action") == "AssumeRoleWithWebIdentity" && r.FormValue("WebIdentityToken") == "jwt" && r.FormValue("RoleArn") == "arn":
			io.WriteString(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>of-pod</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer service.Close()
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		writeFile(t, path, text)
		return path
	}
	credentials := file("credentials", "[default]\naws_access_key_id=of-file\naws_secret_access_key = s\n"+
		"# aws_session_token=no\n[other]\naws_access_key_id = of-profile\naws_secret_access_key = s\naws_session_token = t\n")

	for _, c := range []struct {
		want string
		env  map[string]string
	}{
		{"of-env t", map[string]string{"AWS_ACCESS_KEY_ID": "of-env", "AWS_SESSION_TOKEN": "t", "AWS_SHARED_CREDENTIALS_FILE": credentials}},
		{"of-file ", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SHARED_CREDENTIALS_FILE": credentials}},
		{"of-profile t", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_PROFILE": "other"}},
		{"of-pod t", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_WEB_IDENTITY_TOKEN_FILE": file("jwt", "jwt\n"),
			"AWS_ROLE_ARN": "arn", "AWS_ENDPOINT_URL_STS": service.URL}},
		{"of-container t", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": service.URL + "/container",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file("token", "secret token")}},
		{"of-instance t", map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_EC2_METADATA_DISABLED": "",
			"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.URL}},
	} {
		t.Run(c.want, func(t *testing.T) {
			setKeys(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s := open(t, s3)
			for range 2 { // the credentials are requested only once
				check.Must(t, second(s.Get(t.Context(), "job/node-0")))
			}
			if got := <-asked; got != c.want {
				t.Errorf("the request is signed with the keys %q, want %q", got, c.want)
			}
		})
		for len(asked) > 0 {
			<-asked
		}
	}

	setKeys(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://203.0.113.1/keys")
	if _, err := open(t, s3).Get(t.Context(), "job/node-0"); err == nil || !strings.Contains(err.Error(), "neither https nor on this machine") {
		t.Errorf("Get with keys from http on another host: %v, want \"neither https nor on this machine\"", err)
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", service.URL+"/hangs")
	if _, err := open(t, s3).Get(t.Context(), "job/node-0"); err == nil || !strings.Contains(err.Error(), "get the credentials of this machine") {
		t.Errorf("Get if the credentials service refuses: %v, want \"get the credentials of this machine\"", err)
	}
}

// Any list of objects is either read or refused.
func FuzzListing(f *testing.F) {
	for _, s := range []string{
		"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken><Contents><Key>a</Key>" +
			"<Size>1</Size><LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents></ListBucketResult>",
		"", "<", "<a><Contents><Size>x</Size></Contents></a>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := store.ParseListing(data)
		if (page == nil) != (err != nil) {
			t.Errorf("ParseListing = %v, %v, want either a page or an error", page, err)
		}
	})
}

// Any credentials file is either read or contains no credentials.
func FuzzProfile(f *testing.F) {
	f.Add([]byte("[default]\naws_access_key_id = a\naws_secret_access_key=b=\n[other]\n"), "default")
	f.Add([]byte("aws_access_key_id = a"), "")
	f.Fuzz(func(t *testing.T, data []byte, profile string) {
		id, secret, token, found := store.ParseProfile(data, profile)
		if !found && id+secret+token != "" {
			t.Errorf("ParseProfile returned %q, %q, %q without finding the profile, want none", id, secret, token)
		}
	})
}
