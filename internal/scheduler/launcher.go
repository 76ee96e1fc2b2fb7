package scheduler

import "strings"

// A Launcher starts the ranks of a parallel program, and tells each of them who it is. An empty name of a
// variable means that the launcher does not tell.
type Launcher struct {
	Name string

	// Marks are variables that must all be set, beside Rank: one alone may be a leftover, or mean
	// something else.
	Marks []string

	Rank        string // among all ranks of the launch
	LocalRank   string // among those of the node
	RanksOnNode string
	WorldSize   string // ranks in all
	Nodes       string // nodes of the launch
}

// The launchers that have rules of their own.
const (
	torchrun  = "torchrun"
	openMPI   = "Open MPI"
	jsm       = "JSM"   // jsrun
	pals      = "PALS"  // of Cray
	hydra     = "Hydra" // of MPICH and Intel MPI
	slurmStep = "Slurm step"
)

// Launchers returns the table of all known launchers, the nearest to the process first: where one of them
// started the process, what the later ones say is about the process that was there before.
func Launchers() []Launcher {
	return []Launcher{
		{
			Name: torchrun, Marks: []string{"LOCAL_RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE"},
			Rank: "RANK", LocalRank: "LOCAL_RANK", RanksOnNode: "LOCAL_WORLD_SIZE", WorldSize: "WORLD_SIZE",
			Nodes: "GROUP_WORLD_SIZE",
		},
		{
			Name: openMPI, Marks: []string{"OMPI_COMM_WORLD_SIZE"},
			Rank: "OMPI_COMM_WORLD_RANK", LocalRank: "OMPI_COMM_WORLD_LOCAL_RANK",
			RanksOnNode: "OMPI_COMM_WORLD_LOCAL_SIZE", WorldSize: "OMPI_COMM_WORLD_SIZE",
			Nodes: "OMPI_MCA_orte_num_nodes",
		},
		{
			Name: jsm, Marks: []string{"JSM_NAMESPACE_SIZE"},
			Rank: "JSM_NAMESPACE_RANK", LocalRank: "JSM_NAMESPACE_LOCAL_RANK",
			RanksOnNode: "JSM_NAMESPACE_LOCAL_SIZE", WorldSize: "JSM_NAMESPACE_SIZE",
		},
		{
			Name: pals, Marks: []string{"PALS_LOCAL_SIZE"}, // Slurm's plugin for Cray's MPI sets others of its names
			Rank: "PALS_RANKID", LocalRank: "PALS_LOCAL_RANKID", RanksOnNode: "PALS_LOCAL_SIZE", WorldSize: "PMI_SIZE",
		},
		{
			Name: flux, Marks: []string{"FLUX_TASK_LOCAL_ID"},
			Rank: "FLUX_TASK_RANK", LocalRank: "FLUX_TASK_LOCAL_ID", WorldSize: "FLUX_JOB_SIZE", Nodes: "FLUX_JOB_NNODES",
		},
		{
			Name: hydra, Marks: []string{"MPI_LOCALRANKID"}, // srun --mpi=pmi2 sets PMI_RANK without it
			Rank: "PMI_RANK", LocalRank: "MPI_LOCALRANKID", RanksOnNode: "MPI_LOCALNRANKS", WorldSize: "PMI_SIZE",
		},
		{
			Name: azureML, Marks: []string{azureRun, "NODE_RANK", "LOCAL_RANK"},
			Rank: "RANK", LocalRank: "LOCAL_RANK", WorldSize: "WORLD_SIZE",
		},
		{
			Name: slurmStep, Marks: []string{"SLURM_STEP_ID"},
			Rank: "SLURM_PROCID", LocalRank: "SLURM_LOCALID", WorldSize: "SLURM_STEP_NUM_TASKS",
			Nodes: "SLURM_STEP_NUM_NODES",
		},
	}
}

// IsLauncher reports whether a process of this name starts the ranks of a launch on a node, and signals
// them.
func IsLauncher(process string) bool {
	switch process {
	case "slurmstepd", "orterun", "orted", "prterun", "prted", "hydra_pmi_proxy":
		return true
	}
	return strings.HasPrefix(process, "mpirun") || strings.HasPrefix(process, "mpiexec")
}
