package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/reporter"
)

type mergeOptions struct {
	output  string
	force   bool
	cpus    int
	streams streams
}

func newMerge(s streams) *cobra.Command {
	o := &mergeOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "merge [flags] REPORT... -o FILE",
		Short: "put the nodes of several reports into one report",
		Long: `Put the nodes of several reports (ours, journals, perf.py's JSON) into one report
of the same format. Two different recordings of one node are an error. An
existing FILE is replaced only with --force.`,
		Example: `  perfagent merge perfagent-out/4711/node-*.json -o job-4711.json
  perfagent show job-4711.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.merge(args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (required)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	f.IntVar(&o.cpus, "cpus", 0, "logical CPUs of a node, for perf.py's JSON, which does not tell")
	return cmd
}

func (o *mergeOptions) merge(paths []string) error {
	switch {
	case o.output == "":
		return errors.New("merge: -o FILE is missing")
	case o.cpus < 0:
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	}
	var sources []reporter.Source
	for _, path := range paths {
		report, err := reporter.Read(path, o.cpus)
		if err != nil {
			return err
		}
		sources = append(sources, reporter.Source{Path: path, Report: report})
	}
	merged, err := reporter.Merge(sources)
	if err != nil {
		return err
	}
	data, err := reporter.Encode(merged)
	if err != nil {
		return err
	}
	write := reporter.WriteNew
	if o.force {
		if st, err := os.Lstat(o.output); err == nil && !st.Mode().IsRegular() {
			return fmt.Errorf("merge: %s is no regular file and is not replaced", o.output)
		}
		write = reporter.Write
	}
	err = write(o.output, data)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("merge: %s exists: give --force to replace it", o.output)
	}
	return err
}
