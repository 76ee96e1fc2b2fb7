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
	return &client{t, url, &http.Client{Timeout: time.Minute}, map[string]string{}}
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
	fileStore = "a store that keeps each key in a file would fail"
)

var experimentRows = []row{
	{name: "create an experiment", request: `POST experiments/create {"name":"one"}`, want: ok},
	{name: "create an existing experiment", request: `POST experiments/create {"name":"one"}`, want: exists},
	{name: "experiment without a name", request: `POST experiments/create {}`, want: badValue},
	{name: "experiment with an empty name", request: `POST experiments/create {"name":""}`, want: badValue},
	{name: "experiment name of 500 characters", request: `POST experiments/create {"name":"{long:500}"}`, want: ok},
	{name: "experiment name of 501 characters", request: `POST experiments/create {"name":"{long:501}"}`, want: badValue},
	{name: "experiment name with special characters", request: `POST experiments/create {"name":"é (b)/%'\" ü"}`, want: ok},
	{name: "experiment by name", request: `GET experiments/get-by-name?experiment_name=one`, want: ok},
	{name: "experiment by a name that does not exist", request: `GET experiments/get-by-name?experiment_name=two`, want: noSuch},
	{name: "experiment by name without a name", request: `GET experiments/get-by-name`, want: badValue},
	{name: "experiment by ID", request: `GET experiments/get?experiment_id=1`, want: ok},
	{name: "experiment by an ID that does not exist", request: `GET experiments/get?experiment_id=999`, want: noSuch},
	{name: "experiment by an invalid ID", request: `GET experiments/get?experiment_id=x`, want: badValue,
		real2: noSuch, why: "like 3.x"},
	{name: "create an experiment to delete", request: `POST experiments/create {"name":"deleted"}`, want: ok},
	{name: "delete an experiment", request: `POST experiments/delete {"experiment_id":"4"}`, want: ok},
	{name: "delete a deleted experiment", request: `POST experiments/delete {"experiment_id":"4"}`, want: noSuch},
	{name: "deleted experiment by name", request: `GET experiments/get-by-name?experiment_name=deleted`, want: ok},
	{name: "create an experiment with the name of a deleted one", request: `POST experiments/create {"name":"deleted"}`, want: exists},
	{name: "run in a deleted experiment", request: `POST runs/create {"experiment_id":"4","run_name":"r"}`, want: badValue},
	{name: "active experiments", request: `POST experiments/search {"max_results":10}`, want: ok},
	{name: "restore an experiment", request: `POST experiments/restore {"experiment_id":"4"}`, want: ok},
	{name: "first page of experiments", request: `POST experiments/search {"max_results":2}`, want: ok},
	{name: "second page of experiments",
		request: `POST experiments/search {"max_results":9,"page_token":"eyJvZmZzZXQiOiAyfQ=="}`, want: ok},
	{name: "experiments with an invalid token", request: `POST experiments/search {"max_results":9,"page_token":"x"}`,
		want: badValue},
	{name: "experiments without a page size", request: `POST experiments/search {}`, want: badValue},
	{name: "experiments with a page size that is too large", request: `POST experiments/search {"max_results":50001}`,
		want: badValue},
}

func runRows() []row {
	rows := []row{
		{name: "create a run", request: `POST runs/create {"experiment_id":"1","run_name":"n","user_id":"me",` +
			`"start_time":1234567890123,"tags":[{"key":"k","value":"v"}]}`, want: ok},
		{name: "run without an experiment", request: `POST runs/create {"run_name":"n"}`, want: "400 BAD_REQUEST"},
		{name: "run in an experiment that does not exist",
			request: `POST runs/create {"experiment_id":"999","run_name":"n"}`, want: noSuch},
		{name: "run in an experiment with an invalid ID", request: `POST runs/create {"experiment_id":"x","run_name":"n"}`,
			want: badValue, real2: noSuch, why: "like 3.x"},
		{name: "run with a start time in a string",
			request: `POST runs/create {"experiment_id":"1","run_name":"n","start_time":"77"}`, want: ok},
		{name: "run with a fractional start time",
			request: `POST runs/create {"experiment_id":"1","run_name":"n","start_time":1.5}`, want: badValue, real3: ok,
			real2: ok, why: silently},
		{name: "run with an unknown field", request: `POST runs/create {"experiment_id":"1","run_name":"n","color":"red"}`,
			want: badValue, real3: ok, real2: ok, why: unknown},
		{name: "run with an invalid tag",
			request: `POST runs/create {"experiment_id":"1","run_name":"n","tags":[{"key":"a//b","value":"v"}]}`,
			want:    badValue,
			real3:   ok, real2: ok, why: "only SQL stores accept any tag here, and they cannot change it later"},
		{name: "no content type", request: `POST runs/create {"experiment_id":"1","run_name":"n"}`, kind: "-",
			want: badValue},
		{name: "wrong content type", request: `POST runs/create {"experiment_id":"1","run_name":"n"}`,
			kind: "text/plain", want: badValue},
		{name: "content type with a charset", request: `POST runs/create {"experiment_id":"1","run_name":"n"}`,
			kind: "application/json; charset=utf-8", want: ok},
		{name: "body cut off", request: `POST runs/create {"experiment_id":"1",`, want: badValue,
			real3: "400 BAD_REQUEST", real2: "400 BAD_REQUEST", why: "they treat it as an empty body"},
		{name: "get a run", request: `GET runs/get?run_id={run}`, want: ok},
		{name: "get a deleted run", request: `GET runs/get?run_id={gone}`, want: ok},
		{name: "get a run without an ID", request: `GET runs/get`, want: badValue},
		{name: "get a run that does not exist", request: `GET runs/get?run_id=0123456789abcdef0123456789abcdef`,
			want: noSuch},
		{name: "end a run", request: `POST runs/update {"run_id":"{run}","status":"FINISHED","end_time":5000}`, want: ok},
		{name: "resume a run", before: []string{`POST runs/update {"run_id":"{run}","status":"FINISHED","end_time":5000}`},
			request: `POST runs/update {"run_id":"{run}","status":"RUNNING"}`, want: ok},
		{name: "update a run without changes", request: `POST runs/update {"run_id":"{run}"}`, want: ok},
		{name: "update a run with an invalid status", request: `POST runs/update {"run_id":"{run}","status":"DONE"}`,
			want: badValue, real3: ok, real2: ok, why: "they ignore it"},
		{name: "update a deleted run", request: `POST runs/update {"run_id":"{gone}","status":"FINISHED"}`, want: badValue},
		{name: "update a run without an ID", request: `POST runs/update {"status":"FINISHED"}`, want: badValue},
		{name: "update a run that does not exist",
			request: `POST runs/update {"run_id":"0123456789abcdef0123456789abcdef","status":"FINISHED"}`, want: noSuch},
		{name: "delete a run", request: `POST runs/delete {"run_id":"{run}"}`, want: ok},
		{name: "delete a deleted run", request: `POST runs/delete {"run_id":"{gone}"}`, want: ok},
		{name: "delete a run that does not exist",
			request: `POST runs/delete {"run_id":"0123456789abcdef0123456789abcdef"}`, want: noSuch},
	}
	for _, status := range []string{"RUNNING", "SCHEDULED", "FAILED", "KILLED"} {
		rows = append(rows, row{name: "status " + status,
			request: `POST runs/update {"run_id":"{run}","status":"` + status + `"}`, want: ok})
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
	return row{name: name, want: want,
		request: fmt.Sprintf(`POST runs/log-batch {"run_id":"{run}","metrics":%s,"tags":%s}`, metrics(m), tags(t))}
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
		rows = append(rows, row{name: "key " + short(key), request: log(key), want: ok})
	}
	for _, key := range []string{"a//b", "/a", "a/", "../x", "..", "...", ".", "a/./b", "a/../b", "a(b)", "a%",
		"a@b", "a,b", "a[0]", "a=b", "a\tb", "a\\b", "a\u0301", strings.Repeat("k", 251)} {
		rows = append(rows, row{name: "key " + short(key), request: log(key), want: badValue})
	}
	return append(rows,
		row{name: "key with a colon", request: log("a:b"), want: badValue, real3: ok, real2: ok, why: onWindows},
		row{name: "key with a newline", request: log("a\n"), want: badValue, real3: ok, real2: ok,
			why: "their regular expression accepts a trailing newline"},
		row{name: "an empty key", request: log(""), want: badValue},
		knownRow("100 metrics, the last already stored", 100, 99),
		knownRow("101 metrics, the last already stored", 101, 100),
		knownRow("101 metrics, the first already stored", 101, 0),
		knownRow("350 metrics, one in the middle already stored", 350, 201),
		row{name: "a metric in the folder of another",
			request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"a/b","value":1,"timestamp":1},` +
				`{"key":"a/b/c","value":1,"timestamp":1}]}`,
			want: internal, real3: ok, real2: ok, why: fileStore},
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
	return row{name: name, want: want, request: `POST runs/log-batch {"run_id":"{run}","metrics":[{` + fields + `}]}`}
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
	{name: "a point that is already stored",
		before: []string{`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":1,"step":1}]}`},
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":1,"step":1},` +
			`{"key":"m","value":2,"timestamp":1,"step":1}]}`, want: ok},
	{name: "the same point twice in one batch",
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":1,"step":1},` +
			`{"key":"m","value":1,"timestamp":1,"step":1}]}`, want: ok},
	{name: "latest point by step",
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":9,"step":1},` +
			`{"key":"m","value":2,"timestamp":1,"step":2}]}`, want: ok},
	{name: "latest point by time",
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":9,"step":1},` +
			`{"key":"m","value":2,"timestamp":1,"step":1}]}`, want: ok},
	{name: "latest point by value",
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":3,"timestamp":1,"step":1},` +
			`{"key":"m","value":2,"timestamp":1,"step":1}]}`, want: ok},
	{name: "latest point of two batches",
		before:  []string{`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":5,"timestamp":5,"step":5}]}`},
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":4,"timestamp":4,"step":4}]}`,
		want:    ok},
	{name: "a batch for a deleted run",
		request: `POST runs/log-batch {"run_id":"{gone}","metrics":[{"key":"m","value":1,"timestamp":1}]}`,
		want:    badValue},
	{name: "a batch without a run ID", request: `POST runs/log-batch {"metrics":[{"key":"m","value":1,"timestamp":1}]}`,
		want: badValue},
	{name: "a batch for a run that does not exist",
		request: `POST runs/log-batch {"run_id":"0123456789abcdef0123456789abcdef","metrics":[{"key":"m",` +
			`"value":1,"timestamp":1}]}`, want: noSuch},
	{name: "a batch for an ended run",
		before:  []string{`POST runs/update {"run_id":"{run}","status":"FINISHED","end_time":5000}`},
		request: `POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"m","value":1,"timestamp":1}]}`, want: ok},
	{name: "a batch that is a list", request: `POST runs/log-batch []`, want: badValue, real3: "500", real2: "500",
		why: "it is an error of the client"},
	{name: "batch cut off", request: `POST runs/log-batch {"run_id":"{run}","metrics":[`, want: badValue,
		real3: "500", real2: "500", why: "a request that is cut off is an error of the client"},
}

var tagRows = []row{
	{name: "a tag", request: `POST runs/set-tag {"run_id":"{run}","key":"k","value":"v"}`, want: ok},
	{name: "a tag with a new value", before: []string{`POST runs/set-tag {"run_id":"{run}","key":"k","value":"v"}`},
		request: `POST runs/set-tag {"run_id":"{run}","key":"k","value":"w"}`, want: ok},
	{name: "a tag without a value", request: `POST runs/set-tag {"run_id":"{run}","key":"k"}`, want: ok},
	{name: "a tag without a key", request: `POST runs/set-tag {"run_id":"{run}","value":"v"}`, want: badValue},
	{name: "a tag with an invalid key", request: `POST runs/set-tag {"run_id":"{run}","key":"a//b","value":"v"}`,
		want: badValue},
	{name: "a tag of a deleted run", request: `POST runs/set-tag {"run_id":"{gone}","key":"k","value":"v"}`,
		want: badValue},
	{name: "a tag without a run ID", request: `POST runs/set-tag {"key":"k","value":"v"}`, want: badValue},
	{name: "a tag value of 8000 characters",
		request: `POST runs/log-batch {"run_id":"{run}","tags":[{"key":"k","value":"{long:8000}"}]}`, want: ok},
	{name: "a tag value of 8001 characters",
		request: `POST runs/log-batch {"run_id":"{run}","tags":[{"key":"k","value":"{long:8001}"}]}`, want: ok},
	{name: "the tag with the run's name",
		request: `POST runs/log-batch {"run_id":"{run}","tags":[{"key":"mlflow.runName","value":"new"}]}`, want: ok},
	{name: "a tag twice in a batch",
		request: `POST runs/log-batch {"run_id":"{run}","tags":[{"key":"k","value":"v"},{"key":"k","value":"w"}]}`,
		want:    ok},
}

// five holds requests that log five points to a run.
var five = []string{
	`POST runs/log-batch {"run_id":"{run}","metrics":[{"key":"a/b.c","value":5,"timestamp":5,"step":1},` +
		`{"key":"a/b.c","value":4,"timestamp":4,"step":2},` +
		`{"key":"a/b.c","value":3,"timestamp":3,"step":3},{"key":"a/b.c","value":2,"timestamp":3,"step":4},` +
		`{"key":"a/b.c","value":1,"timestamp":3,"step":3}]}`}

const historyOf = "GET metrics/get-history?run_id={run}&metric_key=a%2Fb.c"

var historyRows = []row{
	{name: "a history", before: five, request: historyOf + "&max_results=10", want: ok},
	{name: "a page of a history", before: five, request: historyOf + "&max_results=2", want: ok, real2: ok, why: whole},
	{name: "the second page of a history", before: five,
		request: historyOf + "&max_results=2&page_token=eyJvZmZzZXQiOiAyfQ==", want: ok, real2: ok, why: whole},
	{name: "the last page of a history", before: five,
		request: historyOf + "&max_results=2&page_token=eyJvZmZzZXQiOiA0fQ==", want: ok, real2: ok, why: whole},
	{name: "a full page without a next page", before: five, request: historyOf + "&max_results=5", want: ok},
	{name: "a history without a page size", before: five, request: historyOf, want: ok, real3: ok, real2: ok,
		why: "3.10 responds with no points and a token, others with all points"},
	{name: "a history with an invalid token", before: five, request: historyOf + "&max_results=2&page_token=x",
		want: badValue, real2: ok, why: whole},
	{name: "a history with a negative page size", before: five, request: historyOf + "&max_results=-1", want: badValue,
		real2: ok, why: whole},
	{name: "the history of another key", before: five,
		request: "GET metrics/get-history?run_id={run}&metric_key=other&max_results=10", want: ok},
	{name: "a history without a key", request: "GET metrics/get-history?run_id={run}&max_results=10", want: badValue},
	{name: "the history of a deleted run",
		request: "GET metrics/get-history?run_id={gone}&metric_key=m&max_results=10", want: ok},
	{name: "a history without a run ID", request: "GET metrics/get-history?metric_key=m&max_results=10", want: badValue},
	{name: "the history of a run that does not exist",
		request: "GET metrics/get-history?run_id=0123456789abcdef0123456789abcdef&metric_key=m&max_results=10", want: ok},
}

// search returns a row that searches experiment 2, which has three runs.
func search(name, want, filter, more string) row {
	f, _ := json.Marshal(filter)
	return row{name: name, want: want,
		request: fmt.Sprintf(`POST runs/search {"experiment_ids":["2"],"filter":%s%s}`, f, more)}
}

const upwards = `,"order_by":["attributes.start_time ASC"]`

var searchRows = []row{
	{name: "three runs to search", request: `POST runs/create {"experiment_id":"2","run_name":"three","start_time":300,` +
		`"tags":[{"key":"perfagent.run_id","value":"x"}]}`, want: ok, before: []string{
		`POST runs/create {"experiment_id":"2","run_name":"one","start_time":100,"user_id":"u",` +
			`"tags":[{"key":"perfagent.run_id","value":"x"},{"key":"k","value":"it's"}]}`,
		`POST runs/create {"experiment_id":"2","run_name":"two","start_time":200,` +
			`"tags":[{"key":"perfagent.run_id","value":"y"}]}`}},
	search("all runs", ok, "", ""),
	search("all runs, earliest first", ok, "", upwards),
	search("a tag", ok, "tags.`perfagent.run_id` = 'x'", upwards),
	search("a tag that no run has", ok, "tags.`nowhere` = 'x'", upwards),
	search("a tag and a time", ok, "tags.`perfagent.run_id` = 'x' and attributes.start_time >= 200", upwards),
	search("a page of one", ok, "", upwards+`,"max_results":1`),
	search("the next page", ok, "", upwards+`,"max_results":1,"page_token":"eyJvZmZzZXQiOiAxfQ=="`),
	{name: "the last page", request: `POST runs/search {"experiment_ids":["2"]` + upwards +
		`,"max_results":1,"page_token":"eyJvZmZzZXQiOiAyfQ=="}`, want: ok,
		real3: ok, why: "2.x returns a token with a full page, even if the next page is empty"},
	search("a page after the last", ok, "", upwards+`,"max_results":1,"page_token":"eyJvZmZzZXQiOiAzfQ=="`),
	search("a page of 0", badValue, "", upwards+`,"max_results":0`),
	search("a page of 50000", ok, "", upwards+`,"max_results":50000`),
	search("a page of 50001", badValue, "", upwards+`,"max_results":50001`),
	search("an invalid token", badValue, "", upwards+`,"page_token":"x"`),
	{name: "search without experiments", request: `POST runs/search {}`, want: ok},
	{name: "search an experiment that does not exist", request: `POST runs/search {"experiment_ids":["999"]}`, want: ok},
	{name: "search an invalid experiment ID", request: `POST runs/search {"experiment_ids":["x"]}`, want: badValue, real2: ok,
		why: "like 3.x"},
}

var artifactRows = []row{
	{name: "a file", request: "PUT " + cAPI + "/1/{run}/artifacts/perfagent/node-0.json {}",
		kind: "application/json", want: ok},
	{name: "a file that exists", before: []string{"PUT " + cAPI + "/1/{run}/artifacts/a.json {}"},
		request: "PUT " + cAPI + "/1/{run}/artifacts/a.json []    ", want: ok},
	{name: "an empty file", request: "PUT " + cAPI + "/1/{run}/artifacts/empty ", want: ok},
	{name: "a file outside the run's folder", request: "PUT " + cAPI + "/1/{run}/../../x text", want: badValue},
	{name: "a file outside the run's folder, escaped", request: "PUT " + cAPI + "/1/{run}/%2e%2e/%2e%2e/x text", want: badValue},
	{name: "a file below another file", before: []string{"PUT " + cAPI + "/1/{run}/artifacts/a text"},
		request: "PUT " + cAPI + "/1/{run}/artifacts/a/b text", want: "500"},
	{name: "an upload", request: cUpload + "run_uuid={run}&path=perfagent/a.html text", want: ok},
	{name: "an empty upload", request: cUpload + "run_uuid={run}&path=a.html ", want: badValue},
	{name: "an upload without a path", request: cUpload + "run_uuid={run} text", want: badValue},
	{name: "an upload without a run ID", request: cUpload + "path=a.html text", want: badValue},
	{name: "an upload for a run that does not exist",
		request: cUpload + "run_uuid=0123456789abcdef0123456789abcdef&path=a.html text", want: noSuch},
	{name: "an upload outside the run's folder", request: cUpload + "run_uuid={run}&path=../a.html text", want: badValue},
	{name: "an upload of 10 MiB", request: cUpload + "run_uuid={run}&path=a.html {long:10485760}", want: ok},
}

var otherRows = []row{
	{name: "health", request: "GET /health", want: ok},
	{name: "version", request: "GET /version", want: ok},
	{name: "an unknown call", request: "POST runs/unknown {}", want: "404"},
	{name: "an unknown path", request: "GET /api/2.0/preview/mlflow/experiments/list", want: "404"},
	{name: "a wrong method", request: "GET runs/log-batch", want: "405"},
	{name: "a call of the browser's API", request: "GET /ajax-api/2.0/mlflow/runs/get?run_id={run}", want: ok},
	{name: "an upload of more than 10 MiB", request: cUpload + "run_uuid={run}&path=a.html {long:10485761}",
		want: badValue, cut: true},
}
