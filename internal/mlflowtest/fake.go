package mlflowtest

import (
	"bytes"
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

// mostBody is how much of a request's body the Fake reads.
const mostBody = 64 << 20

// Fake is an MLflow server in memory, as strict as the real ones together: what one
// of them refuses, or stores wrongly without a word, it refuses. The zero values of
// its options are those of a server with its defaults; set them before it is used.
type Fake struct {
	// Int64Strings makes 64-bit numbers in answers strings, as servers do that are
	// not written in Python.
	Int64Strings bool
	// ArtifactRoot is where the artifacts of new runs are said to be; "" = with the
	// server itself.
	ArtifactRoot string
	// NoServeArtifacts refuses what goes to the server's own artifacts.
	NoServeArtifacts bool
	// FileStore keeps every point, also one it has, in the order in which they came,
	// as a server does that keeps runs in files.
	FileStore bool
	// Version is what /version says; "" = a 3.x.
	Version string

	mu          sync.Mutex
	before      Hook
	requests    []Request
	experiments []*experiment
	runs        []*run
	files       map[string][]byte // artifacts by path
}

// Request is one that the Fake got.
type Request struct {
	Method string
	Path   string // with the query
	Header http.Header
	Body   []byte
	Time   time.Time
}

// Hook may answer a request in the place of the Fake. It says whether it did.
type Hook func(w http.ResponseWriter, r *http.Request) (handled bool)

// NewFake makes a server that has only the experiment Default.
func NewFake() *Fake {
	f := &Fake{files: map[string][]byte{}}
	f.experiments = []*experiment{{id: "0", name: "Default", created: now()}}
	return f
}

// SetBefore sets what is asked before each request is handled; nil = nothing.
func (f *Fake) SetBefore(h Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = h
}

// Requests are all that came, answered or not, in their order.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// ServeHTTP notes the request, asks the hook and answers.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	f.mu.Lock()
	f.requests = append(f.requests, Request{r.Method, r.URL.RequestURI(), r.Header.Clone(), body, time.Now()})
	before := f.before
	f.mu.Unlock()
	if err != nil {
		return // the client left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if before != nil && before(w, r) {
		return
	}
	f.answer(w, r, body)
}

// Applied is a hook that does what the request asks for and then answers with a
// fault: the client does not learn that its request was heard.
func (f *Fake) Applied(then Hook) Hook {
	return func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body) // it is in memory
		f.answer(&nowhere{header: http.Header{}}, r, body)
		return then(w, r)
	}
}

// nowhere is where an answer goes that no one gets.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// answer finds the handler of a request.
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
		fmt.Fprint(w, f.version())
	case rest == path:
		notFound(w)
	case rest == "mlflow/upload-artifact" && ajax:
		f.uploadArtifact(w, r, body)
	case rest == "mlflow-artifacts/artifacts" || strings.HasPrefix(rest, "mlflow-artifacts/artifacts/"):
		f.proxied(w, r, strings.TrimPrefix(strings.TrimPrefix(rest, "mlflow-artifacts/artifacts"), "/"), body)
	default:
		f.call(w, r, strings.TrimPrefix(rest, "mlflow/"), body)
	}
}

func (f *Fake) version() string {
	if f.Version != "" {
		return f.Version
	}
	return "3.17.2"
}

// call answers one of the documented calls.
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

// queryBody makes the query a body, so that both are read by the same code.
func queryBody(r *http.Request) []byte {
	fields := map[string]string{}
	for k, v := range r.URL.Query() {
		fields[k] = v[0]
	}
	body, _ := json.Marshal(fields) // strings cannot fail
	return body
}

// wantJSON refuses a request whose type is not said.
func wantJSON(r *http.Request) *apiError {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return invalid("Bad Request. Content-Type must be one of ['application/json'].")
	}
	return nil
}

// call is a documented one.
type call struct {
	methods []string
	handle  func(f *Fake, body []byte) (any, *apiError)
}

// get and post make a call from a function of its decoded arguments.
func get[T any](h func(*Fake, *T) (any, *apiError)) call {
	return call{[]string{http.MethodGet}, decoded(h)}
}
func post[T any](h func(*Fake, *T) (any, *apiError)) call {
	return call{[]string{http.MethodPost}, decoded(h)}
}

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

// required refuses arguments in which a field marked so is empty.
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
	return invalid("Missing value for required parameter '%s'. See the API docs for more information about request parameters.", name)
}

// calls are all that the Fake knows, by the end of their path.
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
	"runs/restore":            post((*Fake).restoreRun),
	"runs/search":             post((*Fake).searchRuns),
	"runs/log-batch":          post((*Fake).logBatch),
	"runs/log-metric":         post((*Fake).logMetric),
	"runs/log-parameter":      post((*Fake).logParam),
	"runs/set-tag":            post((*Fake).setTag),
	"metrics/get-history":     get((*Fake).history),
	"artifacts/list":          get((*Fake).listArtifacts),
}

// apiError is a refusal.
type apiError struct {
	status        int
	code, message string
}

func invalid(format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) *apiError {
	return &apiError{http.StatusNotFound, "RESOURCE_DOES_NOT_EXIST", fmt.Sprintf(format, args...)}
}

func (e *apiError) write(w http.ResponseWriter) {
	writeJSON(w, e.status, map[string]string{"error_code": e.code, "message": e.message})
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client left
}

func notFound(w http.ResponseWriter) { html(w, http.StatusNotFound, "Not Found") }

func html(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html>\n<html lang=en>\n<title>%d %s</title>\n<h1>%s</h1>\n", status, title, title)
}

// integer is a whole number, or a string of one.
type integer int64

// UnmarshalJSON refuses what a real server would store as 0, or round.
func (n *integer) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseInt(string(bytes.Trim(data, `"`)), 10, 64)
	*n = integer(v)
	return err
}

// int64 gives a number the form that answers have.
func (f *Fake) int64(n int64) any {
	if f.Int64Strings {
		return strconv.FormatInt(n, 10)
	}
	return n
}

func now() int64 { return time.Now().UnixMilli() }
