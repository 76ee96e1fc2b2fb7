package mlflowtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxBody is the maximum size, in bytes, of a request body that the Fake reads.
const maxBody = 64 << 20

// A Fake is an in-memory MLflow server that is as strict as all real servers together: it refuses a value if any real
// server refuses or silently changes it. The zero values of the fields are a server's defaults. Set the fields before
// the first request.
type Fake struct {
	// FileStore keeps every point, even a repeated one, in the order of arrival, as servers with file stores do.
	FileStore bool
	// Version is the response to /version. "" means a 3.x version.
	Version string

	mu          sync.Mutex
	before      Hook
	requests    []Request
	experiments []*experiment
	runs        []*run
	files       map[string][]byte // artifacts by path
}

// A Request is a request that the Fake received.
type Request struct {
	Method string
	Path   string // including the query
	Header http.Header
	Body   []byte
	Time   time.Time
}

// A Hook may respond to a request in place of the Fake. It reports whether it did.
type Hook func(w http.ResponseWriter, r *http.Request) (handled bool)

// NewFake returns a Fake with only the experiment Default.
func NewFake() *Fake {
	return &Fake{
		experiments: []*experiment{{id: "0", name: "Default", created: now()}},
		files:       map[string][]byte{},
	}
}

// SetBefore sets the hook that is called before each request is handled. It may be nil.
func (f *Fake) SetBefore(h Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = h
}

// Requests returns all requests so far, with or without a response, in the order of arrival.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// ServeHTTP records the request, calls the hook, and responds.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	f.mu.Lock()
	f.requests = append(f.requests, Request{
		Method: r.Method,
		Path:   r.URL.RequestURI(),
		Header: r.Header.Clone(),
		Body:   body,
		Time:   time.Now(),
	})
	before := f.before
	f.mu.Unlock()
	if err != nil {
		return // the client has disconnected
	}

	r.Body = io.NopCloser(bytes.NewReader(body))
	if before != nil && before(w, r) {
		return
	}
	f.answer(w, r, body)
}

// Applied returns a hook that executes the request and then calls then to respond with a fault, so that the client
// cannot know that the request was executed.
func (f *Fake) Applied(then Hook) Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body) // the body is in memory
		f.answer(&discard{header: http.Header{}}, r, body)
		return then(w, r)
	}
}

// discard is a ResponseWriter that sends nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// answer calls the handler for r and writes the response.
func (f *Fake) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	path := r.URL.Path
	rest, ajax := strings.CutPrefix(path, "/ajax-api/2.0/")
	if !ajax {
		rest, _ = strings.CutPrefix(path, "/api/2.0/")
	}

	switch {
	case path == "/health":
		fmt.Fprint(w, "OK")
	case path == "/version":
		fmt.Fprint(w, cmp.Or(f.Version, "3.17.2"))
	case rest == path:
		notFound(w)
	case rest == "mlflow/upload-artifact" && ajax:
		f.uploadArtifact(w, r, body)
	case rest == "mlflow-artifacts/artifacts" || strings.HasPrefix(rest, "mlflow-artifacts/artifacts/"):
		name := strings.TrimPrefix(strings.TrimPrefix(rest, "mlflow-artifacts/artifacts"), "/")
		f.proxied(w, r, name, body)
	default:
		f.call(w, r, strings.TrimPrefix(rest, "mlflow/"), body)
	}
}

// call handles the documented call with the given name.
func (f *Fake) call(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	c, ok := calls[name]
	if !ok {
		notFound(w)
		return
	}
	if !slices.Contains(c.methods, r.Method) {
		html(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	if r.Method == http.MethodGet {
		body = queryBody(r)
	} else if err := wantJSON(r); err != nil {
		err.write(w)
		return
	}

	f.mu.Lock()
	answer, err := c.handle(f, body)
	f.mu.Unlock()
	if err != nil {
		err.write(w)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// queryBody returns the query of r as a JSON body, so that the same code decodes GET and POST requests.
func queryBody(r *http.Request) []byte {
	fields := map[string]string{}
	for k, v := range r.URL.Query() {
		fields[k] = v[0]
	}
	body, _ := json.Marshal(fields) // strings cannot fail
	return body
}

// wantJSON refuses a request if its content type is not JSON.
func wantJSON(r *http.Request) *apiError {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return invalid("Bad Request. Content-Type must be one of ['application/json'].")
	}
	return nil
}

// A call is a call of MLflow's documented REST interface.
type call struct {
	methods []string
	handle  func(f *Fake, body []byte) (any, *apiError)
}

// get returns a GET call with handler h, which gets the decoded arguments.
func get[T any](h func(*Fake, *T) (any, *apiError)) call {
	return call{methods: []string{http.MethodGet}, handle: decoded(h)}
}

// post returns a POST call with handler h, which gets the decoded arguments.
func post[T any](h func(*Fake, *T) (any, *apiError)) call {
	return call{methods: []string{http.MethodPost}, handle: decoded(h)}
}

// decoded returns a handler that decodes and checks the arguments before it calls h.
func decoded[T any](h func(*Fake, *T) (any, *apiError)) func(*Fake, []byte) (any, *apiError) {
	return func(f *Fake, body []byte) (any, *apiError) {
		in := new(T)
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(in); err != nil {
			return nil, invalid("Bad request: %v", err)
		}
		if _, err := d.Token(); err != io.EOF {
			return nil, invalid("Bad request: more than one JSON value")
		}
		if err := required(in); err != nil {
			return nil, err
		}
		return h(f, in)
	}
}

// required returns an error if a field of in that has the tag "need" is empty.
func required(in any) *apiError {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Tag.Get("need") != "" && v.Field(i).IsZero() {
			return missing(field.Tag.Get("json"))
		}
	}
	return nil
}

func missing(name string) *apiError {
	return invalid("Missing value for required parameter '%s'."+
		" See the API docs for more information about request parameters.", name)
}

// calls holds the calls of the Fake, by the last part of the path.
var calls = map[string]call{
	"experiments/get-by-name": get((*Fake).experimentByName),
	"experiments/get":         get((*Fake).getExperiment),
	"experiments/create":      post((*Fake).createExperiment),
	"experiments/search":      post((*Fake).searchExperiments),
	"experiments/delete":      post((*Fake).deleteExperiment),
	"experiments/restore":     post((*Fake).restoreExperiment),
	"runs/create":             post((*Fake).createRun),
	"runs/get":                get((*Fake).getRun),
	"runs/update":             post((*Fake).updateRun),
	"runs/delete":             post((*Fake).deleteRun),
	"runs/search":             post((*Fake).searchRuns),
	"runs/log-batch":          post((*Fake).logBatch),
	"runs/set-tag":            post((*Fake).setTag),
	"metrics/get-history":     get((*Fake).history),
}

// An apiError is an error response.
type apiError struct {
	status        int
	code, message string
}

func invalid(format string, args ...any) *apiError {
	return &apiError{
		status:  http.StatusBadRequest,
		code:    "INVALID_PARAMETER_VALUE",
		message: fmt.Sprintf(format, args...),
	}
}

func absent(format string, args ...any) *apiError {
	return &apiError{
		status:  http.StatusNotFound,
		code:    "RESOURCE_DOES_NOT_EXIST",
		message: fmt.Sprintf(format, args...),
	}
}

func (e *apiError) write(w http.ResponseWriter) {
	writeJSON(w, e.status, map[string]string{"error_code": e.code, "message": e.message})
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // fails if the client has disconnected
}

func notFound(w http.ResponseWriter) { html(w, http.StatusNotFound, "Not Found") }

func html(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html>\n<html lang=en>\n<title>%d %s</title>\n<h1>%s</h1>\n", status, title, title)
}

// An integer is a whole number, in JSON a number or a string.
type integer int64

// UnmarshalJSON refuses values that a real server would round or store as 0.
func (n *integer) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseInt(string(bytes.Trim(data, `"`)), 10, 64)
	*n = integer(v)
	return err
}

func now() int64 { return time.Now().UnixMilli() }
