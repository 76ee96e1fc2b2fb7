package slurmtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

const install = "apt-get install slurm-wlm slurm-client munge (make e2e unpacks them into .tools/slurm, as root on Debian)"

// Programs holds the programs of Slurm and munge.
type Programs struct {
	// Dir is a directory with a link to each program, under the name that Slurm's daemons expect.
	Dir string

	// Libraries is the directory of unpacked libraries, and Plugins is the directory of Slurm's plugins. Both are "" if
	// Slurm is installed.
	Libraries, Plugins string
}

// FindPrograms finds the programs in the packages that make e2e unpacks or, without these, installed programs. It puts
// links to the programs into dir.
func FindPrograms(t *testing.T, dir string) Programs {
	t.Helper()
	p := Programs{Dir: dir}
	root := testenv.Repository(t, ".tools/slurm")
	if clitest.Exists(filepath.Join(root, "usr/sbin/slurmctld-wlm")) {
		paths, _ := filepath.Glob(root + "/usr/lib/*/slurm-wlm")
		if len(paths) != 1 {
			t.Fatalf("%s has no libraries of Slurm: remove it, and run make e2e", root)
		}
		p.Plugins, p.Libraries = paths[0], filepath.Dir(paths[0])
	}

	for _, name := range []string{
		"munged", "slurmctld", "slurmd", "slurmstepd",
		"srun", "sbatch", "salloc", "scancel", "scontrol", "sinfo", "squeue",
	} {
		path := ""
		if p.Libraries != "" {
			path = unpacked(t, root, name)
		} else if name == "slurmstepd" {
			continue // an installed slurmd knows the path
		} else {
			path = testenv.NeedsTool(t, name, install)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// unpacked returns the path of an unpacked program.
func unpacked(t *testing.T, root, name string) string {
	t.Helper()
	for _, path := range []string{"usr/bin/" + name, "usr/sbin/" + name, "usr/sbin/" + name + "-wlm"} {
		if path = filepath.Join(root, path); clitest.Exists(path) {
			return path
		}
	}
	t.Fatalf("%s has no %s: remove it, and run make e2e", root, name)
	return ""
}

// Path returns the path of the named program.
func (p Programs) Path(name string) string { return filepath.Join(p.Dir, name) }

// Env returns the environment entries that the programs need.
func (p Programs) Env() []string {
	env := []string{"PATH=" + p.Dir + ":" + os.Getenv("PATH")}
	if p.Libraries != "" {
		env = append(env, "LD_LIBRARY_PATH="+p.Plugins+":"+p.Libraries)
	}
	return env
}

// Stepd returns slurmd's options for the path of an unpacked slurmstepd.
func (p Programs) Stepd() []string {
	if p.Libraries == "" {
		return nil
	}
	return []string{"-d", p.Path("slurmstepd")}
}
