package host

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// zonesOf returns the zones of e, or nil if e is nil.
func zonesOf(e *Energy) []EnergyZone {
	if e == nil {
		return nil
	}
	return e.Zones
}

func TestReader_ReadsEnergyOfPackagesAndMemory(t *testing.T) {
	const span = 262143328850
	for name, want := range map[string][]EnergyZone{
		"intel": {{"intel-rapl:0", 240422366267, span}}, // the package includes the cores
		"intel-four": {
			{"intel-rapl:0", 100000000000, span}, {"intel-rapl:0:0", 37871987688, 65712999613},
			{"intel-rapl:1", 101000000000, span}, {"intel-rapl:1:0", 16813759539, 65712999613},
			{"intel-rapl:2", 102000000000, span}, {"intel-rapl:2:0", 31533870934, 65712999613},
			{"intel-rapl:3", 103000000000, span}, {"intel-rapl:3:0", 23087939276, 65712999613}},
		"amd": nil,
	} {
		h := openOptional(t, name)
		r := h.begin()
		same(t, name, zonesOf(r.Energy), want)
		err := failedOptional(r)
		check.True(t, err == nil && r.Missing == nil, "%s: failure = %v, missing = %v; want neither", name, err, r.Missing)
	}
}

func TestReader_ReadsEnergyAtItsInterval(t *testing.T) {
	h := openOptional(t, "intel")
	file := filepath.Join(h.sys, "class/powercap/intel-rapl:0/energy_uj")
	h.begin()
	write(t, filepath.Dir(file), "energy_uj", []byte("240422366268\n"))
	r := h.after(time.Millisecond)
	same(t, "energy after 1 ms", []any{r.Energy.Stale, zonesOf(r.Energy)[0].MicroJoules}, []any{true, uint64(240422366267)})
	r = h.after(time.Second)
	same(t, "energy a second later", []any{r.Energy.Stale, zonesOf(r.Energy)[0].MicroJoules, r.Energy.At},
		[]any{false, uint64(240422366268), r.At.Mono})
	write(t, filepath.Dir(file), "energy_uj", []byte("lots\n"))
	r = h.after(time.Second)
	wantError(t, "energy", r.Failed[SourceEnergy], `energy_uj: "lots\n" is not a count`)
	same(t, "zones of a damaged file", zonesOf(r.Energy), []EnergyZone{})
	write(t, filepath.Dir(file), "energy_uj", []byte("240422366270\n"))
	same(t, "energy in the last Reading", zonesOf(h.Final().Energy)[0].MicroJoules, uint64(240422366270))
}

// A Reader may be used again after Close. A second Close leaves no file open either.
func TestReader_CloseClosesFilesOfOptionalDevices(t *testing.T) {
	before := len(openFiles(t))
	h := openOptional(t, "intel")
	h.begin()
	h.after(2 * time.Second)
	h.Close()
	same(t, "open files", len(openFiles(t)), before)
	same(t, "temperature after Close", h.after(time.Minute).Thermal.Celsius, 55.)
}

func TestReader_ReadsTemperatureAndThrottling(t *testing.T) {
	for name, want := range map[string]*Thermal{
		"intel": {Celsius: 55, Throttles: []ThrottleCounter{{Name: "package 0", Events: 30}, {Name: "package 1", Events: 6},
			{Name: "core of CPU 0", Events: 5}, {Name: "core of CPU 1"}, {Name: "core of CPU 2"}, {Name: "core of CPU 3", Events: 9}}},
		"amd":     {Celsius: 64.5, Throttles: []ThrottleCounter{}},
		"nfs-4.1": nil,
	} {
		h := openOptional(t, name)
		h.begin()
		same(t, name+", within the first second", h.after(999*time.Millisecond).Thermal, (*Thermal)(nil))
		r := h.after(time.Millisecond)
		same(t, name, r.Thermal, want)
		err := failedOptional(r)
		check.True(t, err == nil, "%s: failure = %v, want none", name, err)
	}
}

func TestReader_ReadsThermalAtItsInterval(t *testing.T) {
	h := openOptional(t, "intel")
	h.begin()
	h.after(time.Second)
	write(t, h.sys, "class/hwmon/hwmon1/temp1_input", []byte("71000\n"))
	write(t, h.sys, "devices/system/cpu/cpu2/thermal_throttle/package_throttle_count", []byte("8\n"))
	write(t, h.sys, "devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", []byte("10\n"))
	same(t, "Thermal after 4 s", h.after(4*time.Second).Thermal, &Thermal{Celsius: 55})
	packages := []ThrottleCounter{{Name: "package 0", Events: 30}, {Name: "package 1", Events: 8}}
	same(t, "Thermal after 5 s", h.after(time.Second).Thermal, &Thermal{Celsius: 71, Throttles: packages})
	same(t, "Thermal after 6 s", h.after(time.Second).Thermal, &Thermal{Celsius: 71})

	cores := []ThrottleCounter{{Name: "core of CPU 0", Events: 5}, {Name: "core of CPU 1"}, {Name: "core of CPU 2"}, {Name: "core of CPU 3", Events: 10}}
	whole := &Thermal{Celsius: 71, Throttles: append(packages, cores...)}
	same(t, "Thermal after a minute", h.after(time.Minute).Thermal, whole)
	same(t, "Thermal in the last Reading", h.Final().Thermal, whole)
}

// The threads of a core count as one core, and the threads of a package as one package. Newer kernels also count the
// time.
func TestReader_CountsThrottlingOncePerCore(t *testing.T) {
	h := openOptional(t, "nfs-4.1")
	cpu := func(n string, files map[string]string) {
		for name, text := range files {
			write(t, h.sys, "devices/system/cpu/cpu"+n+"/"+name, []byte(text+"\n"))
		}
	}
	for n, core := range map[string]string{"0": "0,4", "4": "0,4", "2": "2,6", "6": "2,6"} {
		cpu(n, map[string]string{"topology/physical_package_id": "0", "topology/core_siblings_list": "0,2,4,6", "topology/thread_siblings_list": core,
			"thermal_throttle/package_throttle_count": "7", "thermal_throttle/package_throttle_total_time_ms": "1500",
			"thermal_throttle/core_throttle_count": n, "thermal_throttle/core_throttle_total_time_ms": n + "00"})
	}
	for n, core := range map[string]string{"1": "1,9-2047", "3": "nonsense"} {
		cpu(n, map[string]string{"topology/physical_package_id": "1", "topology/core_siblings_list": "1,3", "topology/thread_siblings_list": core,
			"thermal_throttle/package_throttle_count": "9", "thermal_throttle/core_throttle_count": n})
	}
	h.begin()
	same(t, "throttles", h.after(time.Second).Thermal.Throttles, []ThrottleCounter{
		{"package 0", 7, 1500, true}, {"package 1", 9, 0, false},
		{"core of CPU 0", 0, 0, true}, {"core of CPU 1", 1, 0, false}, {"core of CPU 2", 2, 200, true}, {"core of CPU 3", 3, 0, false},
	})
}

func TestReader_DamagedSensorIsUnknown(t *testing.T) {
	h := openOptional(t, "intel")
	h.begin()
	h.after(time.Second)
	write(t, h.sys, "class/hwmon/hwmon0/temp1_input", []byte("-3000\n"))
	write(t, h.sys, "class/hwmon/hwmon1/temp1_input", []byte("999000\n"))
	write(t, h.sys, "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", []byte("\n"))
	r := h.after(5 * time.Second)
	check.True(t, math.IsNaN(r.Thermal.Celsius), "temperature of a damaged sensor = %v °C, want NaN", r.Thermal.Celsius)
	same(t, "throttles", r.Thermal.Throttles, []ThrottleCounter{{Name: "package 1", Events: 6}})
	wantError(t, "thermal", r.Failed[SourceThermal], `"-3000\n" is not a count`, `package_throttle_count: "\n" is not a count`)
}

// If no driver provides a sensor, the kernel's thermal zones are used.
func TestReader_FallsBackToThermalZones(t *testing.T) {
	h := openOptional(t, "nfs-4.1")
	write(t, h.sys, "class/thermal/thermal_zone0/type", []byte("acpitz\n"))
	write(t, h.sys, "class/thermal/thermal_zone0/temp", []byte("99000\n"))
	write(t, h.sys, "class/thermal/thermal_zone1/type", []byte("x86_pkg_temp\n"))
	write(t, h.sys, "class/thermal/thermal_zone1/temp", []byte("48000\n"))
	h.begin()
	same(t, "temperature", h.after(time.Second).Thermal.Celsius, 48.)
}
