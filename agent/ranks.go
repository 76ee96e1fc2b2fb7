package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/perfagent/perfagent/agent/roster"
	"github.com/perfagent/perfagent/internal/parallel"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// A nodeRole is the role of a recording among the recordings of its launch on its node.
type nodeRole struct {
	roster *roster.Roster // nil if the recording does not look for others

	// rank is the rank as decimal text; "" while the recording appears to be the only one of its launch.
	rank string

	// isRankPart reports whether there are other ranks on the node. The report is then only a part of the node's
	// report.
	isRankPart bool

	// measuresHost reports whether this recording measures the host from the beginning.
	measuresHost bool

	missing []reporter.Missing
}

// join looks for the other agents of the launch on this node, without waiting for them. A run with a random ID has no
// other agents.
func (s *session) join() {
	s.nodeRole = nodeRole{measuresHost: true}
	id := s.o.identity
	if s.o.Compat != "" || s.o.ownRunID {
		return
	}
	if p, ok := findParent(); ok && id.Launch == "" && p.contains() {
		return
	}

	r, err := withDiskTimeout("join the perfagents of this node", func() (*roster.Roster, error) {
		return roster.Join(roster.Dirs(), s.rosterKey(), id.Rank)
	})
	if errors.Is(err, roster.ErrNested) {
		return
	}
	if id.Rank != nil && id.WorldSize > 1 {
		s.nodeRole.rank, s.nodeRole.isRankPart = strconv.Itoa(*id.Rank), id.RanksOnNode != 1
	}
	founder := ""
	if err == nil {
		s.nodeRole.roster, s.nodeRole.measuresHost, founder = r, r.TakeHost(), r.ID()
		s.checkOtherRanks()
	} else if s.nodeRole.isRankPart {
		s.nodeRole.missing = []reporter.Missing{{What: "ranks", Code: reporter.RanksUnseen, Why: err.Error()}}
	}
	if s.nodeRole.isRankPart {
		s.tracking.configureRank(s.rosterKey().String()+founder, s.nodeRole.measuresHost)
	}
}

// checkOtherRanks makes the recording one of several ranks if there are other agents on the node.
func (s *session) checkOtherRanks() {
	r := s.nodeRole.roster
	if s.nodeRole.isRankPart || r == nil || !r.HasOthers() {
		return
	}

	s.nodeRole.isRankPart = true
	if rank := s.o.identity.Rank; rank != nil {
		s.nodeRole.rank = strconv.Itoa(*rank)
	} else {
		s.nodeRole.rank = strconv.Itoa(r.JoinIndex())
	}
}

// rosterKey returns the key shared by the agents of this launch on this host.
func (s *session) rosterKey() roster.Key {
	id := s.o.identity
	key := roster.Key{
		RunID: s.o.RunID, Restart: id.Restart, Launch: id.Launch, Out: absolute(s.o.Out), NodeName: id.NodeName,
	}
	if s.o.nodeGiven || id.Node != nil {
		key.Node = s.o.Node
	}
	if key.NodeName == "" {
		key.NodeName, _ = os.Hostname()
	}

	return key
}

// fileName returns the name of the recording's files, without extension.
func (s *session) fileName() string {
	if s.nodeRole.isRankPart {
		return journal.BaseName(*s.o.Node, s.fileHost(), s.nodeRole.rank)
	}
	return s.nodeFileName()
}

// nodeFileName returns the name of the files of the whole node, without extension.
func (s *session) nodeFileName() string { return journal.BaseName(*s.o.Node, s.fileHost(), "") }

// fileHost returns the host name to use in file names if a launcher sets a rank but no node index; otherwise "".
func (s *session) fileHost() string {
	id := s.o.identity
	if s.o.nodeGiven || id.Node != nil || id.Rank == nil {
		return ""
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return ""
	}

	return scheduler.SafeHost(name)
}

// takeHost returns the callback that the Sampler calls at each tick while another agent measures the host, or nil if
// this agent measures it. begin is called when this agent begins to measure the host.
func (s *session) takeHost(begin func()) func() bool {
	r := s.nodeRole.roster
	if s.nodeRole.measuresHost || r == nil {
		return nil
	}
	return func() bool {
		if !r.TakeHost() {
			return false
		}
		s.tracking.startLive()
		begin()
		return true
	}
}

// leaveRoster leaves the roster. If this agent is the last of several, it returns the paths of all agents' reports.
// part is the path of this agent's report.
func (s *session) leaveRoster(part string) []string {
	r := s.nodeRole.roster
	if r == nil {
		return nil
	}

	announced := 0
	if id := s.o.identity; id.Rank != nil {
		announced = id.RanksOnNode
	}
	if part != "" {
		part = absolute(part)
	}

	return r.Leave(part, announced)
}

// absolute makes path absolute. Unlike filepath.Abs it accesses no file, because the working directory may be on a file
// system that hangs.
func absolute(path string) string {
	dir, err := syscall.Getwd()
	if err != nil || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// deliverRankPart writes the report of a rank. The last rank of the node to leave combines all parts, and is the only
// one to call OnReport and push.
func (s *session) deliverRankPart(in diagnosis.Input, result *Result, cut <-chan string) error {
	result.RankPart, result.Report = true, s.makeReport(in)
	s.output.rename(s.fileName())
	var err error
	result.ReportPath, err = s.output.save(s.encoding(result.Report, in.Recording))
	parts := s.leaveRoster(result.ReportPath)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	if len(parts) == 0 {
		return nil
	}
	if err := s.combineNode(parts, result, cut); err != nil { // every part still exists
		s.log.Warn(fmt.Sprintf("combine the ranks of the node: %v; their reports are kept", err))
	}

	return nil
}

// combineNode combines the parts of a node into one report with a page, removes the parts, and pushes the report. It
// gives up on a file system that hangs.
func (s *session) combineNode(parts []string, result *Result, cut <-chan string) error {
	s.o.allowSecondThread()
	dir := filepath.Dir(result.ReportPath)
	for _, part := range parts {
		if other := filepath.Dir(part); other != absolute(dir) { // one of the ranks could not write to OUT
			return fmt.Errorf("their reports are in %s and in %s", dir, other)
		}
	}

	node, err := combineParts(parts)
	if err != nil {
		return err
	}
	if s.o.TakeOver {
		debug.SetGCPercent(200) // the process ends soon, and others wait for its end
	}
	s.addEarlier(node)
	name := node.NodeNames()[0] // there is only one node
	d := delivery{report: node, node: name}
	file, err := s.prepare(&d, func(w io.Writer) error { return reporter.EncodeTo(w, node) })
	if err != nil {
		return err
	}
	d.path, err = s.replaceParts(parts, dir, file)
	if err != nil {
		return err
	}
	result.RankPart, result.Report = false, node
	result.ReportPath, result.PagePath = d.path, s.savePage(d.path, node)

	s.publish(result, d, cut)
	return nil
}

// combineParts reads the parts of a node and combines them.
func combineParts(paths []string) (node *reporter.Report, err error) {
	defer recoverAs("damaged report", &err)

	var sources []reporter.SourceReport
	err = parallel.InOrder(len(paths), func(i int, emit func(reporter.SourceReport) error) error {
		report, err := withDiskTimeout("read report "+paths[i], func() (*reporter.Report, error) {
			return reportfile.Read(paths[i], 0)
		})
		if err != nil {
			return err
		}
		return emit(reporter.SourceReport{Path: paths[i], Report: report})
	}, func(source reporter.SourceReport) error {
		sources = append(sources, source)
		return nil
	})
	if err != nil {
		return nil, err
	}

	return diagnosis.Combine(sources)
}

// replaceParts writes the report of the node into dir and then removes parts. It returns the report's path.
func (s *session) replaceParts(parts []string, dir string, fill func(io.Writer) error) (path string, err error) {
	return withDiskTimeout("write report of the node into "+dir, func() (string, error) {
		path, err := writeNode(dir, s.nodeFileName(), fill)
		if err != nil {
			return "", err
		}
		for _, part := range parts {
			if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.log.Warn(fmt.Sprintf("remove report of a rank: %v", err))
			}
		}
		return path, nil
	})
}

// writeNode writes the report of the node into dir under the first free name of base, base.2, base.3 and so on.
func writeNode(dir, base string, fill func(io.Writer) error) (path string, err error) {
	for k := 1; ; k++ {
		name := base
		if k > 1 {
			name += "." + strconv.Itoa(k)
		}
		path = filepath.Join(dir, name)
		if journal.IsNameTaken(path) {
			continue
		}
		if err = reportfile.WriteNew(path+".json", fill); !errors.Is(err, fs.ErrExist) {
			return path + ".json", err
		}
	}
}
