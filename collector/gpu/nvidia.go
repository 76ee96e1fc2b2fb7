package gpu

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/perfagent/perfagent/collector/series"
)

// maxLine is the maximum length of a line of nvidia-smi, in bytes. A row has about 150 bytes.
const maxLine = 4096

// A query is the list of requested fields, with the names from nvidia-smi --help-query-gpu. Drivers up to 610 have no
// field for NVML's energy counter, and each field unknown to nvidia-smi costs another start.
type query struct {
	fields  []string
	missing []series.Missing
}

// newQuery returns a query for all fields. Drivers from ten years ago have all fields except the MIG mode. Since driver
// 535, clocks_throttle_reasons is called clocks_event_reasons, but all drivers up to at least 610 accept the older
// name.
func newQuery() *query {
	return &query{fields: []string{
		"index", "uuid", "name", "memory.total", "memory.used", "utilization.gpu", "power.draw", "power.limit",
		"enforced.power.limit", "temperature.gpu", "clocks.sm", "mig.mode.current", "clocks_throttle_reasons.active",
	}}
}

// args returns the arguments that make nvidia-smi print a row for each device once per interval.
func (q *query) args(interval time.Duration) []string {
	return []string{
		"--query-gpu=" + strings.Join(q.fields, ","), "--format=csv,noheader,nounits",
		"--loop-ms=" + strconv.FormatInt(interval.Milliseconds(), 10),
	}
}

// dropField removes the field name, or replaces it with its newer name. It reports false if the field was not requested
// or is required: another query is then useless.
func (q *query) dropField(name string) bool {
	i := slices.Index(q.fields, name)
	if i < 0 || name == "index" {
		return false
	}
	if name == "clocks_throttle_reasons.active" {
		q.fields[i] = "clocks_event_reasons.active"
		return true
	}

	q.fields = slices.Delete(q.fields, i, i+1)
	var without row
	without.set(name, "") // one of the two power limits is enough, so neither is missing
	for _, m := range without.missing {
		m.What, m.Why = "gpu_"+m.What, "this nvidia-smi does not know the field "+name
		q.missing = append(q.missing, m)
	}
	return true
}

// parseInvalidField returns the field in 'Field "x" is not a valid field to query.', or "" for any other message.
func parseInvalidField(line string) string {
	_, rest, ok := strings.Cut(line, `Field "`)
	name, rest, ok2 := strings.Cut(rest, `"`)
	if !ok || !ok2 || !strings.Contains(rest, "not a valid field") {
		return ""
	}
	return name
}

var errNotRow = errors.New("not a row")

// parse parses line as a row. An invalid value is recorded as missing. The error is errNotRow if line is not a row.
func (q *query) parse(line []byte) (row, error) {
	none := series.Unknown()
	r := row{Device: Device{Index: -1, Vendor: "nvidia", MemoryMB: none, PowerLimitWatts: none}, State: unknownState()}
	limit, enforced := "", ""
	n := 0
	for value := range bytes.SplitSeq(line, []byte(",")) {
		if n == len(q.fields) {
			return row{}, errNotRow
		}
		text := string(bytes.TrimSpace(value))
		switch q.fields[n] {
		case "power.limit":
			limit = text
		case "enforced.power.limit":
			enforced = text
		default:
			r.set(q.fields[n], text)
		}
		n++
	}

	if n != len(q.fields) || r.Index < 0 {
		return row{}, errNotRow
	}

	if r.PowerLimitWatts = series.Optional(parseNumber(enforced, maxWatts)); !r.PowerLimitWatts.Known() {
		r.setNumber((*float64)(&r.PowerLimitWatts), "power_limit_watts", limit, maxWatts)
	}

	if r.MIG { // the utilization does not cover the whole device
		r.UtilizationPct = math.NaN()
		r.missing = slices.DeleteFunc(r.missing, func(g series.Missing) bool { return g.What == "utilization_pct" })
		r.addMissing("utilization_pct", "MIG is on: the driver reports no utilization of the whole device")
	}

	return r, nil
}

// Upper bounds that no GPU will exceed in the coming years.
const (
	maxMiB     = 1 << 26 // 64 TiB
	maxWatts   = 1e5
	maxCelsius = 250
	maxMHz     = 1e5
)

// set stores text, the value of field, in the row.
func (r *row) set(field, text string) {
	switch field {
	case "index":
		if n, err := strconv.ParseUint(text, 10, 10); err == nil {
			r.Index = int(n)
		}
	case "uuid":
		r.setText(&r.UUID, "uuid", text)
	case "name":
		r.setText(&r.Name, "name", text)
	case "memory.total":
		r.setNumber((*float64)(&r.MemoryMB), "memory_mb", text, maxMiB)
	case "memory.used":
		r.setNumber(&r.MemoryUsedMB, "memory_used_mb", text, maxMiB)
	case "utilization.gpu":
		r.setNumber(&r.UtilizationPct, "utilization_pct", text, 100)
	case "power.draw":
		r.setNumber(&r.PowerWatts, "power_watts", text, maxWatts)
	case "temperature.gpu":
		r.setNumber(&r.TemperatureCelsius, "temperature_celsius", text, maxCelsius)
	case "clocks.sm":
		r.setNumber(&r.ClockMHz, "clock_mhz", text, maxMHz)
	case "mig.mode.current":
		if r.MIG = text == "Enabled"; text == "" { // other values: "Disabled", or "[N/A]" for devices without MIG
			r.addMissing("mig", missingReason(text))
		}
	case "clocks_event_reasons.active", "clocks_throttle_reasons.active":
		var ok bool
		if r.Throttle, ok = parseThrottle(text); !ok {
			r.addMissing("throttle", missingReason(text))
		}
	}
}

// setText sets to to text or, if nvidia-smi has no value, records what as missing.
func (r *row) setText(to *string, what, text string) {
	if *to = deviceText(text); *to == "" {
		r.addMissing(what, missingReason(text))
	}
}

// setNumber sets to from text or, if text is not a number from 0 to most, records what as missing.
func (r *row) setNumber(to *float64, what, text string, most float64) {
	if *to = parseNumber(text, most); math.IsNaN(*to) {
		r.addMissing(what, missingReason(text))
	}
}

// parseNumber parses a decimal number in the range 0 to most. It returns NaN for anything else.
func parseNumber(text string, most float64) float64 {
	if text == "" || strings.Trim(text, "0123456789.") != "" { // no inf, no 0x, no sign
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v > most {
		return math.NaN()
	}
	return v
}

// deviceText returns text in a form that is fit for a report, or "" if nvidia-smi prints text for a missing value.
func deviceText(text string) string {
	if strings.HasPrefix(text, "[") || text == "N/A" {
		return ""
	}
	return clean(text)
}

// missingReason returns the reason why a value is missing. It quotes text, the output of nvidia-smi: "[N/A]", "[Not
// Supported]", "[Unknown Error]", "[GPU requires reset]"…
func missingReason(text string) string {
	if text == "" {
		return "nvidia-smi printed nothing"
	}
	return "nvidia-smi printed " + clean(text)
}

// clean makes the output of a program fit for a report: one line of at most 200 bytes without control characters.
func clean(text string) string {
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == '\uFFFD' { // control characters, and marks that change the direction of text
			return ' '
		}
		return c
	}, text))
}

// parseThrottle decodes NVML's nvmlClocksEventReasons bit mask. Bit 0 means that the GPU is idle, which is not
// throttling.
func parseThrottle(text string) (reasons []string, ok bool) {
	digits, ok := strings.CutPrefix(text, "0x")
	mask, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return nil, false
	}

	names := [...]string{
		1: "applications_clocks_setting", 2: "sw_power_cap", 3: "hw_slowdown", 4: "sync_boost",
		5: "sw_thermal_slowdown", 6: "hw_thermal_slowdown", 7: "hw_power_brake_slowdown", 8: "display_clock_setting",
	}

	for bit, name := range names {
		if name != "" && mask>>bit&1 == 1 {
			reasons = append(reasons, name)
		}
	}
	return reasons, true
}

// readLines calls use for each line that it reads. The line is valid only during the call. readLines truncates a line
// longer than maxLine, and drops an incomplete last line. After each read, it calls more with the number of bytes, and
// returns if more returns false.
func readLines(from io.Reader, use func(line []byte), more func(n int) bool) {
	in := bufio.NewReaderSize(from, maxLine)
	for long := false; ; {
		chunk, err := in.ReadSlice('\n')
		full := err == bufio.ErrBufferFull
		if !long && (full || err == nil) {
			use(bytes.TrimSuffix(chunk, []byte{'\n'}))
		}
		if err != nil && !full || !more(len(chunk)) {
			return
		}
		long = full
	}
}
