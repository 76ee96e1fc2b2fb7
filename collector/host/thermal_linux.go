package host

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// thermalInterval is the interval at which the sensors and the packages' counters are read. They change slowly, and
	// reading them wakes a sleeping CPU.
	thermalInterval = 5 * time.Second
	// coreThrottleInterval is the interval at which the cores' counters are read. A host may have hundreds of them.
	coreThrottleInterval = time.Minute
	// thermalDelay is the time from the start of a run to the first search for sensors.
	thermalDelay = time.Second

	maxCelsius = 150
	maxSensors = 64
	maxCores   = 1024
	maxCPUs    = 1 << 16
)

// A thermalReader reads the temperatures of CPU packages and how often packages and cores were throttled.
type thermalReader struct {
	looked   time.Duration // when sensors and counters were last searched for; 0 = never
	sensors  []string      // files
	packages []throttleFiles
	cores    []throttleFiles
	at       time.Duration // when the sensors were last read; 0 = never
	coresAt  time.Duration // when the cores' counters were last read
	last     *Thermal      // without Throttles
}

// throttleFiles are the files with the counters of a package or core. time is "" if the kernel lacks that file.
type throttleFiles struct{ name, events, time string }

func (h *thermalReader) isPresent() bool { return len(h.sensors)+len(h.packages)+len(h.cores) > 0 }

func (h *thermalReader) read(r *Reader, at time.Duration) (*Thermal, error) {
	if at-r.vmBegun < thermalDelay {
		return nil, nil
	}
	if !h.isPresent() && (h.looked == 0 || at-h.looked >= rescanInterval) {
		h.sensors = lookForSensors(r.sys)
		h.lookForThrottles(r.sys)
		h.looked = at
	}
	switch {
	case !h.isPresent():
		return nil, nil
	case h.at != 0 && at-h.at < thermalInterval && !r.job.closing:
		return h.last, nil
	}

	h.at = at
	celsius, err := h.celsius(r)
	throttles, errThrottles := h.throttles(r, at)
	if err = errors.Join(err, errThrottles); isGone(err) { // the files of a CPU that went offline and returned differ
		h.sensors, h.packages, h.cores, h.looked = nil, nil, nil, at
	}
	h.last = &Thermal{Celsius: celsius}
	return &Thermal{Celsius: celsius, Throttles: throttles}, err
}

// celsius returns the temperature of the hottest package; NaN if unknown.
func (h *thermalReader) celsius(r *Reader) (hottest float64, err error) {
	hottest = math.NaN()
	var errs []error
	for _, path := range h.sensors {
		n, err := r.count(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if c := float64(n) / 1000; c > 0 && c <= maxCelsius && !(hottest >= c) {
			hottest = c
		}
	}
	return hottest, errors.Join(errs...)
}

// throttles reads the counters of the packages and, when due, of the cores.
func (h *thermalReader) throttles(r *Reader, at time.Duration) ([]ThrottleCounter, error) {
	out := make([]ThrottleCounter, 0, len(h.packages))
	var errs []error
	for _, p := range h.packages {
		if t, err := p.read(r.count); err == nil {
			out = append(out, t)
		} else {
			errs = append(errs, err)
		}
	}

	if h.coresAt == 0 || at-h.coresAt >= coreThrottleInterval || r.job.closing {
		h.coresAt = at
		for _, c := range h.cores {
			if t, err := c.read(readCount); err == nil { // otherwise, the core is offline
				out = append(out, t)
			}
		}
	}
	return out, errors.Join(errs...)
}

// read reads the counters. It reads each file with count.
func (f *throttleFiles) read(count func(path string) (uint64, error)) (ThrottleCounter, error) {
	t := ThrottleCounter{Name: f.name, Timed: f.time != ""}
	var err, errTime error
	t.Events, err = count(f.events)
	if t.Timed {
		t.Millis, errTime = count(f.time)
	}
	return t, errors.Join(err, errTime)
}

// lookForSensors returns the files of the sensors of CPU packages. They belong to Intel's and AMD's hwmon drivers or,
// without these drivers, to the kernel's thermal zones.
func lookForSensors(sys string) (files []string) {
	add := func(path string) {
		if len(files) < maxSensors && checkOpen(path) == nil {
			files = append(files, path)
		}
	}

	class := filepath.Join(sys, "class", "hwmon")
	for _, name := range readNames(class) {
		dir := filepath.Join(class, name)
		switch readWord(filepath.Join(dir, "name")) {
		case "coretemp": // the package comes first, then the cores
			label := readWord(filepath.Join(dir, "temp1_label"))
			if strings.HasPrefix(label, "Package id") || strings.HasPrefix(label, "Physical id") {
				add(filepath.Join(dir, "temp1_input"))
			}
		case "k10temp", "zenpower": // prefer Tdie: Tctl controls the fans, and is too high on some models
			sensor := "temp1_input"
			if readWord(filepath.Join(dir, "temp2_label")) == "Tdie" {
				sensor = "temp2_input"
			}
			add(filepath.Join(dir, sensor))
		}
	}
	if len(files) > 0 {
		return files
	}

	class = filepath.Join(sys, "class", "thermal")
	for _, name := range readNames(class) {
		if readWord(filepath.Join(class, name, "type")) == "x86_pkg_temp" {
			add(filepath.Join(class, name, "temp"))
		}
	}
	return files
}

// lookForThrottles finds the counters of packages and cores. Every CPU of a package has the package's counter, and
// every thread of a core has the core's counter, so it uses the files of the first CPU.
func (h *thermalReader) lookForThrottles(sys string) {
	cpus := filepath.Join(sys, "devices", "system", "cpu")
	if !exists(filepath.Join(cpus, "cpu0", "thermal_throttle")) {
		return
	}

	inPackage, inCore := map[int]bool{}, map[int]bool{} // CPUs of packages and cores already found
	for _, n := range procfile.Numbered(readNames(cpus), "cpu") {
		dir := filepath.Join(cpus, "cpu"+strconv.Itoa(n))
		counters := filepath.Join(dir, "thermal_throttle")
		if !inPackage[n] {
			name := "package " + readWord(filepath.Join(dir, "topology", "physical_package_id"))
			known := func(f throttleFiles) bool { return f.name == name }
			if !slices.ContainsFunc(h.packages, known) { // true if the kernel does not list the CPUs of a package
				h.packages = appendThrottle(h.packages, name, filepath.Join(counters, "package"))
			}
			markCPUs(inPackage, n, readWord(filepath.Join(dir, "topology", "core_siblings_list")))
		}
		if !inCore[n] && len(h.cores) < maxCores {
			h.cores = appendThrottle(h.cores, "core of CPU "+strconv.Itoa(n), filepath.Join(counters, "core"))
			markCPUs(inCore, n, readWord(filepath.Join(dir, "topology", "thread_siblings_list")))
		}
	}
}

// appendThrottle appends the counters in the files with names that begin with path, if there are any.
func appendThrottle(list []throttleFiles, name, path string) []throttleFiles {
	f := throttleFiles{name: name, events: path + "_throttle_count"}
	if checkOpen(f.events) != nil {
		return list
	}
	if time := path + "_throttle_total_time_ms"; checkOpen(time) == nil {
		f.time = time
	}
	return append(list, f)
}

// markCPUs marks cpu and all CPUs in list, such as "0-3,64-67", as seen.
func markCPUs(seen map[int]bool, cpu int, list string) {
	seen[cpu] = true
	for rest := []byte(list); len(rest) > 0; {
		var first, last uint64
		var ok bool
		if first, last, rest, ok = procfile.CutRange(rest); !ok || last >= maxCPUs {
			return
		}
		for n := first; n <= last; n++ {
			seen[int(n)] = true
		}
	}
}
