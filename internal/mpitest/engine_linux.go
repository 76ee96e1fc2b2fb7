package mpitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// An Engine is an MPI implementation with its launcher.
type Engine struct {
	// Launcher is the launcher's name in Bin: mpirun or mpiexec.
	Launcher string

	// Bin is a directory for the PATH with the engine's programs by their usual names, python3 with mpi4py, and
	// perfagent.
	Bin string

	// Env is the environment of the engine's programs, without PATH.
	Env []string
}

// OpenMPI returns Open MPI, configured to run as root and with more ranks than CPUs.
func OpenMPI(t *testing.T) Engine {
	t.Helper()
	e := Engine{Launcher: "mpirun", Env: []string{
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_mca_base_component_show_load_errors=0", // hide errors about missing network cards
		"PMIX_MCA_pcompress_base_silence_warning=1",
		"MPI4PY_MPIABI=openmpi", // otherwise mpi4py loads the first libmpi.so, which may be from another engine
	}}
	root := unpacked(t, "openmpi", "usr/bin/orterun")
	e.link(t, root, map[string]string{"mpirun": "mpirun.openmpi", "orted": "orted"}, "apt-get install openmpi-bin")
	if root == "" {
		return e
	}

	libraries := only(t, root+"/usr/lib/*/openmpi/lib")
	e.Env = append(e.Env, "OPAL_PREFIX="+root+"/usr", "OPAL_LIBDIR="+libraries,
		"LD_LIBRARY_PATH="+filepath.Dir(filepath.Dir(libraries))+":"+libraries)

	return e
}

// MPICH returns MPICH with its launcher, Hydra.
func MPICH(t *testing.T) Engine {
	t.Helper()
	e := Engine{Launcher: "mpiexec", Env: []string{"MPI4PY_MPIABI=mpich"}}
	root := unpacked(t, "mpich", "usr/bin/mpiexec.hydra")
	names := map[string]string{"mpiexec": "mpiexec.mpich", "hydra_pmi_proxy": "hydra_pmi_proxy"}
	e.link(t, root, names, "apt-get install mpich")

	library := only(t, root+"/usr/lib/*/libmpich.so.12")
	if err := os.Symlink(library, e.Bin+"/libmpi.so.12"); err != nil { // the name that programs expect
		t.Fatal(err)
	}
	e.Env = append(e.Env, "LD_LIBRARY_PATH="+filepath.Dir(library)+":"+e.Bin)

	return e
}

// unpacked returns the directory with an unpacked Debian package, or "" if file is not in it.
func unpacked(t *testing.T, name, file string) string {
	t.Helper()
	root := testenv.Repository(t, ".tools/"+name)
	if clitest.Exists(filepath.Join(root, file)) {
		return root
	}
	return ""
}

// only returns the only file that matches pattern.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, _ := filepath.Glob(pattern)
	if len(found) != 1 {
		t.Fatalf("files that match %q: %q, want one; remove .tools, and run make e2e", pattern, found)
	}
	return found[0]
}

// link creates Bin, with the programs, python3 and perfagent.
func (e *Engine) link(t *testing.T, root string, programs map[string]string, install string) {
	t.Helper()
	python := os.Getenv("PERFAGENT_TEST_PYTHON")
	if python == "" {
		testenv.SkipOrFail(t, "needs Python with mpi4py: make test installs it, PERFAGENT_TEST_PYTHON names it")
	}

	e.Bin = t.TempDir()
	// This is not a link, because the interpreter of a virtual environment must be called by its path there.
	clitest.Write(t, e.Bin+"/python3", "#!/bin/sh\nexec '"+python+"' \"$@\"\n", 0o755)
	targets := map[string]string{"perfagent": clitest.Binary(t)}
	for name, program := range programs {
		if root == "" {
			targets[name] = testenv.NeedsTool(t, program, install+" (make e2e unpacks it into .tools, as root on Debian)")
		} else {
			targets[name] = filepath.Join(root, "usr/bin", program)
		}
	}
	for name, target := range targets {
		if err := os.Symlink(target, filepath.Join(e.Bin, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Libraries returns the directories of the engine's libraries, or nil if they are in the default directories.
func (e Engine) Libraries() []string {
	for _, variable := range e.Env {
		if dirs, ok := strings.CutPrefix(variable, "LD_LIBRARY_PATH="); ok {
			return filepath.SplitList(dirs)
		}
	}
	return nil
}

// Environ returns the environment of a command that uses the engine, with Bin first in PATH.
func (e Engine) Environ(more ...string) []string {
	env := append([]string{"PATH=" + e.Bin + ":" + os.Getenv("PATH")}, e.Env...)
	return clitest.Env(append(env, more...)...)
}
