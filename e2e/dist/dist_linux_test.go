//go:build e2e

package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// A distribution is the result of make dist in a clone.
type distribution struct {
	dir     string
	version string
}

// machines maps the platforms of Go to their names in RPM and Python.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func TestDist(t *testing.T) {
	testenv.SkipIfShort(t, "packages, to be made twice")
	git := testenv.NeedsTool(t, "git", "apt-get install git")
	testenv.NeedsTool(t, "make", "apt-get install make")

	// A path with a space, another umask, another time zone, or a missing network must not affect a package.
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "another place", "b")
	commit(t, git, first)
	clitest.RunCommand(t, clitest.Command(t, git, "clone", "-q", first, second)).Want(t, 0)
	d := makeDist(t, first, "umask 022", nil)

	t.Run("reproducible", func(t *testing.T) {
		t.Parallel()
		again := makeDist(t, second, "umask 077; export TZ=Asia/Kathmandu GOPROXY=off", &syscall.SysProcAttr{Cloneflags: newNetwork()})
		sameBytes(t, d, again)
	})
	for name, test := range map[string]func(*testing.T, distribution){
		"names": names, "archive": archive, "deb": deb, "rpm": rpm, "wheel": wheel, "pip install": pipInstall,
		"image": image, "arm64": arm64, "bill of materials": billOfMaterials,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, d) })
	}
}

// newNetwork returns the clone flag for an empty network if the test runs as root, and otherwise 0.
func newNetwork() uintptr {
	if os.Getuid() != 0 {
		return 0
	}
	return unix.CLONE_NEWNET
}

// commit copies this checkout, including uncommitted changes, into a repository with one commit.
func commit(t *testing.T, git, dir string) {
	t.Helper()
	checkout := testenv.Repository(t, ".")
	list := exec.Command(git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = checkout
	out, err := list.Output()
	if err != nil {
		testenv.SkipOrFail(t, "needs a checkout that git can read: "+err.Error())
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		copyFile(t, filepath.Join(checkout, name), filepath.Join(dir, name))
	}

	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "all"}} {
		cmd := clitest.Command(t, git, args...)
		cmd.Dir = dir
		clitest.RunCommand(t, cmd).Want(t, 0)
	}
}

// copyFile copies a file, unless the file has been removed.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, info.Mode())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// makeDist runs make dist in a shell, after the script prepare.
func makeDist(t *testing.T, clone, prepare string, attr *syscall.SysProcAttr) distribution {
	t.Helper()
	cmd := exec.Command("sh", "-c", prepare+"; exec make dist")
	cmd.Dir = clone
	cmd.SysProcAttr = attr
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make dist: %v\n%s", err, out)
	}
	version, err := os.ReadFile(filepath.Join(clone, "VERSION"))
	if err != nil {
		t.Fatal(err)
	}

	return distribution{dir: filepath.Join(clone, "dist"), version: strings.TrimSpace(string(version))}
}

// path returns the path of a package.
func (d distribution) path(format string, args ...any) string {
	return filepath.Join(d.dir, fmt.Sprintf(format, args...))
}

// read reads a package.
func (d distribution) read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		t.Fatal(err)
	}

	return data
}

func sameBytes(t *testing.T, a, b distribution) {
	if !slices.Equal(list(t, a.dir), list(t, b.dir)) {
		t.Errorf("files of the second build %q, want %q as in the first", list(t, b.dir), list(t, a.dir))
	}
	for _, name := range list(t, a.dir) {
		if !bytes.Equal(a.read(t, name), b.read(t, name)) {
			t.Errorf("%s differs between two builds", name)
		}
	}
}

// names checks that there are exactly the promised files, and that SHA256SUMS lists them.
func names(t *testing.T, d distribution) {
	want := []string{"SHA256SUMS", fmt.Sprintf("perfagent_%s_oci.tar", d.version), fmt.Sprintf("perfagent_%s.spdx.json", d.version)}
	for arch, machine := range machines {
		want = append(want,
			fmt.Sprintf("perfagent_%s_linux_%s.tar.gz", d.version, arch),
			fmt.Sprintf("perfagent_%s_%s.deb", d.version, arch),
			fmt.Sprintf("perfagent-%s-1.%s.rpm", d.version, machine),
			fmt.Sprintf("perfagent-%s-py3-none-manylinux_2_17_%[2]s.manylinux2014_%[2]s.musllinux_1_1_%[2]s.whl", d.version, machine))
	}
	slices.Sort(want)
	got := list(t, d.dir)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}

	check := clitest.Command(t, "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = d.dir
	o := clitest.RunCommand(t, check)
	o.Want(t, 0)
	if lines := strings.Count(o.Out, ": OK\n"); lines != len(want)-1 {
		t.Errorf("%d valid checksums, want %d", lines, len(want)-1)
	}
	for _, name := range got {
		t.Logf("%10d %s", len(d.read(t, name)), name)
	}
}

// use checks that an installed perfagent has the version of the package and can wrap a job.
func (d distribution) use(t *testing.T, path string) {
	t.Helper()
	o := clitest.RunCommand(t, clitest.Command(t, path, "version"))
	o.Want(t, 0)
	if !strings.HasPrefix(o.Out, "perfagent "+d.version+" ") || strings.Contains(o.Out, "plain go build") {
		t.Errorf("%s version prints %q, want version %s of the release build", path, o.Out, d.version)
	}

	job := clitest.Command(t, path, "run", "--summary", "never", "--out", t.TempDir(), "--", "sh", "-c", "exit 7")
	clitest.RunCommand(t, job).Want(t, 7)
}

// native returns the platform of this machine. If there is no package for the platform, it skips the test.
func native(t *testing.T) (arch, machine string) {
	t.Helper()
	if machines[runtime.GOARCH] == "" {
		t.Skip("there is no package for " + runtime.GOARCH)
	}

	return runtime.GOARCH, machines[runtime.GOARCH]
}

// entries reads a tar archive.
func entries(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// archive checks that each archive has a single folder with the name of the archive and all promised files.
func archive(t *testing.T, d distribution) {
	for arch := range machines {
		folder := fmt.Sprintf("perfagent_%s_linux_%s", d.version, arch)
		z, err := gzip.NewReader(bytes.NewReader(d.read(t, folder+".tar.gz")))
		if err != nil {
			t.Fatal(err)
		}
		files := entries(t, z)
		for _, name := range []string{
			"perfagent", "man/man1/perfagent.1", "man/man1/perfagent-run.1", "man/man1/perfagent-show.1", "completions/perfagent.bash",
			"completions/perfagent.zsh", "completions/perfagent.fish", "README.md", "CHANGELOG.md", "LICENSE", "NOTICE",
		} {
			if len(files[folder+"/"+name]) == 0 {
				t.Errorf("archive %s lacks %s", folder, name)
			}
		}
		for name := range files {
			if !strings.HasPrefix(name, folder+"/") {
				t.Errorf("archive %s has %s, want all files below its folder", folder, name)
			}
		}
		for _, words := range []string{"github.com/spf13/cobra", "SIL OPEN FONT LICENSE", "The FreeType Project LICENSE", "Go standard library"} {
			if !bytes.Contains(files[folder+"/NOTICE"], []byte(words)) {
				t.Errorf("NOTICE for %s lacks %q", arch, words)
			}
		}
	}

	arch, _ := native(t)
	root := t.TempDir()
	clitest.RunCommand(t, clitest.Command(t, "tar", "-xzf", d.path("perfagent_%s_linux_%s.tar.gz", d.version, arch), "-C", root)).Want(t, 0)
	folder := filepath.Join(root, fmt.Sprintf("perfagent_%s_linux_%s", d.version, arch))
	d.use(t, filepath.Join(folder, "perfagent"))
	completes(t, folder)
}

// completes checks that bash loads the completions and completes a command with them.
func completes(t *testing.T, folder string) {
	t.Helper()
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	cmd := clitest.Command(t, bash, "-c", `. completions/perfagent.bash && complete -p perfagent`)
	cmd.Dir = folder
	o := clitest.RunCommand(t, cmd)
	o.Want(t, 0)
	if !strings.Contains(o.Out, "perfagent") {
		t.Errorf("completions in bash = %q, want perfagent among them", o.Out)
	}
}

// installedFiles lists files that the package installs on every system.
var installedFiles = []string{
	"usr/bin/perfagent", "usr/share/man/man1/perfagent.1.gz", "usr/share/man/man1/perfagent-run.1.gz",
	"usr/lib/systemd/system/perfagent-sidecar.service", "usr/share/bash-completion/completions/perfagent",
	"usr/share/fish/vendor_completions.d/perfagent.fish", "usr/share/doc/perfagent/NOTICE",
}

// installed checks that the system below root has a working perfagent and its service, and that the service is not
// enabled.
func (d distribution) installed(t *testing.T, root string, more ...string) {
	t.Helper()
	for _, name := range append(slices.Clone(installedFiles), more...) {
		if !clitest.Exists(filepath.Join(root, name)) {
			t.Errorf("package lacks /%s", name)
		}
	}
	if wanted, _ := filepath.Glob(filepath.Join(root, "etc/systemd/system/*.wants/*")); len(wanted) > 0 {
		t.Errorf("enabled services: %q, want none", wanted)
	}
	d.use(t, filepath.Join(root, "usr/bin/perfagent"))

	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		o := clitest.RunCommand(t, clitest.Command(t, analyze, "verify", "--man=no", "--recursive-errors=no", "--root="+root, "perfagent-sidecar.service"))
		if strings.Contains(o.Err, "perfagent-sidecar.service:") {
			t.Errorf("systemd-analyze: %s", o.Err)
		}
	}
}

// deb checks that dpkg can install the package into a separate root, verify it, and remove all of it.
func deb(t *testing.T, d distribution) {
	testenv.NeedsRoot(t, "to install a package")
	dpkg := testenv.NeedsTool(t, "dpkg", "a system with dpkg")
	arch, _ := native(t)
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Write(t, filepath.Join(root, "var/lib/dpkg/status"), "", 0o644)
	run := func(args ...string) string {
		o := clitest.RunCommand(t, clitest.Command(t, dpkg, append([]string{"--root=" + root, "--log=/dev/null"}, args...)...))
		o.Want(t, 0)
		return o.Out
	}

	run("--install", d.path("perfagent_%s_%s.deb", d.version, arch))
	d.installed(t, root, "usr/share/zsh/vendor-completions/_perfagent", "usr/share/doc/perfagent/copyright")
	if out := run("--verify", "perfagent"); out != "" {
		t.Errorf("dpkg --verify prints %q, want nothing", out)
	}
	if out := run("--status", "perfagent"); !strings.Contains(out, "Version: "+d.version+"\n") || strings.Contains(out, "Depends:") {
		t.Errorf("dpkg --status lacks version %s or has dependencies: %s", d.version, out)
	}

	run("--purge", "perfagent")
	if clitest.Exists(filepath.Join(root, "usr")) {
		t.Error("files remain below /usr after the removal of the package")
	}
}

// rpm checks the digests of the package, that it has no dependencies or scripts, and that its files work.
func rpm(t *testing.T, d distribution) {
	const how = "apt-get install rpm rpm2cpio cpio (make e2e does it as root)"
	tool, unpack, _ := testenv.NeedsTool(t, "rpm", how), testenv.NeedsTool(t, "rpm2cpio", how), testenv.NeedsTool(t, "cpio", how)
	_, machine := native(t)
	path := d.path("perfagent-%s-1.%s.rpm", d.version, machine)

	clitest.RunCommand(t, clitest.Command(t, tool, "--checksig", path)).Want(t, 0)
	for query, want := range map[string]string{
		"%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE}": "perfagent " + d.version + " 1 " + machine + " MIT",
		"[%{REQUIRENAME} ]%{POSTIN}%{PREIN}":               "(none)(none)",
	} {
		o := clitest.RunCommand(t, clitest.Command(t, tool, "-qp", "--queryformat", query, path))
		o.Want(t, 0)
		if !strings.HasSuffix(o.Out, want) || strings.Contains(o.Out, "/") {
			t.Errorf("%s: %q, want %q", query, o.Out, want)
		}
	}

	// Files with absolute names would be unpacked over this system.
	list := clitest.RunCommand(t, clitest.Command(t, "sh", "-c", `"$1" "$2" | cpio -t --quiet`, "sh", unpack, path))
	list.Want(t, 0)
	for name := range strings.Lines(list.Out) {
		if !strings.HasPrefix(name, "./usr/") {
			t.Fatalf("package has the file %q, want all files below ./usr/", name)
		}
	}
	root := t.TempDir()
	cmd := clitest.Command(t, "sh", "-c", `"$1" "$2" | cpio -idm --quiet --no-absolute-filenames`, "sh", unpack, path)
	cmd.Dir = root
	clitest.RunCommand(t, cmd).Want(t, 0)
	d.installed(t, root, "usr/share/zsh/site-functions/_perfagent", "usr/share/licenses/perfagent/LICENSE")
}

// newEnvironment returns a new Python environment.
func newEnvironment(t *testing.T) string {
	t.Helper()
	venv := filepath.Join(t.TempDir(), "venv")
	if o := clitest.RunCommand(t, clitest.Command(t, testenv.Python(t), "-m", "venv", venv)); o.Code != 0 {
		testenv.SkipOrFail(t, "needs Python's venv module: apt-get install python3-venv: "+o.Err)
	}

	return venv
}

// environment returns a new Python environment with the wheel, and a function that runs pip in it.
func (d distribution) environment(t *testing.T) (venv string, pip func(args ...string)) {
	t.Helper()
	_, machine := native(t)
	venv = newEnvironment(t)
	found, err := filepath.Glob(d.path("perfagent-%s-py3-none-*%s.whl", d.version, machine))
	if err != nil || len(found) != 1 {
		t.Fatalf("wheels %q (%v), want one", found, err)
	}

	pip = func(args ...string) {
		t.Helper()
		args = append([]string{"-m", "pip", "--disable-pip-version-check"}, args...)
		clitest.RunCommand(t, clitest.Command(t, venv+"/bin/python", args...)).Want(t, 0)
	}
	pip("install", "--no-index", found[0])

	return venv, pip
}

// wheel checks that pip installs the wheel into a new environment. It also checks that the program is on PATH, and that
// the module finds the program.
func wheel(t *testing.T, d distribution) {
	venv, pip := d.environment(t)
	static(t, venv+"/bin/perfagent", elf.EM_NONE)
	d.use(t, venv+"/bin/perfagent")
	cmd := clitest.Command(t, venv+"/bin/python", "-W", "error", "-c", `
import perfagent
print(perfagent.__version__)
with perfagent.Monitor(out="runs", interval=0.1) as monitor:
    sum(range(3_000_000))
print(monitor.report["run"]["id"] == monitor.run_id)
`)
	o := clitest.RunCommand(t, cmd)
	o.Want(t, 0)
	if o.Out != d.version+"\nTrue\n" {
		t.Errorf("module printed %q, want version %s and True", o.Out, d.version)
	}

	pip("uninstall", "--yes", "perfagent")
	if clitest.Exists(venv + "/bin/perfagent") {
		t.Error("bin/perfagent remains after pip uninstall")
	}
}

// static checks that a program needs nothing except the kernel, and that it is for the given machine. EM_NONE means any
// machine.
func static(t *testing.T, path string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 || machine != elf.EM_NONE && f.Machine != machine {
		t.Errorf("%s: machine %v, libraries %q (%v); want %v and no libraries", path, f.Machine, libraries, err, machine)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("%s needs a dynamic loader, want a static program", path)
	}
}

// arm64 checks that the program for arm64 is for that machine, and that it runs in qemu's user-mode emulation.
func arm64(t *testing.T, d distribution) {
	root := t.TempDir()
	clitest.RunCommand(t, clitest.Command(t, "tar", "-xzf", d.path("perfagent_%s_linux_arm64.tar.gz", d.version), "-C", root)).Want(t, 0)
	path := filepath.Join(root, fmt.Sprintf("perfagent_%s_linux_arm64", d.version), "perfagent")
	static(t, path, elf.EM_AARCH64)

	qemu := testenv.NeedsTool(t, "qemu-aarch64-static", "apt-get install qemu-user-static (make e2e does it as root)")
	o := clitest.RunCommand(t, clitest.Command(t, qemu, path, "version"))
	o.Want(t, 0)
	if !strings.HasPrefix(o.Out, "perfagent "+d.version+" ") || !strings.Contains(o.Out, "linux/arm64") {
		t.Errorf("version under qemu prints %q, want %s on linux/arm64", o.Out, d.version)
	}
	job := clitest.Command(t, qemu, path, "run", "--summary", "never", "--out", root, "--", "/bin/sh", "-c", "exit 7")
	clitest.RunCommand(t, job).Want(t, 7)
}

// A descriptor describes a blob of an OCI layout.
type descriptor struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ Architecture string }
}

// image checks that each blob matches its descriptor, for both platforms, and that podman runs the image.
func image(t *testing.T, d distribution) {
	name := fmt.Sprintf("perfagent_%s_oci.tar", d.version)
	files := entries(t, bytes.NewReader(d.read(t, name)))
	blob := func(of descriptor, into any) {
		t.Helper()
		data := files["blobs/"+strings.Replace(of.Digest, ":", "/", 1)]
		if len(data) != of.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(data)) != of.Digest {
			t.Errorf("blob %s has %d bytes, want %d, or has another digest", of.Digest, len(data), of.Size)
		}
		if into != nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Error(err)
			}
		}
	}

	var top, index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json: %+v, error %v; want one manifest", top, err)
	}
	blob(top.Manifests[0], &index)
	var platforms []string
	for _, m := range index.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		var config struct {
			OS, Architecture string
			Config           struct{ Entrypoint []string }
		}
		blob(m, &manifest)
		blob(manifest.Config, &config)
		for _, layer := range manifest.Layers {
			blob(layer, nil)
		}
		if len(manifest.Layers) != 1 || config.Architecture != m.Platform.Architecture || !slices.Equal(config.Config.Entrypoint, []string{"/perfagent"}) {
			t.Errorf("manifest %+v: config %+v, %d layers; want the same platform, /perfagent as entry point, and 1 layer",
				m, config, len(manifest.Layers))
		}
		platforms = append(platforms, config.OS+"/"+config.Architecture)
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q, want linux/amd64 and linux/arm64", platforms)
	}

	podman(t, d, filepath.Join(d.dir, name))
}

// podman loads and runs the image in a separate store of podman.
func podman(t *testing.T, d distribution, path string) {
	testenv.NeedsRoot(t, "to run a container")
	tool := testenv.NeedsTool(t, "podman", "apt-get install podman runc (make e2e does it as root)")
	dir, err := os.MkdirTemp("", "perfagent-dist-") // a short path, because the length of overlay paths is limited
	if err != nil {
		t.Fatal(err)
	}
	containers := clitest.Write(t, filepath.Join(dir, "containers.conf"), "[containers]\ndefault_ulimits = [\"nofile=20000:20000\", \"nproc=10000:10000\"]\n"+
		"[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n", 0o600)
	storage := clitest.Write(t, filepath.Join(dir, "storage.conf"),
		fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run"), 0o600)
	run := func(args ...string) clitest.Outcome {
		cmd := clitest.Command(t, tool, args...)
		cmd.Env = clitest.Env("CONTAINERS_CONF="+containers, "CONTAINERS_STORAGE_CONF="+storage, "TMPDIR="+dir)
		return clitest.RunCommand(t, cmd)
	}
	t.Cleanup(func() {
		run("rm", "-fa", "-t", "0")
		_ = unix.Unmount(dir+"/graph/overlay", unix.MNT_DETACH)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	run("load", "-q", "-i", path).Want(t, 0)
	tag := "localhost/perfagent:" + d.version
	o := run("run", "--rm", "--network=none", tag, "version")
	if o.Code == 125 || o.Code == 126 {
		testenv.SkipOrFail(t, "no container can be run here: "+o.Err)
	}
	o.Want(t, 0)
	if !strings.HasPrefix(o.Out, "perfagent "+d.version+" ") {
		t.Errorf("version in the container prints %q, want %s", o.Out, d.version)
	}
	// The image has no other program, so perfagent is the job.
	run("run", "--rm", "--network=none", tag, "run", "--out", "/out", "--", "/perfagent", "show", "/nothing").Want(t, 1)

	for name, flags := range map[string][]string{"root": nil, "another user": {"--user=65534"}, "nothing to write to": {"--read-only", "--read-only-tmpfs=false"}} {
		t.Run("Monitor, "+name, func(t *testing.T) {
			d.monitor(t, func(args ...string) clitest.Outcome {
				return run(slices.Concat([]string{"run", "--rm", "--network=none"}, flags, args)...)
			}, tag)
		})
	}
}

// monitor checks the wheel's Monitor in a container without capabilities, with the interpreter as process 1. The image
// has no Python, so the Python of this machine is mounted.
func (d distribution) monitor(t *testing.T, run func(args ...string) clitest.Outcome, image string) {
	venv, _ := d.environment(t)
	home := clitest.RunCommand(t, clitest.Command(t, venv+"/bin/python", "-c", "import sys; print(sys.base_prefix)"))
	home.Want(t, 0)
	args := []string{"--cap-drop=all", "--security-opt=no-new-privileges", "--tmpfs=/work", "--workdir=/work", "--volume=" + venv + ":/venv:ro"}
	for _, dir := range []string{"/usr", "/lib", "/lib64", strings.TrimSpace(home.Out)} {
		if clitest.Exists(dir) && !slices.Contains(args, "--volume="+dir+":"+dir+":ro") {
			args = append(args, "--volume="+dir+":"+dir+":ro")
		}
	}

	o := run(append(args, "--entrypoint=/venv/bin/python", image, "-W", "error", "-c", `
import os, perfagent, time
with perfagent.Monitor(interval=0.05) as monitor:
    while time.process_time() < 0.4: pass
with open("/proc/self/status") as status:
    assert [line.split()[1].strip("0") for line in status if line.startswith(("CapEff", "CapBnd"))] == ["", ""]
node, summary = monitor.report["nodes"]["0"], monitor.summary
assert node["job"]["pids"] == [os.getpid()] == [1], node["job"]
assert 0.2 < node["metrics"]["job_cpu_seconds"] < 0.6 and node["metrics"]["job_max_rss_mb"] > 5, node["metrics"]
assert summary["state"] == "ended" and summary["failed_nodes"] == [], summary
print(monitor.report_path == summary["report"])
`)...)
	o.Want(t, 0)
	if o.Out != "True\n" || o.Err != "" {
		t.Errorf("program printed %q, stderr %q; want \"True\\n\" and an empty stderr", o.Out, o.Err)
	}
}

// billOfMaterials checks that the SPDX document lists every linked module with its version and a license, and the
// digests of the programs.
func billOfMaterials(t *testing.T, d distribution) {
	var doc struct {
		SPDXVersion string
		Packages    []struct {
			Name, VersionInfo, LicenseConcluded string
			Checksums                           []struct{ ChecksumValue string }
		}
		Relationships []struct{ RelationshipType string }
	}
	if err := json.Unmarshal(d.read(t, fmt.Sprintf("perfagent_%s.spdx.json", d.version)), &doc); err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for _, p := range doc.Packages {
		named[p.Name+" "+p.VersionInfo] = true
		for _, c := range p.Checksums {
			named[c.ChecksumValue] = true
		}
		if p.LicenseConcluded == "" || p.LicenseConcluded == "NOASSERTION" {
			t.Errorf("package %s has no license in the bill of materials", p.Name)
		}
	}

	root := t.TempDir()
	for arch := range machines {
		clitest.RunCommand(t, clitest.Command(t, "tar", "-xzf", d.path("perfagent_%s_linux_%s.tar.gz", d.version, arch), "-C", root)).Want(t, 0)
		path := filepath.Join(root, fmt.Sprintf("perfagent_%s_linux_%s", d.version, arch), "perfagent")
		linkedModules(t, path, named)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !named[fmt.Sprintf("%x", sha256.Sum256(data))] {
			t.Errorf("the bill of materials lacks the checksum of the program for %s", arch)
		}
	}
}

// linkedModules checks that named contains all modules in a program's build information.
func linkedModules(t *testing.T, path string, named map[string]bool) {
	t.Helper()
	o := clitest.RunCommand(t, clitest.Command(t, "go", "version", "-m", path))
	o.Want(t, 0)
	count := 0
	for line := range strings.Lines(o.Out) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "dep" {
			continue
		}
		count++
		if !named[fields[1]+" "+fields[2]] {
			t.Errorf("bill of materials lacks the linked module %s %s", fields[1], fields[2])
		}
	}
	if count < 10 {
		t.Errorf("program has %d modules, want at least 10: %s", count, o.Out)
	}
}
