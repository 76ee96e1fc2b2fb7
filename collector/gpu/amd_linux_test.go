package gpu

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// gpuTree writes files below /sys/class/drm of a temporary /sys, and returns the path of that /sys.
func gpuTree(t *testing.T, files map[string]string) string {
	t.Helper()
	sys := t.TempDir()
	for name, text := range files {
		collectortest.Write(t, filepath.Join(sys, "class/drm"), name, []byte(text))
	}
	return sys
}

// gpuCards returns the files of a node with three AMD cards: an accelerator, a desktop card and a sleeping card. The
// other entries are ignored: an Intel card, connectors and render nodes.
func gpuCards() map[string]string {
	return map[string]string{
		"card0/device/vendor": "0x8086\n", "card1-DP-1/status": "connected\n", "card1-DP-1/device/vendor": "0x1002\n",
		"renderD128/device/vendor": "0x1002\n", "version": "drm 1.1.0 20060810\n",

		"card1/device/vendor": "0x1002\n", "card1/device/device": "0x740f\n", "card1/device/product_name": "AMD Instinct MI210\n",
		"card1/device/unique_id": "5bd9b8a2f1c3e471\n", "card1/device/gpu_busy_percent": "87\n",
		"card1/device/mem_info_vram_total": "68702699520\n", "card1/device/mem_info_vram_used": "34359738368\n",
		"card1/device/pp_dpm_sclk":                 "0: 500Mhz\n1: 800Mhz\n2: 1700Mhz *\n",
		"card1/device/hwmon/hwmon7/name":           "amdgpu\n",
		"card1/device/hwmon/hwmon7/power1_average": "212000000\n", "card1/device/hwmon/hwmon7/power1_cap": "300000000\n",
		"card1/device/hwmon/hwmon7/temp1_input": "54000\n", "card1/device/hwmon/hwmon7/energy1_input": "123456789\n",

		"card10/device/vendor": "0x1002\n", "card10/device/device": "0x744c\n", "card10/device/gpu_busy_percent": "3\n",
		"card10/device/mem_info_vram_total": "25753026560\n", "card10/device/mem_info_vram_used": "nonsense\n",
		"card10/device/hwmon/hwmon3/power1_input": "23000000\n", "card10/device/hwmon/hwmon3/freq1_input": "1155000000\n",
		"card10/device/hwmon/hwmon3/temp1_input": "-1000\n", "card10/device/pp_dpm_sclk": "0: 500Mhz *",

		"card2/device/vendor": "0x1002\n", "card2/device/device": "0x7480\n", "card2/device/power/runtime_status": "suspended\n",
		"card2/device/gpu_busy_percent": "0\n", "card2/device/mem_info_vram_total": "8573157376\n",
	}
}

func TestMonitor_ReadsAMDCards(t *testing.T) {
	files := gpuCards()
	files["card10/device/pp_dpm_sclk"] = strings.Repeat("0: 500Mhz\n", 1000) + "1: 900Mhz *\n" // too long: use the sensor
	sys := gpuTree(t, files)
	fifo := filepath.Join(sys, "class/drm/card1/device/pcie_bw") // the test detects an open for reading
	must(t, syscall.Mkfifo(fifo, 0o644))
	m := Open(Options{Sys: sys, Env: []string{"PATH=/nowhere"}})
	gpuRun(t, m)
	r := gpuWait(t, m, "three cards", gpuDevices(3))
	text := strings.ReplaceAll(string(gpuDump(r)), sys, "/sys")
	gpuGolden(t, "testdata/amd.golden", []byte(text))
	if _, err := syscall.Open(fifo, syscall.O_WRONLY|syscall.O_NONBLOCK, 0); err != syscall.ENXIO {
		t.Errorf("open of pcie_bw for writing: %v, want ENXIO: the Monitor must not open it for reading", err)
	}
}

// AMD devices are numbered after NVIDIA devices, and not shown before the first number is known.
func TestMonitor_NumbersAMDAfterNVIDIA(t *testing.T) {
	m := Open(Options{Sys: gpuTree(t, gpuCards()), Env: gpuEnv(t, "a100x8.txt", "")})
	for i := range m.cards {
		m.amd.put(m.cards[i].read(), time.Now())
	}
	if r := m.Read(); len(r.Devices) != 0 {
		t.Errorf("Reading before NVIDIA's devices are known = %s, want no devices", gpuDump(r))
	}
	gpuRun(t, m)
	r := gpuWait(t, m, "all devices", gpuDevices(11))
	if d := r.Devices[8]; d.Index != 8 || d.Vendor != "amd" || d.Name != "AMD Instinct MI210" || r.States[8].UtilizationPct != 87 {
		t.Errorf("device 8 = %+v at %v %%, want the MI210 at 87 %%", d, r.States[8].UtilizationPct)
	}

	for _, g := range r.Missing {
		check.True(t, strings.HasPrefix(g.What, "gpu_8_") || strings.HasPrefix(g.What, "gpu_9_") || strings.HasPrefix(g.What, "gpu_10_"),
			"missing = %v, want only values of AMD's devices 8 to 10", g)
	}

	m = Open(Options{Sys: gpuTree(t, gpuCards()), Env: gpuEnv(t, "nodriver.txt", "")})
	gpuRun(t, m)
	r = gpuWait(t, m, "AMD's alone", func(r Reading) bool { return len(r.Devices) == 3 })
	check.True(t, r.Devices[0].Index == 0 && r.Err != nil && !math.IsNaN(r.States[0].UtilizationPct),
		"Reading without nvidia-smi = %s, want AMD devices from index 0, and an error", gpuDump(r))
}

func TestCard_RejectsMaliciousFiles(t *testing.T) {
	huge := strings.Repeat("9", 100_000)
	for _, text := range []string{"", "\n", "-5\n", "nan", "inf\n", huge, "\x00\xff", "0x10", "1e9", "18446744073709551616\n"} {
		files := map[string]string{"card0/device/vendor": "0x1002"}
		for _, f := range []string{"gpu_busy_percent", "mem_info_vram_total", "mem_info_vram_used", "pp_dpm_sclk", "unique_id", "device",
			"product_name", "hwmon/hwmon0/power1_average", "hwmon/hwmon0/power1_cap", "hwmon/hwmon0/temp1_input", "hwmon/hwmon0/energy1_input"} {
			files["card0/device/"+f] = text
		}
		cards := findCards(gpuTree(t, files))
		if len(cards) != 1 {
			t.Fatalf("files with content %.20q: cards = %v, want 1", text, cards)
		}
		r := cards[0].read()
		for _, v := range []float64{r.UtilizationPct, float64(r.MemoryMB), r.MemoryUsedMB, r.PowerWatts, r.TemperatureCelsius, r.ClockMHz, float64(r.PowerLimitWatts)} {
			check.True(t, math.IsNaN(v), "files with content %.20q: value %v in %+v, want NaN", text, v, r)
		}
		check.True(t, len(r.missing) >= 7 && len(r.Name) <= 300,
			"files with content %.20q: row = %+v, want at least 7 missing values and a name of at most 300 bytes", text, r)
	}
}

func FuzzGPUCard(f *testing.F) {
	f.Add([]byte("0: 500Mhz\n1: 800Mhz *\n"))
	f.Add([]byte("87\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for _, name := range []string{"pp_dpm_sclk", "gpu_busy_percent", "unique_id", "product_name"} {
			must(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		c := card{dir: dir}
		r := c.read()
		if r.ClockMHz < 0 || r.ClockMHz > maxMHz || r.UtilizationPct < 0 || r.UtilizationPct > 100 {
			t.Fatalf("row = %+v, want a clock and a utilization within bounds", r)
		}
	})
}
