package reporter

// Identity is which job, node and rank a process was, as its environment told. What it did not tell is
// absent. The rules are in docs/clusters.md.
type Identity struct {
	// Node is the index of the node, and NodeFrom who told it: "flag", the name of a variable, or "none".
	Node     *int   `json:"node,omitempty"`
	NodeFrom string `json:"node_from"`
	NodeName string `json:"node_name,omitempty"` // as the scheduler calls it

	Rank        *int `json:"rank,omitempty"`          // among all ranks of the launch
	LocalRank   *int `json:"local_rank,omitempty"`    // among those of the node
	RanksOnNode int  `json:"ranks_on_node,omitempty"` // how many the launch has on the node
	WorldSize   int  `json:"world_size,omitempty"`    // how many it has in all
	Nodes       int  `json:"nodes,omitempty"`         // of the launch, else of the job

	Scheduler string `json:"scheduler,omitempty"` // Slurm, PBS, …
	JobID     string `json:"job_id,omitempty"`    // as the scheduler writes it
	Launch    string `json:"launch,omitempty"`    // which of several launches of the job
	Restart   int    `json:"restart,omitempty"`   // how often the scheduler has started the job again
}

// NodeFromFlag is the NodeFrom of an index that was given.
const NodeFromFlag = "flag"
