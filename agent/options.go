package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/store"
)

// The defaults of Options.
const (
	DefaultInterval    = time.Second
	DefaultMaxLength   = 1000
	DefaultOut         = "perfagent-out"
	DefaultPushTimeout = 10 * time.Second
	DefaultStoreEvery  = time.Minute

	DefaultScrapeInterval = 5 * time.Second
	DefaultStopGrace      = 10 * time.Second
)

// Values of Options that name a choice. The empty string is the default of each.
const (
	Auto     = "auto"     // of MLflow, Cgroup, HTML and Reader
	Off      = "off"      // of MLflow, Listen, Cgroup, Ops and Redact
	Create   = "create"   // of Cgroup
	Always   = "always"   // of HTML
	Never    = "never"    // of HTML
	PerfPy   = "perf.py"  // of Compat
	Gopsutil = "gopsutil" // of Reader
)

// The limits of Options.
const (
	MinInterval       = 10 * time.Millisecond
	MinScrapeInterval = time.Second
	MinStoreEvery     = 10 * time.Second
	MaxMaxLength      = 1_000_000
	MaxNode           = math.MaxInt32 // what readers of reports accept

	maxEndpoints = 8 // that are scraped
)

// Options say what to measure and where the report goes. The fields have the names of the command
// line's flags, and their zero values stand for the flags' defaults. The variables of schedulers and
// of MLflow are obeyed as on the command line. The PERFAGENT_… variables are not: they belong to the
// command line.
type Options struct {
	// Args is the command that Run wraps, with its arguments. Start and Sidecar ignore it.
	Args []string

	// Out is the directory of the reports: files go to Out/RunID/node-N.json.
	// "" is DefaultOut.
	Out string

	// RunID names the run, the same on every node: up to 128 letters, digits, '.', '_' and '-'.
	// "" is the scheduler's job ID, else the time and random digits.
	RunID string

	// Node is the index of this node. nil is the scheduler's, else 0. NodeFrom is the variable that the index
	// comes from, if it is one of the program's own; reports say it.
	Node     *int
	NodeFrom string

	// Interval is the time between samples, at least MinInterval. 0 is DefaultInterval.
	Interval time.Duration

	// MaxLength is the maximum number of samples to keep, from 2 to MaxMaxLength. 0 is
	// DefaultMaxLength.
	MaxLength int

	// DiskPaths are paths on the file systems to measure; the fullest one counts.
	// nil is "/".
	DiskPaths []string

	// Tags go into the report and to MLflow.
	Tags map[string]string

	// MLflow is Auto, Off, or the URI of a tracking server. Auto pushes if
	// MLFLOW_TRACKING_URI is set. "" is Auto.
	MLflow string

	// Store is the address of a store, see package store, that gets the report of the node, too; "" is none.
	Store string

	// StoreCredentials is an address whose user and password are used for Store if that is at the same server and has
	// none.
	StoreCredentials string

	// StoreEvery is how often the report so far is put into the store, at least MinStoreEvery, so that a node
	// that dies leaves its past. 0 is DefaultStoreEvery, a negative value is never. A ProxyStore, in which no
	// object changes, gets none, nor does a node of several ranks.
	StoreEvery time.Duration

	// PushTimeout is how long to keep pushing after the end. 0 is DefaultPushTimeout; a negative
	// value sends nothing.
	PushTimeout time.Duration

	// Listen is the address of a live page and of /metrics during the run: PORT (this machine
	// only), HOST:PORT, or Off. "" is Off.
	Listen string

	// ListenToken, if not empty, is what every request for the live page and for /metrics must have: as a
	// bearer token, or as the password of any user.
	ListenToken string

	// Cgroup is how Run measures the job's own usage: Auto (the process's own control group if
	// nothing else is in it, else the job's processes), Create (a control group made for the job,
	// if permitted; only with TakeOver), Off (the job's processes). "" is Auto.
	Cgroup string

	// HTML is Auto, which writes a page beside the report of a run that took 2 s or failed, Always, or Never.
	// "" is Auto.
	HTML string

	// Compat is "", or PerfPy for perf.py's numbers in perf.py's file format.
	Compat string

	// Redact are regular expressions in the syntax of package regexp. The first group of each match in
	// an argument of the command, or all of the match, is replaced by *** wherever the command is
	// written or shown, as passwords and tokens are in any case. Off among them turns all of it off.
	// The command itself gets its arguments as they are.
	Redact []string

	// Reader is how CPU times, memory, disks, network and load are read: Auto (the kernel's files on
	// Linux, gopsutil elsewhere) or Gopsutil. "" is Auto.
	Reader string

	// Ops is where the job may say what it does, by datagrams of StatsD, of DogStatsD, or of JSON: Off,
	// "on" (any two UDP ports of 127.0.0.1), [HOST:]PORT (that port and the next one), or "unix:PATH". ""
	// is Off. Run puts the addresses into the job's environment.
	Ops string

	// Scrape are URLs of Prometheus endpoints of the job, at most 8. Each is asked when the job has
	// started and then every ScrapeInterval, at least MinScrapeInterval. 0 is DefaultScrapeInterval.
	Scrape         []string
	ScrapeInterval time.Duration

	// OpsChart are patterns, as of path.Match, of the series and transfers that get a time line, in which "/" is like
	// other characters. nil is the first 12 to appear.
	OpsChart []string

	// StopIf are rules that end the command of Run: "KEY OP NUMBER [for DURATION]", see
	// collector.ParseRule. They are checked at each sample. When one of them holds, the command's main
	// process gets TERM, and after StopGrace all processes of the command get KILL; without TakeOver
	// that leaves out those whose parents ended between two samples. A StopGrace of 0 is
	// DefaultStopGrace; with a negative value KILL follows at once.
	StopIf    []string
	StopGrace time.Duration

	// Stdin, Stdout and Stderr are the command's. nil is os.Stdin, os.Stdout and os.Stderr. An
	// *os.File is passed to the job itself; anything else is copied, as in os/exec. Run returns when
	// everything is copied: it waits for a descendant of the job that has Stdout or Stderr open, and
	// for a Stdin that blocks, whether or not ctx is done.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Log gets what the command line prints on stderr. If it is nil, nothing is logged.
	Log *zap.Logger

	// OnListen, if not nil, is called with the URL of the live page, before Start returns or later
	// from a goroutine of the run. It must not block. If it is nil, the URL goes to Log.
	OnListen func(url string)

	// OnReady, if not nil, is called by Attach when the first reading has been taken: from then on
	// everything counts.
	OnReady func(ReadyInfo)

	// OnReport, if not nil, is called when the report and its page have been written, before
	// anything is pushed.
	OnReport func(*Result)

	// TakeOver gives the whole process to the run, as the command line does. Signals sent to the
	// process are passed to the job, orphans of the job are adopted and counted, all children are
	// waited for, GOMAXPROCS is at most 2, garbage is collected rarely, and the process becomes
	// the command if no child can be created. Only one run in the life of a process may set it, and
	// no other run may be active then or begin later: the error is an *OptionError.
	TakeOver bool

	identity     scheduler.Identity // of this process; settled finds it
	isDefaultOut bool               // reports whether Out is the default
	nodeGiven    bool               // reports whether Node was given
	ownRunID     bool               // reports whether RunID was made from the time and random digits
}

// An OptionError says which of the Options is wrong.
type OptionError struct {
	Option string // "Interval"
	Err    error
}

// Error implements error.
func (e *OptionError) Error() string { return "agent: option " + e.Option + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }

// ErrNoCommand is the error of Run for Options without Args.
var ErrNoCommand = errors.New("agent: no command")

// withDefaults returns checked options with all defaults filled in, first from the scheduler's variables,
// then from the constants. It copies what the caller may change during the run.
func (o Options) withDefaults() Options {
	o.Args, o.DiskPaths, o.Tags = slices.Clone(o.Args), slices.Clone(o.DiskPaths), maps.Clone(o.Tags)
	o.Scrape, o.OpsChart = slices.Clone(o.Scrape), slices.Clone(o.OpsChart)
	o.StopIf = slices.Clone(o.StopIf)
	o.Redact = slices.Clone(o.Redact)
	if o.Node != nil {
		node := *o.Node
		o.Node = &node
	}

	setDefault(&o.Out, DefaultOut)
	o.isDefaultOut = o.Out == DefaultOut
	setDefault(&o.Interval, DefaultInterval)
	setDefault(&o.MaxLength, DefaultMaxLength)
	setDefault(&o.MLflow, Auto)
	setDefault(&o.PushTimeout, DefaultPushTimeout)
	setDefault(&o.StoreEvery, DefaultStoreEvery)
	setDefault(&o.Listen, Off)
	setDefault(&o.Cgroup, Auto)
	setDefault(&o.HTML, Auto)
	setDefault(&o.Reader, Auto)
	setDefault(&o.Ops, Off)
	setDefault(&o.ScrapeInterval, DefaultScrapeInterval)
	setDefault(&o.StopGrace, DefaultStopGrace)
	setDefault(&o.Log, zap.NewNop())

	if len(o.DiskPaths) == 0 {
		o.DiskPaths = []string{"/"}
	}

	if !o.TakeOver {
		o.setLibraryDefaults()
	}

	o.identity = scheduler.Detect(scheduler.CurrentEnvironment())
	setDefault(&o.RunID, o.identity.RunID)
	o.ownRunID = o.RunID == ""
	setDefault(&o.RunID, scheduler.NewRunID(time.Now()))
	if o.Node != nil && inheritsNode(o.NodeFrom, *o.Node, o.identity.Launch) {
		o.Node = nil
	}
	if o.nodeGiven = o.Node != nil; !o.nodeGiven {
		o.Node = cmp.Or(o.identity.Node, new(int))
	}

	return o
}

// setLibraryDefaults fills in what another program than perfagent needs: its own streams, where the command line's job
// inherits the descriptors themselves, open or closed; and absolute paths, as it may change its directory.
func (o *Options) setLibraryDefaults() {
	setDefault[io.Reader](&o.Stdin, os.Stdin)
	setDefault[io.Writer](&o.Stdout, os.Stdout)
	setDefault[io.Writer](&o.Stderr, os.Stderr)

	settleDir(&o.Out)
	if strings.HasPrefix(o.Store, ".") {
		settleDir(&o.Store)
	}
}

// settleDir makes a path absolute.
func settleDir(path *string) {
	if whole, err := filepath.Abs(*path); err == nil {
		*path = whole
	}
}

func setDefault[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

// Check returns an *OptionError for the first option with a bad value.
func (o Options) Check() error {
	node := cmp.Or(o.Node, new(int))
	_, noKey := o.Tags[""]
	_, badRules := redact.New(o.Redact)
	for _, check := range []struct {
		option string
		err    error
	}{
		{"Interval", atLeast(o.Interval, MinInterval)},
		{"MaxLength", between(cmp.Or(o.MaxLength, 2), 2, MaxMaxLength)},
		{"Node", between(*node, 0, MaxNode)},
		{"HTML", oneOf(o.HTML, Auto, Always, Never)},
		{"Cgroup", o.checkCgroup()},
		{"Compat", oneOf(o.Compat, PerfPy)},
		{"Reader", oneOf(o.Reader, Auto, Gopsutil)},
		{"DiskPaths", refuse(slices.Contains(o.DiskPaths, ""), "a path is empty")},
		{"MLflow", o.checkMLflow()},
		{"Store", o.checkStore()},
		{"StoreEvery", atLeast(max(0, o.StoreEvery), MinStoreEvery)},
		{"Listen", o.checkListen()},
		// The error does not say what the token is.
		{"ListenToken", refuse(strings.ContainsFunc(o.ListenToken, unicode.IsControl), "the token has a control character")},
		{"RunID", scheduler.CheckRunID(cmp.Or(o.RunID, "0"))},
		{"Tags", refuse(noKey, "a tag without a key")},
		{"Ops", o.checkOps()},
		{"Scrape", o.checkScrape()},
		{"ScrapeInterval", atLeast(o.ScrapeInterval, MinScrapeInterval)},
		{"OpsChart", refuse(slices.ContainsFunc(o.OpsChart, badPattern), "a pattern is empty, or has a [ without an end")},
		{"StopIf", o.checkStopIf()},
		{"Redact", badRules},
	} {
		if check.err != nil {
			return &OptionError{check.option, check.err}
		}
	}

	return nil
}

// badPattern reports whether a text is not a pattern of path.Match that fits anything.
func badPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return pattern == "" || err != nil
}

// atLeast returns an error if value is below least; 0 is the default.
func atLeast(value, least time.Duration) error {
	return refuse(value != 0 && value < least, "%v is below %v", value, least)
}

// between returns an error unless value is from low to high.
func between(value, low, high int) error {
	return refuse(value < low || value > high, "%d is not between %d and %d", value, low, high)
}

// refuse returns an error if something is wrong.
func refuse(wrong bool, format string, args ...any) error {
	if wrong {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// checkCgroup rejects Create without TakeOver: making the control group may require this process to
// move to another one.
func (o Options) checkCgroup() error {
	if o.Cgroup == Create && !o.TakeOver {
		return errors.New("a control group is made only with TakeOver, because this process may have to move for it")
	}
	return oneOf(o.Cgroup, Auto, Create, Off)
}

// checkMLflow accepts a URI that MLflow knows but perfagent cannot push to. Such a URI stops no job;
// it is reported at the end.
func (o Options) checkMLflow() error {
	if oneOf(o.MLflow, Auto, Off) == nil {
		return nil
	}

	var unsupported *mlflow.UnsupportedURIError
	if err := mlflow.CheckURI(o.MLflow); err != nil && !errors.As(err, &unsupported) {
		return fmt.Errorf("neither auto, off nor the URI of a server: %w", err)
	}

	return nil
}

// checkStore rejects what is no address. It looks at nothing but the address.
func (o Options) checkStore() error {
	if o.Store == "" {
		return nil
	}
	s, err := store.Open(o.Store, store.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// checkListen rejects what cannot be an address. Whether the address is free shows when it is opened.
func (o Options) checkListen() error {
	if oneOf(o.Listen, Off) == nil {
		return nil
	}
	_, err := exporter.ParseAddress(o.Listen)
	return err
}

// errNoPlace is why perf.py's format and operations exclude each other.
var errNoPlace = errors.New("perf.py's format has no place for operations")

func (o Options) checkOps() error {
	address, err := intake.ParseAddress(o.Ops)
	if err == nil && !address.IsZero() && o.Compat == PerfPy {
		return errNoPlace
	}
	return err
}

func (o Options) checkScrape() error {
	switch {
	case len(o.Scrape) > maxEndpoints:
		return fmt.Errorf("%d endpoints are given, and at most %d are scraped", len(o.Scrape), maxEndpoints)
	case len(o.Scrape) > 0 && o.Compat == PerfPy:
		return errNoPlace
	}
	for _, value := range o.Scrape {
		if _, err := intake.ParseEndpoint(value); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) checkStopIf() error {
	for _, words := range o.StopIf {
		if _, err := collector.ParseRule(words); err != nil {
			return fmt.Errorf("%q: %w", words, err)
		}
	}
	return nil
}

// errNothingToStop is why StopIf is for Run only.
var errNothingToStop = &OptionError{"StopIf", errors.New("only Run has a command that can be stopped")}

// redaction returns the rules of Redact, which were checked before.
func (o Options) redaction() redact.Rules {
	rules, _ := redact.New(o.Redact)
	return rules
}

// oneOf returns an error unless value is empty or one of the words.
func oneOf(value string, words ...string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("%q is not %s", value, text.Choice(words))
}
