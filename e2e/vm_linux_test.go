//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// vmTrial is a command that the virtual machine runs in a control group. testdata/guest has the same type.
type vmTrial struct {
	Name   string    `json:"name"`
	Groups []vmGroup `json:"groups"`
	In     string    `json:"in"`
	Args   []string  `json:"args"`
	Watch  []string  `json:"watch"`

	check func(t *testing.T, r *vmResult)
}

// vmGroup is a control group to create, with the contents to write to its files.
type vmGroup struct {
	Path  string      `json:"path"`
	Files [][2]string `json:"files"`
}

// vmResult is the result of a trial in the virtual machine.
type vmResult struct {
	Name   string            `json:"name"`
	Error  string            `json:"error"`
	Code   int               `json:"code"`
	Out    string            `json:"out"`
	Err    string            `json:"err"`
	Report string            `json:"report"`
	Before map[string]string `json:"before"`
	After  map[string]string `json:"after"`
	Took   float64           `json:"took"`

	node *reporter.Node
	run  reporter.Run
}

// vmLongest is the time limit of the virtual machine, which is slow because its CPU is emulated.
const vmLongest = 15 * time.Minute

// With a real kernel that has control groups v2 and all controllers, in a machine emulated by qemu, the report's
// numbers for the job equal the kernel's.
func TestVM_ControlGroupsV2(t *testing.T) {
	t.Parallel()
	trials := vmTrials()
	results := vmBoot(t, trials)
	for _, trial := range trials {
		t.Run(trial.Name, func(t *testing.T) {
			r := results[trial.Name]
			if r == nil {
				t.Fatal("virtual machine returned no result for this trial")
			}
			t.Logf("%.1f s in the machine", r.Took)
			if r.Error != "" {
				t.Fatalf("trial failed: %s; exit code %d, stderr: %s, groups: %v", r.Error, r.Code, r.Err, r.After)
			}
			report := reportertest.ReadFile(t, clitest.Write(t, filepath.Join(t.TempDir(), "report.json"), r.Report, 0o600))
			r.node, r.run = report.Nodes["0"], report.Run
			trial.check(t, r)
			if t.Failed() {
				t.Logf("exit code %d\nstdout: %s\nstderr: %s\nbefore: %v\nafter: %v\nreport: %s", r.Code, r.Out, r.Err, r.Before, r.After, r.Report)
			}
		})
	}
}

// vmBoot runs the trials in a virtual machine.
func vmBoot(t *testing.T, trials []vmTrial) map[string]*vmResult {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the virtual machine needs amd64: run the tests on amd64")
	}
	qemu := testenv.NeedsTool(t, "qemu-system-x86_64", "apt-get install qemu-system-x86 (make e2e does it as root)")
	kernel, modules := vmKernel(t)
	initrd := vmInitrd(t, filepath.Join(t.TempDir(), "initrd"), modules, trials)
	for try := 1; ; try++ {
		results, serial, err := vmTry(t, qemu, kernel, initrd)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && try == 1:
			// The first process of the machine ends each trial after some minutes, so the emulated machine itself must have
			// stalled.
			t.Logf("the machine stalled, and is booted once more; console:\n%s", serial)
		case err == nil && vmAgentKilled(results) != "" && try == 1:
			t.Logf("%s: the kernel killed perfagent, too; the machine is booted once more", vmAgentKilled(results))
		case err != nil || !bytes.Contains(serial, []byte("guest: PASSED")):
			t.Errorf("qemu: error %v; want \"guest: PASSED\" on the console:\n%s", err, serial)
			return results
		default:
			if bytes.Contains(serial, []byte("is not over after")) {
				t.Logf("console of the machine:\n%s", serial)
			}
			return results
		}
	}
}

// vmAgentKilled returns the name of a trial in which the kernel killed perfagent after the job's process. This happens
// if the process does not free its memory within a second, which is possible on an emulated CPU with too little time;
// see docs/wrapping.md.
func vmAgentKilled(results map[string]*vmResult) string {
	for name, r := range results {
		if r.Code >= 0 {
			continue
		}
		for file, text := range r.After {
			if strings.HasSuffix(file, "memory.events") && strings.Contains(text, "\noom_kill 2\n") {
				return name
			}
		}
	}
	return ""
}

// vmTry boots the machine with new disks. If the context stopped the machine, vmTry returns the context's error.
func vmTry(t *testing.T, qemu, kernel, initrd string) (results map[string]*vmResult, serial []byte, err error) {
	t.Helper()
	dir := t.TempDir()
	disks := []string{filepath.Join(dir, "a.img"), filepath.Join(dir, "b.img")}
	for _, disk := range disks {
		clitest.Write(t, disk, "", 0o600)
		if err := os.Truncate(disk, 64<<20); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), vmLongest)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, "-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "768", "-smp", "2",
		"-object", "memory-backend-ram,id=m0,size=640M", "-numa", "node,cpus=0-1,memdev=m0",
		"-object", "memory-backend-ram,id=m1,size=128M", "-numa", "node,memdev=m1",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 panic=-1 quiet",
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-drive", "file="+disks[0]+",format=raw,if=virtio,cache=unsafe", "-drive", "file="+disks[1]+",format=raw,if=virtio,cache=unsafe")
	start := time.Now()
	serial, err = cmd.CombinedOutput()
	t.Logf("the machine ran for %.1f s", time.Since(start).Seconds())
	return vmResults(t, disks[1]), serial, cmp.Or(ctx.Err(), err)
}

// vmKernel returns the kernel that scripts/test-tools.sh has unpacked.
func vmKernel(t *testing.T) (kernel, modules string) {
	t.Helper()
	kernels, _ := filepath.Glob(testenv.Repository(t, ".tools/kernel/boot/vmlinuz-*"))
	if len(kernels) != 1 {
		testenv.SkipOrFail(t, "the kernel for the virtual machine is missing: make e2e fetches it into .tools/kernel with apt-get download, as root on Debian")
	}
	version := strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")
	return kernels[0], testenv.Repository(t, ".tools/kernel/lib/modules/"+version+"/kernel/drivers")
}

// vmInitrd writes all files of the machine into a cpio archive.
func vmInitrd(t *testing.T, path, modules string, trials []vmTrial) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := json.Marshal(trials)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	vmArchive(w, "mod", 0o040755, nil)
	vmArchive(w, "bin", 0o040755, nil)
	vmArchive(w, "bin/sh", 0o120777, []byte("busybox"))
	vmArchive(w, "trials.json", 0o100644, list)
	for name, from := range map[string]string{"init": guest(t), "bin/perfagent": clitest.Binary(t), "bin/busybox": busybox(t)} {
		vmArchive(w, name, 0o100755, vmRead(t, from))
	}
	for _, name := range []string{"virtio/virtio_ring", "virtio/virtio", "virtio/virtio_pci_legacy_dev", "virtio/virtio_pci_modern_dev", "virtio/virtio_pci", "block/virtio_blk"} {
		vmArchive(w, "mod/"+filepath.Base(name)+".ko", 0o100644, vmRead(t, filepath.Join(modules, name+".ko")))
	}
	for _, name := range vmNFSModules() {
		vmArchive(w, "mod/"+filepath.Base(name)+".ko", 0o100644, vmRead(t, filepath.Join(filepath.Dir(modules), name+".ko")))
	}
	vmArchive(w, "TRAILER!!!", 0, nil)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

func vmRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// vmArchive writes one file of a cpio archive in the "newc" format.
func vmArchive(w io.Writer, name string, mode int, data []byte) {
	pad := func(n int) string { return "\x00\x00\x00"[:(4-n%4)%4] }
	head := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	fmt.Fprintf(w, "%s%s%s%s", head, pad(len(head)), data, pad(len(data)))
}

// vmResults parses the lines that the machine wrote to a disk.
func vmResults(t *testing.T, disk string) map[string]*vmResult {
	t.Helper()
	data, _, _ := bytes.Cut(vmRead(t, disk), []byte{0})
	results := map[string]*vmResult{}
	for line := range bytes.Lines(data) {
		r := new(vmResult)
		if err := json.Unmarshal(line, r); err != nil {
			t.Errorf("result from the machine is not JSON: %v: %s", err, line)
			continue
		}
		results[r.Name] = r
	}
	return results
}
