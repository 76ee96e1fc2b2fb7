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

// A standing is where a recording stands among those of its launch on its node.
type standing struct {
	roster *roster.Roster // nil if the recording shares nothing

	// rank is the rank as decimal text; "" as long as the recording seems to be the only one of its launch.
	rank string

	// piece reports whether there are other ranks on the node, so that the report is a piece of the node's.
	piece bool

	// holds reports whether the host is ours to measure from the beginning.
	holds bool

	missing []reporter.Missing
}

// join finds the other agents of the launch on this node. It waits for none of them. A run whose id nobody else
// can have has no others.
func (s *session) join() {
	s.standing = standing{holds: true}
	id := s.o.identity
	if s.o.Compat != "" || s.o.ownRunID {
		return
	}
	if p, ok := findParent(); ok && id.Launch == "" && p.contains() {
		return
	}

	r, err := answered("join the perfagents of this node", func() (*roster.Roster, error) {
		return roster.Join(roster.Dirs(), s.rosterKey(), id.Rank)
	})
	if errors.Is(err, roster.ErrNested) {
		return
	}
	if id.Rank != nil && id.WorldSize > 1 {
		s.standing.rank, s.standing.piece = strconv.Itoa(*id.Rank), id.RanksOnNode != 1
	}
	founder := ""
	if err == nil {
		s.standing.roster, s.standing.holds, founder = r, r.TakeHost(), r.Founder()
		s.meetOthers()
	} else if s.standing.piece {
		s.standing.missing = []reporter.Missing{{What: "ranks", Code: reporter.RanksUnseen, Why: err.Error()}}
	}
	if s.standing.piece {
		s.tracking.amongRanks(s.rosterKey().String()+founder, s.standing.holds)
	}
}

// meetOthers makes the recording that of one rank of several if there are other agents on the node.
func (s *session) meetOthers() {
	r := s.standing.roster
	if s.standing.piece || r == nil || !r.Others() {
		return
	}

	s.standing.piece = true
	if rank := s.o.identity.Rank; rank != nil {
		s.standing.rank = strconv.Itoa(*rank)
	} else {
		s.standing.rank = strconv.Itoa(r.Arrival())
	}
}

// rosterKey returns what the agents have in common that share the host.
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
	if s.standing.piece {
		return journal.BaseName(*s.o.Node, s.fileHost(), s.standing.rank)
	}
	return s.nodeFileName()
}

// nodeFileName returns the name of the files of the whole node, without extension.
func (s *session) nodeFileName() string { return journal.BaseName(*s.o.Node, s.fileHost(), "") }

// fileHost returns the name of the host for the names of files, where a launcher tells no index of the node; ""
// where there is an index, or no launcher.
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

// takeHost returns what a Sampler asks at each tick while another agent measures the host; nil if ours does.
// begin is called when the host has become ours.
func (s *session) takeHost(begin func()) func() bool {
	r := s.standing.roster
	if s.standing.holds || r == nil {
		return nil
	}
	return func() bool {
		if !r.TakeHost() {
			return false
		}
		s.tracking.takeOver()
		begin()
		return true
	}
}

// releaseHost leaves the host to another agent.
func (s *session) releaseHost() {
	if r := s.standing.roster; r != nil {
		r.ReleaseHost()
	}
}

// leave leaves the roster and returns the reports of all agents of the node if this one is the last of several.
func (s *session) leave(piece string) []string {
	r := s.standing.roster
	if r == nil {
		return nil
	}

	announced := 0
	if id := s.o.identity; id.Rank != nil {
		announced = id.RanksOnNode
	}
	if piece != "" {
		piece = absolute(piece)
	}

	return r.Leave(piece, announced)
}

// absolute returns an absolute path. Unlike filepath.Abs it looks at no file: the working directory may be on a file
// system that hangs.
func absolute(path string) string {
	dir, err := syscall.Getwd()
	if err != nil || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// deliverPiece writes the report of a rank. The last one out of the node puts all of them together, and only it
// calls OnReport and pushes.
func (s *session) deliverPiece(in diagnosis.Input, result *Result, cut <-chan string) error {
	result.Piece, result.Report = true, s.makeReport(in)
	s.output.rename(s.fileName())
	var err error
	result.ReportPath, err = s.output.save(s.encoding(result.Report, in.Recording))
	pieces := s.leave(result.ReportPath)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	if len(pieces) == 0 {
		return nil
	}
	if err := s.closeNode(pieces, result, cut); err != nil { // every piece is there still
		s.log.Warn(fmt.Sprintf("put the ranks of the node together: %v; their reports stay as they are", err))
	}

	return nil
}

// closeNode puts the pieces of a node together in one report with a page, removes them, and pushes. It gives up on a
// file system that hangs.
func (s *session) closeNode(pieces []string, result *Result, cut <-chan string) error {
	s.o.workBeside()
	dir := filepath.Dir(result.ReportPath)
	for _, piece := range pieces {
		if other := filepath.Dir(piece); other != absolute(dir) { // one of them could not write to OUT
			return fmt.Errorf("they are in %s and in %s", dir, other)
		}
	}

	node, err := combine(pieces)
	if err != nil {
		return err
	}
	if s.o.TakeOver {
		debug.SetGCPercent(200) // it ends soon, and others wait for it
	}
	name := node.NodeNames()[0] // the only one
	d := delivery{report: node, node: name}
	file, err := s.prepare(&d, func(w io.Writer) error { return reporter.EncodeTo(w, node) })
	if err != nil {
		return err
	}
	d.path, err = s.replacePieces(pieces, dir, file)
	if err != nil {
		return err
	}
	result.Piece, result.Report = false, node
	result.ReportPath, result.PagePath = d.path, s.savePage(d.path, node)

	s.conclude(result, d, cut)
	return nil
}

// combine reads the pieces of a node and puts them together.
func combine(paths []string) (node *reporter.Report, err error) {
	defer noPanic("damaged report", &err)

	var sources []reporter.Source
	err = parallel.InOrder(len(paths), func(i int, emit func(reporter.Source) error) error {
		piece, err := answered("read report "+paths[i], func() (*reporter.Report, error) {
			return reportfile.Read(paths[i], 0)
		})
		if err != nil {
			return err
		}
		return emit(reporter.Source{Path: paths[i], Report: piece})
	}, func(piece reporter.Source) error {
		sources = append(sources, piece)
		return nil
	})
	if err != nil {
		return nil, err
	}

	return diagnosis.Combine(sources)
}

// replacePieces writes the report of a node and then removes its pieces. It returns the report's path.
func (s *session) replacePieces(pieces []string, dir string, fill func(io.Writer) error) (path string, err error) {
	return answered("write report of the node into "+dir, func() (string, error) {
		path, err := writeNode(dir, s.nodeFileName(), fill)
		if err != nil {
			return "", err
		}
		for _, piece := range pieces {
			if err := os.Remove(piece); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.log.Warn(fmt.Sprintf("remove report of a rank: %v", err))
			}
		}
		return path, nil
	})
}

// writeNode writes the report of a node under the first name that no recording has.
func writeNode(dir, base string, fill func(io.Writer) error) (path string, err error) {
	for k := 1; ; k++ {
		name := base
		if k > 1 {
			name += "." + strconv.Itoa(k)
		}
		path = filepath.Join(dir, name)
		if journal.Claimed(path) {
			continue
		}
		if err = reportfile.WriteNew(path+".json", fill); !errors.Is(err, fs.ErrExist) {
			return path + ".json", err
		}
	}
}
