package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// hydraProxy is the process that starts the ranks of Hydra on a host.
const hydraProxy = "hydra_pmi_proxy"

// Self returns the environment of this process.
func Self() Environment {
	host, _ := os.Hostname() // "" is unknown
	return Environment{Lookup: os.LookupEnv, Hostname: host, Hydra: hydraLaunch, Parent: parent}
}

// launch finds what distinguishes the launch from others of the same job: two steps, or two mpirun.
func (d *detector) launch(nearest Launcher) {
	const (
		space  = "PMIX_NAMESPACE"
		random = "OMPI_MCA_orte_precondition_transports" // of Open MPI 4, for each mpirun
		step   = "SLURM_STEP_ID"
	)

	switch {
	case nearest.Name == torchrun:
		d.launchOfTorchrun()
	case nearest.Name == openMPI && d.isSet(space):
		d.setLaunch("openmpi", space, random)
	case nearest.Name == pals:
		d.setLaunch("pals", "PALS_APID")
	case nearest.Name == flux && d.isSet("FLUX_ENCLOSING_ID"):
		d.setLaunch("flux", "FLUX_JOB_ID")
	case nearest.Name == hydra:
		d.launchOfHydra()
	case d.inStep():
		d.id.Launch, d.id.From["launch"] = "step-"+d.value(step), step
	}
}

// launchOfTorchrun takes the id that torchrun was given. Without one it calls every run "none", and a run on
// one host uses the same address each time: the process of torchrun tells them apart on one host, and the
// day on several.
func (d *detector) launchOfTorchrun() {
	const elastic, address = "TORCHELASTIC_RUN_ID", "MASTER_ADDR"

	if id := d.value(elastic); id != "" && id != "none" {
		d.setLaunch("torchrun", elastic)
		return
	}
	d.ignore(elastic, "torchrun was given no id (--rdzv-id)")
	if d.Parent == nil {
		return
	}

	process, day := d.Parent()
	what, from := process, "parent process"
	if d.id.Nodes != 1 {
		what, from = d.value(address)+" "+d.value("MASTER_PORT")+" "+day, address
	}
	if process != "" {
		d.id.Launch, d.id.From["launch"] = "torchrun-"+digest(what), from
	}
}

// launchOfHydra takes the launch from the process that started this one: the environment does not tell it.
func (d *detector) launchOfHydra() {
	if d.Hydra == nil {
		return
	}
	if port := d.Hydra(); port != "" {
		d.id.Launch, d.id.From["launch"] = "hydra-"+digest(port), hydraProxy
	}
}

// setLaunch names the launch after a launcher and a digest of variables. Those that are not set do not
// count, but the first one must be.
func (d *detector) setLaunch(prefix string, names ...string) {
	var values, from []string
	for _, name := range names {
		if value := d.value(name); value != "" {
			values, from = append(values, value), append(from, name)
		}
	}

	if len(from) > 0 && from[0] == names[0] {
		d.id.Launch, d.id.From["launch"] = prefix+"-"+digest(strings.Join(values, "\n")), strings.Join(from, ", ")
	}
}

// digest returns twelve hexadecimal digits that stand for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// runID finds the name of the run, unless the scheduler's job id is one: that of a run of torchrun, or of a
// launch of MPI.
func (d *detector) runID() {
	const elastic = "TORCHELASTIC_RUN_ID"

	if id := d.value(elastic); id != "none" {
		d.setRunID(id, elastic)
	}
	if _, hex, ok := strings.Cut(d.id.Launch, "-"); ok {
		d.setRunID("mpi-"+hex, d.id.From["launch"])
	}
}
