package host

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// maxZones is the largest number of energy counters that are read. There are two per package.
const maxZones = 64

// An energyReader reads the CPUs' energy counters (RAPL) in /sys/class/powercap that are named package and dram. The
// package counter includes the core and uncore counters, and the platform counter (psys) includes the packages.
type energyReader struct {
	timer pollTimer
	zones []energyZone
	last  *Energy
}

// An energyZone is an EnergyZone and its file.
type energyZone struct {
	EnergyZone
	path string
}

func (e *energyReader) read(r *Reader, at time.Duration) (*Energy, error) {
	if !e.timer.due(at, r.job.closing) {
		if e.last == nil {
			return nil, nil
		}
		stale := *e.last
		stale.Stale = true
		return &stale, nil
	}

	if len(e.zones) == 0 {
		if missing := e.findZones(r.sys); missing.Code != "" {
			r.optional.missing = append(r.optional.missing, missing)
		}
	}
	e.timer.done(at, 0, len(e.zones) > 0)
	if len(e.zones) == 0 {
		return nil, nil
	}

	out := &Energy{At: r.now().Mono, Zones: make([]EnergyZone, 0, len(e.zones))}
	var errs []error
	for _, z := range e.zones {
		n, err := r.count(z.path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		z.MicroJoules = n
		out.Zones = append(out.Zones, z.EnergyZone)
	}
	e.last = out
	err := errors.Join(errs...)
	if isGone(err) { // the files of a reloaded driver differ
		e.zones = nil
	}
	return out, err
}

// findZones finds the counters. Since CVE-2020-8694, only root may read them. If this user may not, missing has the
// reason.
func (e *energyReader) findZones(sys string) (missing series.Missing) {
	class := filepath.Join(sys, "class", "powercap")
	for _, name := range readNames(class) {
		dir := filepath.Join(class, name)
		if !strings.HasPrefix(name, "intel-rapl:") || len(e.zones) == maxZones {
			continue
		}
		if part := readWord(filepath.Join(dir, "name")); part != "dram" && !strings.HasPrefix(part, "package-") {
			continue
		}
		path := filepath.Join(dir, "energy_uj")
		switch err := checkOpen(path); {
		case isForbidden(err):
			missing = series.Missing{What: SourceEnergy, Code: RootOnly,
				Why: path + ": only root may read the energy counters"}
		case err == nil:
			span, _ := readCount(filepath.Join(dir, "max_energy_range_uj"))
			e.zones = append(e.zones, energyZone{EnergyZone{Name: name, Range: span}, path})
		}
	}
	return missing
}
