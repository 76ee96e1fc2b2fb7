package mlflowtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A row is a request that must have the same outcome on the Fake and on the real servers. A request is "METHOD path
// body". In a request, {run} is replaced with the ID of a new run, {gone} with the ID of a new run that is deleted, and
// {long:N} with N letters.
type row struct {
	name    string
	before  []string // earlier requests; their outcomes are ignored
	request string
	kind    string // Content-Type; "" means application/json, "-" none
	want    string // status and error code
	// real3 and real2 are the responses of the real servers if they differ from want. why is the reason for the
	// difference.
	real3, real2, why string
	// cut allows the real servers to close the connection instead. In that case, the client may or may not read the
	// response.
	cut bool
}

// of returns a row with a request to which the Fake and the real servers respond with want.
func of(name, want, request string, before ...string) row {
	return row{name: name, want: want, request: request, before: before}
}

// as returns the row with another content type.
func (r row) as(kind string) row {
	r.kind = kind
	return r
}

// but returns the row with the responses of the real servers, and the reason why they differ.
func (r row) but(real3, real2, why string) row {
	r.real3, r.real2, r.why = real3, real2, why
	return r
}

// An outcome is the result of a request.
type outcome struct {
	answer string // status and error code
	effect string // the response and the resulting run, without random values
}

// A client sends the requests of rows to one server.
type client struct {
	t    *testing.T
	url  string
	http *http.Client
	ids  map[string]string // names of run IDs in an effect
}

func newClient(t *testing.T, url string) *client {
	return &client{t, url, &http.Client{Timeout: 5 * time.Minute}, map[string]string{}}
}

// perform sends the requests of a row.
func (c *client) perform(r row) outcome {
	clear(c.ids)
	run := ""
	fill := func(text string) string {
		for strings.Contains(text, "{run}") || strings.Contains(text, "{gone}") {
			if run == "" {
				run = c.newRun()
				if strings.Contains(text, "{gone}") {
					c.send("POST runs/delete "+fmt.Sprintf(`{"run_id":%q}`, run), "")
				}
			}
			text = strings.NewReplacer("{run}", run, "{gone}", run).Replace(text)
		}
		return long.ReplaceAllStringFunc(text, func(m string) string {
			var n int
			fmt.Sscanf(m, "{long:%d}", &n)
			return strings.Repeat("x", n)
		})
	}
	for _, text := range r.before {
		c.send(fill(text), "")
	}
	status, body := c.send(fill(r.request), r.kind)
	o := outcome{answer: answer(status, body)}
	if status < 300 { // error messages are not compared
		o.effect = c.normal(body)
	}
	if run != "" {
		o.effect += "\n" + c.state(run)
	}
	return o
}

var long = regexp.MustCompile(`\{long:\d+\}`)

// answer returns the status and the error code, if there is one.
func answer(status int, body []byte) string {
	var e struct {
		Code string `json:"error_code"`
	}
	_ = json.Unmarshal(body, &e) // the body may be HTML
	return strings.TrimSpace(fmt.Sprint(status, " ", e.Code))
}

// send sends "METHOD path body". A path without a leading slash is below the API's path.
func (c *client) send(text, kind string) (int, []byte) {
	parts := append(strings.SplitN(text, " ", 3), "")
	path := parts[1]
	if !strings.HasPrefix(path, "/") {
		path = "/api/2.0/mlflow/" + path
	}
	request, err := http.NewRequest(parts[0], c.url+path, strings.NewReader(parts[2]))
	if err != nil {
		c.t.Error(err)
		return 0, nil
	}
	switch kind {
	case "":
		request.Header.Set("Content-Type", "application/json")
	case "-":
	default:
		request.Header.Set("Content-Type", kind)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil { // the server closed the connection after its response
		return 0, []byte(err.Error())
	}
	return response.StatusCode, body
}

// newRun creates a run in the experiment of the rows.
func (c *client) newRun() string {
	_, body := c.send(`POST runs/create {"experiment_id":"1","run_name":"r","start_time":1000,"user_id":"u"}`, "")
	var answer struct {
		Run struct {
			Info struct {
				ID string `json:"run_id"`
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Run.Info.ID == "" {
		c.t.Errorf("%s: the response has no run: %v: %s", c.url, err, body)
	}
	return answer.Run.Info.ID
}

// state returns all data of a run on the server.
func (c *client) state(run string) string {
	_, body := c.send("GET runs/get?run_id="+run, "")
	text := c.normal(body)
	var answer struct {
		Run struct {
			Data struct{ Metrics []struct{ Key string } }
		}
	}
	_ = json.Unmarshal(body, &answer)
	if m := answer.Run.Data.Metrics; len(m) < 20 { // otherwise there would be a thousand requests
		slices.SortFunc(m, func(a, b struct{ Key string }) int { return strings.Compare(a.Key, b.Key) })
		for _, metric := range m {
			_, body := c.send("GET metrics/get-history?max_results=1000&run_id="+run+"&metric_key="+url.QueryEscape(
				metric.Key), "")
			text += "\n" + c.normal(body)
		}
	}
	return text
}

// chance lists the keys with random values, and the keys that only one version has.
var chance = []string{"creation_time", "last_update_time", "message", "run_uuid", "inputs", "outputs",
	"trace_location", "workspace", "next_page_token", "error_code", "effective_trace_archival_retention"}

var hexID = regexp.MustCompile(`[0-9a-f]{32}`)

// normal returns a response without random values. Run IDs are numbered.
func (c *client) normal(body []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if !bytes.HasPrefix(body, []byte("{")) || d.Decode(&v) != nil {
		return ""
	}
	if v = c.walk(v); v == nil {
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		c.t.Error(err)
	}
	return string(out)
}

func (c *client) walk(v any) any {
	switch v := v.(type) {
	case map[string]any:
		_, more := v["next_page_token"]
		for k, inner := range v {
			if inner = c.walk(inner); inner == nil || slices.Contains(chance, k) || k == "run_id" && v["step"] != nil {
				delete(v, k)
				continue
			}
			v[k] = inner
		}
		if more {
			v["more"] = true
		}
		if len(v) == 0 {
			return nil
		}
		return v
	case []any:
		return c.walkList(v)
	case json.Number:
		f, _ := v.Float64()
		return f
	case string:
		return hexID.ReplaceAllStringFunc(v, func(id string) string {
			if c.ids[id] == "" {
				c.ids[id] = fmt.Sprintf("run%d", len(c.ids))
			}
			return c.ids[id]
		})
	}
	return v
}

// walkList sorts items by their keys, which the servers return in any order.
func (c *client) walkList(list []any) any {
	for i := range list {
		list[i] = c.walk(list[i])
	}
	key := func(v any) string {
		m, _ := v.(map[string]any)
		k, _ := m["key"].(string)
		return k
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	if len(list) == 0 {
		return nil
	}
	return list
}

const (
	badValue  = "400 INVALID_PARAMETER_VALUE"
	noSuch    = "404 RESOURCE_DOES_NOT_EXIST"
	exists    = "400 RESOURCE_ALREADY_EXISTS"
	ok        = "200"
	internal  = "500 INTERNAL_ERROR"
	cAPI      = "/api/2.0/mlflow-artifacts/artifacts"
	cUpload   = "POST /ajax-api/2.0/mlflow/upload-artifact?"
	onWindows = "servers on Windows and before 2.16 refuse a colon"
	silently  = "the real servers silently store a wrong point"
	unknown   = "servers in other languages refuse unknown fields"
	whole     = "2.x has no pages here and responds with the whole history"
	endRun    = `POST runs/update {"run_id":"{run}","status":"FINISHED","end_time":5000}`
	fileStore = "a store that keeps each key in a file would fail"
)

// created returns a request to create a run with more fields.
func created(fields string) string {
	return strings.Replace(`POST runs/create {"experiment_id":"1","run_name":"n",`+fields+"}", ",}", "}", 1)
}

// p returns the JSON of a point. logged returns a request to log points.
func p(value, timestamp, step int) string {
	return fmt.Sprintf(`{"key":"m","value":%d,"timestamp":%d,"step":%d}`, value, timestamp, step)
}

func logged(points ...string) string {
	return `POST runs/log-batch {"run_id":"{run}","metrics":[` + strings.Join(points, ",") + "]}"
}

var experimentRows = []row{
	of("create an experiment", ok, `POST experiments/create {"name":"one"}`),
	of("create an existing experiment", exists, `POST experiments/create {"name":"one"}`),
	of("experiment without a name", badValue, `POST experiments/create {}`),
	of("experiment with an empty name", badValue, `POST experiments/create {"name":""}`),
	of("experiment name of 500 characters", ok, `POST experiments/create {"name":"{long:500}"}`),
	of("experiment name of 501 characters", badValue, `POST experiments/create {"name":"{long:501}"}`),
	of("experiment name with special characters", ok, `POST experiments/create {"name":"é (b)/%'\" ü"}`),
	of("experiment by name", ok, `GET experiments/get-by-name?experiment_name=one`),
	of("experiment by a name that does not exist", noSuch, `GET experiments/get-by-name?experiment_name=two`),
	of("experiment by name without a name", badValue, `GET experiments/get-by-name`),
	of("experiment by ID", ok, `GET experiments/get?experiment_id=1`),
	of("experiment by an ID that does not exist", noSuch, `GET experiments/get?experiment_id=999`),
	of("experiment by an invalid ID", badValue, `GET experiments/get?experiment_id=x`).but("", noSuch, "like 3.x"),
	of("create an experiment to delete", ok, `POST experiments/create {"name":"deleted"}`),
	of("delete an experiment", ok, `POST experiments/delete {"experiment_id":"4"}`),
	of("delete a deleted experiment", noSuch, `POST experiments/delete {"experiment_id":"4"}`),
	of("deleted experiment by name", ok, `GET experiments/get-by-name?experiment_name=deleted`),
	of("create an experiment with the name of a deleted one", exists, `POST experiments/create {"name":"deleted"}`),
	of("run in a deleted experiment", badValue, `POST runs/create {"experiment_id":"4","run_name":"r"}`),
	of("active experiments", ok, `POST experiments/search {"max_results":10}`),
	of("restore an experiment", ok, `POST experiments/restore {"experiment_id":"4"}`),
	of("first page of experiments", ok, `POST experiments/search {"max_results":2}`),
	of("second page of experiments", ok, `POST experiments/search {"max_results":9,"page_token":"eyJvZmZzZXQiOiAyfQ=="}`),
	of("experiments with an invalid token", badValue, `POST experiments/search {"max_results":9,"page_token":"x"}`),
	of("experiments without a page size", badValue, `POST experiments/search {}`),
	of("experiments with a page size that is too large", badValue, `POST experiments/search {"max_results":50001}`),
}

func runRows() []row {
	rows := []row{
		of("create a run", ok, created(`"user_id":"me","start_time":1234567890123,"tags":[{"key":"k","value":"v"}]`)),
		of("run without an experiment", "400 BAD_REQUEST", `POST runs/create {"run_name":"n"}`),
		of("run in an experiment that does not exist", noSuch, `POST runs/create {"experiment_id":"999","run_name":"n"}`),
		of("run in an experiment with an invalid ID", badValue,
			`POST runs/create {"experiment_id":"x","run_name":"n"}`).but("", noSuch, "like 3.x"),
		of("run with a start time in a string", ok, created(`"start_time":"77"`)),
		of("run with a fractional start time", badValue, created(`"start_time":1.5`)).but(ok, ok, silently),
		of("run with an unknown field", badValue, created(`"color":"red"`)).but(ok, ok, unknown),
		of("run with an invalid tag", badValue,
			created(`"tags":[{"key":"a//b","value":"v"}]`)).but(ok, ok,
			"only SQL stores accept any tag here, and they cannot change it later"),
		of("no content type", badValue, created("")).as("-"),
		of("wrong content type", badValue, created("")).as("text/plain"),
		of("content type with a charset", ok, created("")).as("application/json; charset=utf-8"),
		of("body cut off", badValue,
			`POST runs/create {"experiment_id":"1",`).but("400 BAD_REQUEST", "400 BAD_REQUEST", "they treat it as an empty body"),
		of("get a run", ok, `GET runs/get?run_id={run}`),
		of("get a deleted run", ok, `GET runs/get?run_id={gone}`),
		of("get a run without an ID", badValue, `GET runs/get`),
		of("get a run that does not exist", noSuch, `GET runs/get?run_id=0123456789abcdef0123456789abcdef`),
		of("end a run", ok, endRun),
		of("resume a run", ok, `POST runs/update {"run_id":"{run}","status":"RUNNING"}`, endRun),
		of("update a run without changes", ok, `POST runs/update {"run_id":"{run}"}`),
		of("update a run with an invalid status", badValue,
			`POST runs/update {"run_id":"{run}","status":"DONE"}`).but(ok, ok, "they ignore it"),
		of("update a deleted run", badValue, `POST runs/update {"run_id":"{gone}","status":"FINISHED"}`),
		of("update a run without an ID", badValue, `POST runs/update {"status":"FINISHED"}`),
		of("update a run that does not exist", noSuch,
			`POST runs/update {"run_id":"0123456789abcdef0123456789abcdef","status":"FINISHED"}`),
		of("delete a run", ok, `POST runs/delete {"run_id":"{run}"}`),
		of("delete a deleted run", ok, `POST runs/delete {"run_id":"{gone}"}`),
		of("delete a run that does not exist", noSuch, `POST runs/delete {"run_id":"0123456789abcdef0123456789abcdef"}`),
	}
	for _, status := range []string{"RUNNING", "SCHEDULED", "FAILED", "KILLED"} {
		rows = append(rows, of("status "+status, ok, `POST runs/update {"run_id":"{run}","status":"`+status+`"}`))
	}
	return rows
}

// metrics returns n different metrics, and tags n different tags.
func metrics(n int) string {
	return items(n, `{"key":"m%d","value":%[1]d.5,"timestamp":%[1]d,"step":1}`)
}
func tags(n int) string { return items(n, `{"key":"t%d","value":"%[1]d"}`) }

func items(n int, format string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func batchRow(name, want string, m, t int) row {
	return of(name, want, fmt.Sprintf(`POST runs/log-batch {"run_id":"{run}","metrics":%s,"tags":%s}`, metrics(m), tags(t)))
}

func batchRows() []row {
	rows := []row{
		batchRow("an empty batch", ok, 0, 0),
		batchRow("1000 metrics", ok, 1000, 0), batchRow("1001 metrics", badValue, 1001, 0),
		batchRow("100 tags", ok, 0, 100), batchRow("101 tags", badValue, 0, 101),
		batchRow("1000 items", ok, 950, 50), batchRow("1001 items", badValue, 950, 51),
	}
	log := func(key string) string {
		k, _ := json.Marshal(key)
		return fmt.Sprintf(
			`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"first","value":1,"timestamp":1},{"key":%s,`+
				`"value":1,"timestamp":1}],`+`"tags":[{"key":%[1]s,"value":"v"}]}`, k)
	}
	for _, key := range []string{"a", "é", "a b", "a/b/c", "A.b-c_d/0", "系统", "a/..b", "²", strings.Repeat("k", 250),
		strings.Repeat("é", 250)} {
		rows = append(rows, of("key "+short(key), ok, log(key)))
	}
	for _, key := range []string{"a//b", "/a", "a/", "../x", "..", "...", ".", "a/./b", "a/../b", "a(b)", "a%",
		"a@b", "a,b", "a[0]", "a=b", "a\tb", "a\\b", "a\u0301", strings.Repeat("k", 251)} {
		rows = append(rows, of("key "+short(key), badValue, log(key)))
	}
	return append(rows,
		of("key with a colon", badValue, log("a:b")).but(ok, ok, onWindows),
		of("key with a newline", badValue, log("a\n")).but(ok, ok, "their regular expression accepts a trailing newline"),
		of("an empty key", badValue, log("")),
		knownRow("100 metrics, the last already stored", 100, 99),
		knownRow("101 metrics, the last already stored", 101, 100),
		knownRow("101 metrics, the first already stored", 101, 0),
		knownRow("350 metrics, one in the middle already stored", 350, 201),
		of("a metric in the folder of another", internal,
			`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"a/b","value":1,"timestamp":1},`+
				`{"key":"a/b/c","value":1,"timestamp":1}]}`).but(ok, ok, fileStore),
	)
}

// knownRow returns a row with a batch of n metrics, one of which the server has.
func knownRow(name string, n, known int) row {
	r := batchRow(name, ok, n, 1)
	r.before = []string{
		fmt.Sprintf(
			`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m%d","value":%[1]d.5,"timestamp":%[1]d,`+
				`"step":1}]}`, known)}
	if n > maxDeduplicated {
		r.want, r.real3, r.why = "400 BAD_REQUEST", ok, "later 3.x versions remove points that they have"
	}
	return r
}

func short(key string) string {
	return fmt.Sprintf("%q", key[:min(len(key), 10)]) + fmt.Sprint(len(key))
}

// point returns a row with one metric.
func point(name, want, fields string) row {
	return of(name, want, `POST runs/log-batch {"run_id":"{run}","metrics":[{`+fields+`}]}`)
}

// wrong returns a row with a metric that the real servers accept and misinterpret.
func wrong(name, fields string) row {
	r := point(name, badValue, fields)
	r.real3, r.real2, r.why = ok, ok, silently
	return r
}

var pointRows = []row{
	point("a point", ok, `"key":"m","value":1.25,"timestamp":1234567890123,"step":7`),
	point("a point without a step", ok, `"key":"m","value":1,"timestamp":1`),
	point("a negative step", ok, `"key":"m","value":1,"timestamp":1,"step":-3`),
	point("the largest step", ok, `"key":"m","value":1,"timestamp":1,"step":9223372036854775807`),
	point("numbers in strings", ok, `"key":"m","value":1,"timestamp":"12","step":"3"`),
	point("the largest value", ok, `"key":"m","value":1.7976931348623157e308,"timestamp":1`),
	point("the smallest value", ok, `"key":"m","value":5e-324,"timestamp":1`),
	point("zeros", ok, `"key":"m","value":0,"timestamp":0,"step":0`),
	point("point without a key", badValue, `"value":1,"timestamp":1`),
	point("point without a value", badValue, `"key":"m","timestamp":1`),
	point("point with a null value", badValue, `"key":"m","value":null,"timestamp":1`),
	point("point without a timestamp", badValue, `"key":"m","value":1`),
	point("a negative timestamp", badValue, `"key":"m","value":1,"timestamp":-1`),
	wrong("a fractional timestamp", `"key":"m","value":1,"timestamp":5.5`),
	wrong("a fractional step", `"key":"m","value":1,"timestamp":5,"step":1.5`),
	wrong("a step beyond 64 bits", `"key":"m","value":1,"timestamp":5,"step":9223372036854775808`),
	wrong("NaN", `"key":"m","value":NaN,"timestamp":5`),
	wrong("Infinity", `"key":"m","value":Infinity,"timestamp":5`),
	wrong("1e400", `"key":"m","value":1e400,"timestamp":5`),
	wrong("NaN in a string", `"key":"m","value":"NaN","timestamp":5`),
	wrong("Infinity in a string", `"key":"m","value":"Infinity","timestamp":5`),
	wrong("a boolean value", `"key":"m","value":true,"timestamp":5`),
	wrong("an unknown field", `"key":"m","value":1,"timestamp":5,"color":"red"`),
	of("a point that is already stored", ok, logged(p(1, 1, 1), p(2, 1, 1)), logged(p(1, 1, 1))),
	of("the same point twice in one batch", ok, logged(p(1, 1, 1), p(1, 1, 1))),
	of("latest point by step", ok, logged(p(1, 9, 1), p(2, 1, 2))),
	of("latest point by time", ok, logged(p(1, 9, 1), p(2, 1, 1))),
	of("latest point by value", ok, logged(p(3, 1, 1), p(2, 1, 1))),
	of("latest point of two batches", ok, logged(p(4, 4, 4)), logged(p(5, 5, 5))),
	of("a batch for a deleted run", badValue,
		`POST runs/log-batch {"run_id":"{gone}","metrics":[{"key":"m","value":1,"timestamp":1}]}`),
	of("a batch without a run ID", badValue, `POST runs/log-batch {"metrics":[{"key":"m","value":1,"timestamp":1}]}`),
	of("a batch for a run that does not exist", noSuch,
		`POST runs/log-batch {"run_id":"0123456789abcdef0123456789abcdef","metrics":[{"key":"m","value":1,"timestamp":1}]}`),
	of("a batch for an ended run", ok,
		`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":1}]}`, endRun),
	of("a batch that is a list", badValue, `POST runs/log-batch []`).but("500", "500", "it is an error of the client"),
	of("batch cut off", badValue,
		`POST runs/log-batch {"run_id":"{run}","metrics":[`).but("500", "500",
		"a request that is cut off is an error of the client"),
}

var tagRows = []row{
	of("a tag", ok, `POST runs/set-tag {"run_id":"{run}","key":"k","value":"v"}`),
	of("a tag with a new value", ok,
		`POST runs/set-tag {"run_id":"{run}","key":"k","value":"w"}`,
		`POST runs/set-tag {"run_id":"{run}","key":"k","value":"v"}`),
	of("a tag without a value", ok, `POST runs/set-tag {"run_id":"{run}","key":"k"}`),
	of("a tag without a key", badValue, `POST runs/set-tag {"run_id":"{run}","value":"v"}`),
	of("a tag with an invalid key", badValue, `POST runs/set-tag {"run_id":"{run}","key":"a//b","value":"v"}`),
	of("a tag of a deleted run", badValue, `POST runs/set-tag {"run_id":"{gone}","key":"k","value":"v"}`),
	of("a tag without a run ID", badValue, `POST runs/set-tag {"key":"k","value":"v"}`),
	of("a tag value of 8000 characters", ok,
		`POST runs/log-batch {"run_id":"{run}","tags":[{"key":"k","value":"{long:8000}"}]}`),
	of("a tag value of 8001 characters", ok,
		`POST runs/log-batch {"run_id":"{run}","tags":[{"key":"k","value":"{long:8001}"}]}`),
	of("the tag with the run's name", ok,
		`POST runs/log-batch {"run_id":"{run}","tags":[{"key":"mlflow.runName","value":"new"}]}`),
	of("a tag twice in a batch", ok,
		`POST runs/log-batch {"run_id":"{run}","tags":[{"key":"k","value":"v"},{"key":"k","value":"w"}]}`),
}

// five holds requests that log five points to a run.
var five = []string{
	`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"a/b.c","value":5,"timestamp":5,"step":1},` +
		`{"key":"a/b.c","value":4,"timestamp":4,"step":2},` +
		`{"key":"a/b.c","value":3,"timestamp":3,"step":3},{"key":"a/b.c","value":2,"timestamp":3,"step":4},` +
		`{"key":"a/b.c","value":1,"timestamp":3,"step":3}]}`}

const historyOf = "GET metrics/get-history?run_id={run}&metric_key=a%2Fb.c"

var historyRows = []row{
	of("a history", ok, historyOf+"&max_results=10", five...),
	of("a page of a history", ok, historyOf+"&max_results=2", five...).but("", ok, whole),
	of("the second page of a history", ok,
		historyOf+"&max_results=2&page_token=eyJvZmZzZXQiOiAyfQ==", five...).but("", ok, whole),
	of("the last page of a history", ok,
		historyOf+"&max_results=2&page_token=eyJvZmZzZXQiOiA0fQ==", five...).but("", ok, whole),
	of("a full page without a next page", ok, historyOf+"&max_results=5", five...),
	of("a history without a page size", ok,
		historyOf, five...).but(ok, ok, "3.10 responds with no points and a token, others with all points"),
	of("a history with an invalid token", badValue, historyOf+"&max_results=2&page_token=x", five...).but("", ok, whole),
	of("a history with a negative page size", badValue, historyOf+"&max_results=-1", five...).but("", ok, whole),
	of("the history of another key", ok, "GET metrics/get-history?run_id={run}&metric_key=other&max_results=10", five...),
	of("a history without a key", badValue, "GET metrics/get-history?run_id={run}&max_results=10"),
	of("the history of a deleted run", ok, "GET metrics/get-history?run_id={gone}&metric_key=m&max_results=10"),
	of("a history without a run ID", badValue, "GET metrics/get-history?metric_key=m&max_results=10"),
	of("the history of a run that does not exist", ok,
		"GET metrics/get-history?run_id=0123456789abcdef0123456789abcdef&metric_key=m&max_results=10"),
}

// search returns a row that searches experiment 2, which has three runs.
func search(name, want, filter, more string) row {
	f, _ := json.Marshal(filter)
	return of(name, want, fmt.Sprintf(`POST runs/search {"experiment_ids":["2"],"filter":%s%s}`, f, more))
}

const upwards = `,"order_by":["attributes.start_time ASC"]`

var searchRows = []row{
	of("three runs to search", ok,
		`POST runs/create {"experiment_id":"2","run_name":"three","start_time":300,"tags":[{"key":"perfagent.run_id","value":"x"}]}`,
		`POST runs/create {"experiment_id":"2","run_name":"one","start_time":100,"user_id":"u",`+
			`"tags":[{"key":"perfagent.run_id","value":"x"},{"key":"k","value":"it's"}]}`,
		`POST runs/create {"experiment_id":"2","run_name":"two","start_time":200,"tags":[{"key":"perfagent.run_id","value":"y"}]}`),
	search("all runs", ok, "", ""),
	search("all runs, earliest first", ok, "", upwards),
	search("a tag", ok, "tags.`perfagent.run_id` = 'x'", upwards),
	search("a tag that no run has", ok, "tags.`nowhere` = 'x'", upwards),
	search("a tag and a time", ok, "tags.`perfagent.run_id` = 'x' and attributes.start_time >= 200", upwards),
	search("a page of one", ok, "", upwards+`,"max_results":1`),
	search("the next page", ok, "", upwards+`,"max_results":1,"page_token":"eyJvZmZzZXQiOiAxfQ=="`),
	of("the last page", ok,
		`POST runs/search {"experiment_ids":["2"]`+upwards+`,"max_results":1,"page_token":"eyJvZmZzZXQiOiAyfQ=="}`).but(ok, "",
		"2.x returns a token with a full page, even if the next page is empty"),
	search("a page after the last", ok, "", upwards+`,"max_results":1,"page_token":"eyJvZmZzZXQiOiAzfQ=="`),
	search("a page of 0", badValue, "", upwards+`,"max_results":0`),
	search("a page of 50000", ok, "", upwards+`,"max_results":50000`),
	search("a page of 50001", badValue, "", upwards+`,"max_results":50001`),
	search("an invalid token", badValue, "", upwards+`,"page_token":"x"`),
	of("search without experiments", ok, `POST runs/search {}`),
	of("search an experiment that does not exist", ok, `POST runs/search {"experiment_ids":["999"]}`),
	of("search an invalid experiment ID", badValue, `POST runs/search {"experiment_ids":["x"]}`).but("", ok, "like 3.x"),
}

var artifactRows = []row{
	of("a file", ok, "PUT "+cAPI+"/1/{run}/artifacts/perfagent/node-0.json {}").as("application/json"),
	of("a file that exists", ok,
		"PUT "+cAPI+"/1/{run}/artifacts/a.json []    ", "PUT "+cAPI+"/1/{run}/artifacts/a.json {}"),
	of("an empty file", ok, "PUT "+cAPI+"/1/{run}/artifacts/empty "),
	of("a file outside the run's folder", badValue, "PUT "+cAPI+"/1/{run}/../../x text"),
	of("a file outside the run's folder, escaped", badValue, "PUT "+cAPI+"/1/{run}/%2e%2e/%2e%2e/x text"),
	of("a file below another file", "500",
		"PUT "+cAPI+"/1/{run}/artifacts/a/b text", "PUT "+cAPI+"/1/{run}/artifacts/a text"),
	of("an upload", ok, cUpload+"run_uuid={run}&path=perfagent/a.html text"),
	of("an empty upload", badValue, cUpload+"run_uuid={run}&path=a.html "),
	of("an upload without a path", badValue, cUpload+"run_uuid={run} text"),
	of("an upload without a run ID", badValue, cUpload+"path=a.html text"),
	of("an upload for a run that does not exist", noSuch,
		cUpload+"run_uuid=0123456789abcdef0123456789abcdef&path=a.html text"),
	of("an upload outside the run's folder", badValue, cUpload+"run_uuid={run}&path=../a.html text"),
	of("an upload of 10 MiB", ok, cUpload+"run_uuid={run}&path=a.html {long:10485760}"),
}

var otherRows = []row{
	of("health", ok, "GET /health"),
	of("version", ok, "GET /version"),
	of("an unknown call", "404", "POST runs/unknown {}"),
	of("an unknown path", "404", "GET /api/2.0/preview/mlflow/experiments/list"),
	of("a wrong method", "405", "GET runs/log-batch"),
	of("a call of the browser's API", ok, "GET /ajax-api/2.0/mlflow/runs/get?run_id={run}"),
	{name: "an upload of more than 10 MiB", request: cUpload + "run_uuid={run}&path=a.html {long:10485761}",
		want: badValue, cut: true},
}
