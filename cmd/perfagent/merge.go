package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

type mergeOptions struct {
	output  string
	force   bool
	html    string
	cpus    int
	runs    runFinder
	streams streams
}

func newMerge(s streams) *cobra.Command {
	o := &mergeOptions{streams: s, runs: runFinder{streams: s}}
	cmd := &cobra.Command{
		Use:   "merge [flags] RUN... -o FILE",
		Short: "merge the nodes of a run into one report",
		Long: `Merge the nodes of a run, or of several reports, into one report of the same
format, and write its page beside it (FILE with .html). RUN is a RUN-ID,
@latest, @-2, the directory of a run, or a file: a report, a journal, or
perf.py's JSON. Two different recordings of one node are an error. An existing
file is replaced only with --force.`,
		Example: `  perfagent merge 4711 -o job-4711.json
  perfagent merge perfagent-out/4711/node-*.json -o job-4711.json
  perfagent show job-4711.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.runs.settle(cmd); err != nil {
				return err
			}
			return o.merge(args)
		},
	}

	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (required)")
	f.BoolVar(&o.force, "force", false, "replace FILE if it exists")
	o.runs.addTo(cmd)
	addHTMLFlag(f, &o.html)
	f.IntVar(&o.cpus, "cpus", 0,
		"number of logical CPUs of each node; needed for perf.py's JSON, which does not record it")

	return cmd
}

func (o *mergeOptions) merge(names []string) error {
	switch {
	case len(names) == 0:
		return errors.New("merge: name a run, or two reports or more")
	case o.output == "":
		return errors.New("merge: -o FILE is missing")
	case strings.EqualFold(filepath.Ext(o.output), ".html"):
		return fmt.Errorf("merge: -o %s: name the report, %s.json; its page is written beside it",
			o.output, o.output[:len(o.output)-len(".html")])
	case o.cpus < 0:
		return fmt.Errorf("--cpus: %d is negative", o.cpus)
	case o.html != "auto" && o.html != "never":
		return fmt.Errorf("--html: %q is not auto or never", o.html)
	}

	paths, err := o.runs.paths("merge", names)
	if err != nil {
		return err
	}

	var sources []reporter.Source
	for _, path := range paths {
		report, err := reportfile.Read(path, o.cpus)
		if err != nil {
			return err
		}
		sources = append(sources, reporter.Source{Path: path, Report: report})
	}

	merged, err := diagnosis.Merge(sources)
	if err != nil {
		return err
	}

	return o.write(merged)
}

// write writes the report, then its page.
func (o *mergeOptions) write(merged *reporter.Report) error {
	data, err := reporter.Encode(merged)
	if err != nil {
		return err
	}

	page := plotter.PagePath(o.output)
	if o.html == "never" {
		page = ""
	}

	for _, path := range []string{o.output, page} {
		if err := replaceable(path, o.force); err != nil {
			return fmt.Errorf("merge: %w", err)
		}
	}

	write := reportfile.WriteNew
	if o.force {
		write = reportfile.Write
	}

	err = write(o.output, data)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("merge: %s exists: use --force to replace it", o.output)
	}
	if err != nil || page == "" {
		return err
	}

	var html bytes.Buffer
	if err := plotter.WritePage(&html, merged, plotter.PageOptions{}); err != nil {
		return err
	}

	return reportfile.WritePicture(page, html.Bytes(), o.force)
}

// replaceable returns an error unless path may be written: it does not exist, or force is set and it
// is a regular file. An empty path is not a file.
func replaceable(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case path == "" || err != nil:
		return nil
	case !force:
		return fmt.Errorf("%s exists: use --force to replace it", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file and is not replaced", path)
	}

	return nil
}
