package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
)

func newEnv(s streams) *cobra.Command {
	var format *format
	cmd := &cobra.Command{
		Use:   "env [flags]",
		Short: "show the run, node and rank that perfagent detects here",
		Long: `Show which run, node and rank perfagent run would detect here, and from which
variables of schedulers and launchers. Variables that are set but ignored are
listed with the reason, without their values.`,
		Example: `  perfagent env
  srun -N2 perfagent env --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			found := s.identify()
			if format.name == formatJSON {
				return s.printJSON(found)
			}
			return printDetected(s.out, found)
		},
	}

	format = addFormat(cmd.Flags(), formatText, formatJSON)

	return cmd
}

// identify returns the run ID and the identity of this process, according to the environment and the defaults files.
func (s streams) identify() agent.Detection {
	found := agent.Detect()
	defaults := s.defaults()
	if set := defaults.of("PERFAGENT_RUN_ID"); len(set) > 0 {
		found.RunID, found.From["run_id"] = set[0].value, set[0].source()
	}
	if set := defaults.of("PERFAGENT_NODE"); len(set) > 0 {
		n, err := strconv.Atoi(set[0].value)
		switch {
		case err != nil || n < 0 || n > agent.MaxNode:
		case found.InheritsNode(set[0].variable, n):
			found.Ignored = append(found.Ignored, agent.IgnoredVariable{
				Name: set[0].variable, Why: "it is the node of the perfagent around the launcher",
			})
		default:
			found.Identity.Node, found.Identity.NodeFrom, found.From["node"] = &n, set[0].source(), set[0].source()
		}
	}

	return found
}

// printDetected prints the identity with its sources, then the ignored variables with the reasons.
func printDetected(w io.Writer, found agent.Detection) error {
	var out strings.Builder
	_ = detectedTable(found).WriteText(&out, 0, false) // a strings.Builder never fails

	for i, variable := range found.Ignored {
		if i == 0 {
			out.WriteString("ignored:\n")
		}
		fmt.Fprintf(&out, "  %s: %s\n", variable.Name, text.Printable(variable.Why))
	}

	_, err := io.WriteString(w, out.String())

	return err
}

// detectedTable returns the table of the identity. The run ID and the node always have a row. Other values have one
// only if they are known.
func detectedTable(found agent.Detection) *table.Table {
	id, t := found.Identity, &table.Table{Columns: table.Left("", "", "")}
	t.Add(table.Texts("run id", cmp.Or(found.RunID, "the time and random digits"), found.From["run_id"])...)
	t.Add(table.Texts("node", cmp.Or(formatIndex(id.Node), "0, the default"), found.From["node"])...)
	for _, row := range []struct{ name, value, key string }{
		{"node name", id.NodeName, "node_name"},
		{"nodes", formatCount(id.Nodes), "nodes"},
		{"rank", formatIndex(id.Rank), "rank"},
		{"local rank", formatIndex(id.LocalRank), "local_rank"},
		{"ranks on node", formatCount(id.RanksOnNode), "ranks_on_node"},
		{"world size", formatCount(id.WorldSize), "world_size"},
		{"scheduler", id.Scheduler, "scheduler"},
		{"job id", id.JobID, "job_id"},
		{"launch", id.Launch, "launch"},
		{"restart", formatCount(id.Restart), "restart"},
	} {
		if row.value != "" {
			t.Add(table.Texts(row.name, row.value, found.From[row.key])...)
		}
	}

	return t
}

// formatIndex returns n in decimal, or "" for nil (unknown).
func formatIndex(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// formatCount returns n in decimal, or "" for 0 (unknown).
func formatCount(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
