package scheduler

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// hydraProxy is the process that starts the ranks of Hydra on a host.
const hydraProxy = "hydra_pmi_proxy"

// CurrentEnvironment returns the environment of this process.
func CurrentEnvironment() Environment {
	host, _ := os.Hostname() // "" is unknown
	return Environment{Lookup: os.LookupEnv, Hostname: host, Hydra: hydraLaunch, Parent: parent}
}

// readLaunch sets Launch, which distinguishes launches of the same job, such as two steps or two calls of mpirun.
func (d *detector) readLaunch(nearest Launcher) {
	const (
		space  = "PMIX_NAMESPACE"
		random = "OMPI_MCA_orte_precondition_transports" // Open MPI 4 sets a new value for each mpirun
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
		if d.Hydra == nil {
			break
		}
		// The environment does not identify the launch, but the process that started this one does.
		if port := d.Hydra(); port != "" {
			d.id.Launch, d.id.From["launch"] = "hydra-"+digest(port), hydraProxy
		}
	case d.inStep():
		d.id.Launch, d.id.From["launch"] = "step-"+d.value(step), step
	}
}

// launchOfTorchrun uses the ID given to torchrun. Without an ID, torchrun calls every run "none". Then the torchrun
// process distinguishes runs on one host, because their address is always the same. Address and day distinguish runs on
// several hosts.
func (d *detector) launchOfTorchrun() {
	const elastic, address = "TORCHELASTIC_RUN_ID", "MASTER_ADDR"

	if id := d.value(elastic); id != "" && id != "none" {
		d.setLaunch("torchrun", elastic)
		return
	}
	d.ignore(elastic, "torchrun has no ID (--rdzv-id)")
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

// setLaunch names the launch with prefix and a digest of the values of the named variables. Unset variables are
// skipped, but if the first one is unset, the launch gets no name.
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

// digest returns the first twelve hexadecimal digits of text's hash.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// readRunID sets the run ID to torchrun's ID, or otherwise to one derived from the launch. It changes nothing if the
// scheduler's job ID has set the run ID.
func (d *detector) readRunID() {
	const elastic = "TORCHELASTIC_RUN_ID"

	if id := d.value(elastic); id != "none" {
		d.setRunID(id, elastic)
	}
	if _, hex, ok := strings.Cut(d.id.Launch, "-"); ok {
		d.setRunID("mpi-"+hex, d.id.From["launch"])
	}
}

// A Launcher starts the ranks of a parallel program, and sets variables for each of them. An empty name means that the
// launcher has no such variable.
type Launcher struct {
	Name string

	// Required lists variables that must all be set, besides Rank: Rank alone may be a leftover, or belong to another
	// program.
	Required []string

	Rank        string // among all ranks of the launch
	LocalRank   string // among the ranks of the node
	RanksOnNode string
	WorldSize   string // total ranks
	Nodes       string // nodes of the launch
}

// The launchers with special rules.
const (
	torchrun  = "torchrun"
	openMPI   = "Open MPI"
	jsm       = "JSM"   // jsrun
	pals      = "PALS"  // of Cray
	hydra     = "Hydra" // of MPICH and Intel MPI
	slurmStep = "Slurm step"
)

// Launchers returns the table of all known launchers, the nearest to the process first. If a launcher started the
// process, the variables of later launchers in the table describe an ancestor of the process.
func Launchers() []Launcher {
	return []Launcher{
		{
			Name: torchrun, Required: []string{"LOCAL_RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE"},
			Rank: "RANK", LocalRank: "LOCAL_RANK", RanksOnNode: "LOCAL_WORLD_SIZE", WorldSize: "WORLD_SIZE",
			Nodes: "GROUP_WORLD_SIZE",
		},
		{
			Name: openMPI, Required: []string{"OMPI_COMM_WORLD_SIZE"},
			Rank: "OMPI_COMM_WORLD_RANK", LocalRank: "OMPI_COMM_WORLD_LOCAL_RANK",
			RanksOnNode: "OMPI_COMM_WORLD_LOCAL_SIZE", WorldSize: "OMPI_COMM_WORLD_SIZE",
			Nodes: "OMPI_MCA_orte_num_nodes",
		},
		{
			Name: jsm, Required: []string{"JSM_NAMESPACE_SIZE"},
			Rank: "JSM_NAMESPACE_RANK", LocalRank: "JSM_NAMESPACE_LOCAL_RANK",
			RanksOnNode: "JSM_NAMESPACE_LOCAL_SIZE", WorldSize: "JSM_NAMESPACE_SIZE",
		},
		{
			Name: pals, Required: []string{"PALS_LOCAL_SIZE"}, // Slurm's plugin for Cray MPI sets other PALS_*
			Rank: "PALS_RANKID", LocalRank: "PALS_LOCAL_RANKID", RanksOnNode: "PALS_LOCAL_SIZE", WorldSize: "PMI_SIZE",
		},
		{
			Name: flux, Required: []string{"FLUX_TASK_LOCAL_ID"},
			Rank: "FLUX_TASK_RANK", LocalRank: "FLUX_TASK_LOCAL_ID", WorldSize: "FLUX_JOB_SIZE", Nodes: "FLUX_JOB_NNODES",
		},
		{
			Name: hydra, Required: []string{"MPI_LOCALRANKID"}, // srun --mpi=pmi2 sets PMI_RANK without it
			Rank: "PMI_RANK", LocalRank: "MPI_LOCALRANKID", RanksOnNode: "MPI_LOCALNRANKS", WorldSize: "PMI_SIZE",
		},
		{
			Name: azureML, Required: []string{azureRun, "NODE_RANK", "LOCAL_RANK"},
			Rank: "RANK", LocalRank: "LOCAL_RANK", WorldSize: "WORLD_SIZE",
		},
		{
			Name: slurmStep, Required: []string{"SLURM_STEP_ID"},
			Rank: "SLURM_PROCID", LocalRank: "SLURM_LOCALID", WorldSize: "SLURM_STEP_NUM_TASKS",
			Nodes: "SLURM_STEP_NUM_NODES",
		},
	}
}

// IsLauncher reports whether process is the name of a program that starts the ranks of a launch on a node, and signals
// them.
func IsLauncher(process string) bool {
	switch process {
	case "slurmstepd", "orterun", "orted", "prterun", "prted", "hydra_pmi_proxy":
		return true
	}
	return strings.HasPrefix(process, "mpirun") || strings.HasPrefix(process, "mpiexec")
}
