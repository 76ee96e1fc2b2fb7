package gpu

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/procfile"
)

// maxFile is the maximum size of a sysfs file, in bytes. The longest file, pp_dpm_sclk, has a few lines.
const maxFile = 4096

// A card is an AMD GPU in sysfs.
type card struct {
	dir   string // /sys/class/drm/card0/device
	index int    // position among the AMD cards
	name  string // "" = name, uuid and hwmon have not been read yet
	uuid  string
	hwmon string // directory of the card's sensors, relative to dir
}

// findCards returns the AMD cards, sorted by number, which is their order on the bus. It ignores connectors such as
// card0-DP-1, and renderD128, which is a second entry for a card.
func findCards(sys string) []card {
	root := filepath.Join(sys, "class/drm")
	entries, _ := os.ReadDir(root)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}

	var cards []card
	for _, n := range procfile.Numbered(names, "card") {
		dir := filepath.Join(root, "card"+strconv.Itoa(n), "device")
		if vendor, _ := readFile(filepath.Join(dir, "vendor")); string(bytes.TrimSpace(vendor)) == "0x1002" {
			cards = append(cards, card{dir: dir, index: len(cards)})
		}
	}
	return cards
}

// followCards reads the cards once per interval until ctx ends.
func (m *Monitor) followCards(ctx context.Context) {
	ticker := time.NewTicker(m.timing.interval)
	defer ticker.Stop()
	for {
		for i := range m.cards {
			r := m.cards[i].read() // not under the lock, because the driver may be slow
			m.mu.Lock()
			m.amd.put(r, time.Now())
			m.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// read reads the card's files (the kernel's Documentation/gpu/amdgpu, thermal.rst and driver-misc.rst). It never reads
// pcie_bw, because the driver takes a whole second to measure the value.
func (c *card) read() row {
	if c.name == "" {
		c.name, c.uuid, c.hwmon = c.findName(), c.findUUID(), c.findSensors()
	}
	r := row{Device: Device{Index: c.index, Vendor: "amd", Name: c.name, UUID: c.uuid}, State: unknownState()}
	r.MemoryMB = series.Optional(c.value(&r, "memory_mb", 1<<20, maxMiB, "mem_info_vram_total"))
	status, err := readFile(filepath.Join(c.dir, "power/runtime_status"))
	if err == nil && string(bytes.TrimSpace(status)) == "suspended" {
		// Do not read other files: some versions of the driver wake a sleeping card for a read.
		r.PowerLimitWatts = series.Unknown()
		asleep := []string{"utilization_pct", "memory_used_mb", "power_watts", "temperature_celsius", "clock_mhz"}
		for _, what := range asleep {
			r.addMissing(what, "the card is asleep (runtime power management)")
		}
		return r
	}

	r.UtilizationPct = c.value(&r, "utilization_pct", 1, 100, "gpu_busy_percent")
	r.MemoryUsedMB = c.value(&r, "memory_used_mb", 1<<20, maxMiB, "mem_info_vram_used")
	r.PowerWatts = c.value(&r, "power_watts", 1e6, maxWatts, c.hwmon+"power1_average", c.hwmon+"power1_input")
	r.PowerLimitWatts = series.Optional(c.value(&r, "power_limit_watts", 1e6, maxWatts, c.hwmon+"power1_cap"))
	r.TemperatureCelsius = c.value(&r, "temperature_celsius", 1e3, maxCelsius, c.hwmon+"temp1_input")
	if data, err := readFile(filepath.Join(c.dir, c.hwmon, "energy1_input")); err == nil { // few cards have this file
		r.EnergyJoules = parseNumber(string(bytes.TrimSpace(data)), math.MaxUint64) / 1e6
	}
	c.clock(&r)
	return r
}

// value returns the number in the first existing file of files, divided by unit. If the number cannot be read or
// exceeds most, value returns NaN and adds what to the missing values of r.
func (c *card) value(r *row, what string, unit, most float64, files ...string) float64 {
	var data []byte
	var err error
	for _, file := range files {
		if data, err = readFile(filepath.Join(c.dir, file)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}

	if err != nil {
		r.addMissing(what, err.Error())
		return math.NaN()
	}
	v := parseNumber(string(bytes.TrimSpace(data)), math.MaxUint64) / unit
	if math.IsNaN(v) || v > most {
		r.addMissing(what, filepath.Base(files[0])+" says "+clean(string(data)))
		return math.NaN()
	}
	return v
}

// clock sets the clock of r from the marked line of pp_dpm_sclk, "1: 1200Mhz *", or else from the sensor. The marked
// line is the current level, in which the driver shows the actual clock instead of the nominal one.
func (c *card) clock(r *row) {
	data, err := readFile(filepath.Join(c.dir, "pp_dpm_sclk"))
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if err == nil && len(f) == 3 && f[2] == "*" && len(f[1]) > 3 && strings.EqualFold(f[1][len(f[1])-3:], "MHz") {
			if r.ClockMHz = parseNumber(f[1][:len(f[1])-3], maxMHz); !math.IsNaN(r.ClockMHz) {
				return
			}
		}
	}
	r.ClockMHz = c.value(r, "clock_mhz", 1e6, maxMHz, c.hwmon+"freq1_input")
}

// findSensors returns the directory of the card's sensors, with a trailing slash.
func (c *card) findSensors() string {
	entries, _ := os.ReadDir(filepath.Join(c.dir, "hwmon"))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "hwmon") {
			return "hwmon/" + e.Name() + "/"
		}
	}
	return "hwmon/hwmon0/" // appears in the reasons for missing values
}

// findName returns the product name. Only some boards have one; for others it returns "AMD GPU" and the PCI device ID.
func (c *card) findName() string {
	if data, err := readFile(filepath.Join(c.dir, "product_name")); err == nil {
		if name := deviceText(string(bytes.TrimSpace(data))); name != "" {
			return name
		}
	}
	id, _ := readFile(filepath.Join(c.dir, "device"))
	return strings.TrimSpace("AMD GPU " + clean(string(id)))
}

// findUUID returns the card's UUID in the format of ROCm's tools and ROCR_VISIBLE_DEVICES, or "" if it has none.
func (c *card) findUUID() string {
	data, err := readFile(filepath.Join(c.dir, "unique_id"))
	id := string(bytes.TrimSpace(data))
	if err != nil || id == "" || len(id) > 32 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return ""
	}
	return "GPU-" + id
}

// readFile reads the kernel file at path, of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	var b procfile.Buffer
	return b.Read(path, maxFile)
}
