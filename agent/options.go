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
	"github.com/perfagent/perfagent/reporter"
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
	DefaultLogLines       = 20
)

// Values for the fields of Options that select one of several choices. The empty string means the default.
const (
	Auto     = "auto"     // for MLflow, Cgroup, HTML and Reader
	Off      = "off"      // for MLflow, Listen, Cgroup, Ops and Redact
	Create   = "create"   // for Cgroup
	Always   = "always"   // for HTML
	Never    = "never"    // for HTML
	PerfPy   = "perf.py"  // for Compat
	Gopsutil = "gopsutil" // for Reader
)

// The limits of Options.
const (
	MinInterval       = 10 * time.Millisecond
	MinScrapeInterval = time.Second
	MinStoreEvery     = 10 * time.Second
	MaxMaxLength      = 1_000_000
	MaxNode           = math.MaxInt32 // readers of reports accept no larger index
	MaxLogLines       = reporter.MaxLogLines

	maxEndpoints = 8 // maximum length of Scrape
)

// Options configures a recording and its outputs. The fields have the names of the command line's flags, and their zero
// values mean the flags' defaults. The environment variables of schedulers and of MLflow have the same effect as for
// the command line. PERFAGENT_… variables are ignored, because they configure only the command line.
type Options struct {
	// Args is the command for Run, with its arguments. Start and Sidecar ignore it.
	Args []string

	// Out is the directory for reports. Files are written to Out/RunID/node-N.json. "" means DefaultOut.
	Out string

	// RunID names the run and must be the same on every node: up to 128 letters, digits, '.', '_' and '-'. "" means the
	// scheduler's job ID or, without a scheduler, the time and random digits.
	RunID string

	// Node is the index of this node. nil means the scheduler's index, or 0 without a scheduler. NodeFrom, for the
	// report, is the environment variable from which the caller took the index, or "" if there is none.
	Node     *int
	NodeFrom string

	// Interval is the time between samples, at least MinInterval. 0 means DefaultInterval.
	Interval time.Duration

	// MaxLength is the maximum number of samples to keep, from 2 to MaxMaxLength. 0 means DefaultMaxLength.
	MaxLength int

	// DiskPaths are paths on the file systems to measure. The reported disk usage is from the fullest file system. nil
	// means "/".
	DiskPaths []string

	// Tags are written to the report and sent to MLflow.
	Tags map[string]string

	// MLflow is Auto, Off, or the URI of a tracking server. Auto pushes if MLFLOW_TRACKING_URI is set. "" means Auto.
	MLflow string

	// Store is the address of a store for the node's report (see package store). "" means no store.
	Store string

	// StoreCredentials is an address with a user and password. They are used for Store if it is on the same server and
	// has no user and password itself.
	StoreCredentials string

	// StoreEvery is the interval between uploads of the report so far, at least MinStoreEvery, in case the node dies. 0
	// means DefaultStoreEvery; a negative value disables these uploads. They are also disabled for a ProxyStore, which
	// cannot change objects, and on a node with several ranks.
	StoreEvery time.Duration

	// PushTimeout limits how long the push may take after the run's end. 0 means DefaultPushTimeout; with a negative
	// value, nothing is sent.
	PushTimeout time.Duration

	// Listen is the address of a live page and of /metrics during the run: PORT (this machine only), HOST:PORT, or Off.
	// "" means Off.
	Listen string

	// ListenToken, if not empty, is required in every request for the live page and for /metrics: as a bearer token, or
	// as the password of any user.
	ListenToken string

	// Cgroup is how Run measures the job's usage: Auto (the process's current control group if it contains no other
	// process, else the job's processes), Create (a control group made for the job, if permitted; only with TakeOver),
	// Off (the job's processes). "" means Auto.
	Cgroup string

	// HTML is Auto, which writes a page next to the report of a run that took 2 s or failed, Always, or Never. "" means
	// Auto.
	HTML string

	// Compat is "", or PerfPy for perf.py's numbers in perf.py's file format.
	Compat string

	// Redact holds regular expressions in the syntax of package regexp. Wherever the command is written or shown, the
	// first group of each match in an argument is replaced with ***, or the whole match if there is no group. Passwords
	// and tokens are always replaced. The element Off turns all redaction off. The command itself gets its arguments
	// unchanged.
	Redact []string

	// Reader selects how CPU times, memory, disks, network and load are read: Auto (the kernel's files on Linux,
	// gopsutil elsewhere) or Gopsutil. "" means Auto.
	Reader string

	// Ops is the address to which the job sends its operations as datagrams of StatsD, DogStatsD or JSON: Off, "on"
	// (any two UDP ports of 127.0.0.1), [HOST:]PORT (PORT and the next port), or "unix:PATH". "" means Off. Run puts
	// the addresses into the job's environment.
	Ops string

	// Scrape holds the URLs of at most 8 Prometheus endpoints of the job. Each endpoint is scraped when the job has
	// started, and then every ScrapeInterval. ScrapeInterval is at least MinScrapeInterval; 0 means
	// DefaultScrapeInterval.
	Scrape         []string
	ScrapeInterval time.Duration

	// OpsChart holds patterns for the names of the series and transfers that get a timeline. They are patterns of
	// path.Match, except that "/" is an ordinary character. nil means the first 12 to appear.
	OpsChart []string

	// StopIf holds rules that end the command of Run. Their form is "KEY OP NUMBER [for DURATION]" (see
	// collector.ParseRule). They are checked at each sample. When one of them holds, the command's main process gets
	// TERM, and after StopGrace all processes of the command get KILL. Without TakeOver, processes orphaned between two
	// samples get no KILL. A StopGrace of 0 means DefaultStopGrace; with a negative value, KILL follows immediately.
	StopIf    []string
	StopGrace time.Duration

	// LogLines is the number of lines from the end of the job's log that the report of a failed Run contains, at most
	// MaxLogLines. The log is the regular file that the job has as its standard error or output. 0 means
	// DefaultLogLines, and that copies of the report for MLflow and for Store do not contain the lines. A negative value
	// means none.
	LogLines int

	// Stdin, Stdout and Stderr are the command's streams. nil means os.Stdin, os.Stdout and os.Stderr. The job gets the
	// descriptor of an *os.File; any other stream is copied, as in os/exec. Run returns when everything has been
	// copied: it waits for descendants of the job that have Stdout or Stderr open, and for a Stdin that blocks, whether
	// or not ctx is done.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Log receives the messages that the command line prints on stderr. nil means no logging.
	Log *zap.Logger

	// OnListen, if not nil, is called with the URL of the live page, before Start returns or later from a goroutine of
	// the run. It must not block. If OnListen is nil, the URL is written to Log.
	OnListen func(url string)

	// OnReady, if not nil, is called by Attach after the first reading. Usage is counted from that reading on.
	OnReady func(ReadyInfo)

	// OnReport, if not nil, is called after the report and its page have been written and before anything is pushed.
	OnReport func(*Result)

	// TakeOver gives the whole process to the run, as the command line does. Signals sent to the process are passed to
	// the job, orphans of the job are adopted and counted, all children are waited for, GOMAXPROCS is at most 2,
	// garbage is collected rarely, and the process becomes the command if no child can be created. Only one run in the
	// life of a process may set it, and no other run may be active at that time or begin later. Otherwise the error is
	// an *OptionError.
	TakeOver bool

	identity     scheduler.Identity // of this process, set by withDefaults
	isDefaultOut bool               // Out is DefaultOut
	nodeGiven    bool               // Node was given
	ownRunID     bool               // RunID was made from the time and random digits
	logsMayLeave bool               // LogLines was given
}

// An OptionError is the error for an invalid option.
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

// withDefaults returns o, which has been checked, with all defaults filled in, first from the scheduler's variables,
// then from the constants. It copies everything that the caller may change during the run.
func (o Options) withDefaults() Options {
	o.Args, o.DiskPaths, o.Tags = slices.Clone(o.Args), slices.Clone(o.DiskPaths), maps.Clone(o.Tags)
	o.Scrape, o.OpsChart = slices.Clone(o.Scrape), slices.Clone(o.OpsChart)
	o.StopIf = slices.Clone(o.StopIf)
	o.Redact = slices.Clone(o.Redact)
	if o.Node != nil {
		o.Node = new(*o.Node)
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
	o.logsMayLeave = o.LogLines > 0
	setDefault(&o.LogLines, DefaultLogLines)
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

// setLibraryDefaults fills in the defaults for a program that imports this package. Its job gets the program's streams,
// while a job of the command line inherits the descriptors, open or closed. Paths become absolute, because the program
// may change its working directory.
func (o *Options) setLibraryDefaults() {
	setDefault[io.Reader](&o.Stdin, os.Stdin)
	setDefault[io.Writer](&o.Stdout, os.Stdout)
	setDefault[io.Writer](&o.Stderr, os.Stderr)

	makeAbsolute(&o.Out)
	if strings.HasPrefix(o.Store, ".") {
		makeAbsolute(&o.Store)
	}
}

// makeAbsolute makes a path absolute.
func makeAbsolute(path *string) {
	if abs, err := filepath.Abs(*path); err == nil {
		*path = abs
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
	_, badStopIf := o.rules()
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
		// The error does not contain the token.
		{"ListenToken", refuse(strings.ContainsFunc(o.ListenToken, unicode.IsControl), "the token has a control character")},
		{"RunID", scheduler.CheckRunID(cmp.Or(o.RunID, "0"))},
		{"Tags", refuse(noKey, "a tag has no key")},
		{"Ops", o.checkOps()},
		{"Scrape", o.checkScrape()},
		{"ScrapeInterval", atLeast(o.ScrapeInterval, MinScrapeInterval)},
		{"OpsChart", refuse(slices.ContainsFunc(o.OpsChart, badPattern), "a pattern is empty, or has a [ without a ]")},
		{"StopIf", badStopIf},
		{"LogLines", refuse(o.LogLines > MaxLogLines, "%d is above %d", o.LogLines, MaxLogLines)},
		{"Redact", badRules},
	} {
		if check.err != nil {
			return &OptionError{check.option, check.err}
		}
	}

	return nil
}

// badPattern reports whether pattern is empty or not a valid pattern of path.Match.
func badPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return pattern == "" || err != nil
}

// atLeast returns an error if value is below least and not 0.
func atLeast(value, least time.Duration) error {
	return refuse(value != 0 && value < least, "%v is below %v", value, least)
}

// between returns an error unless value is from low to high.
func between(value, low, high int) error {
	return refuse(value < low || value > high, "%d is not between %d and %d", value, low, high)
}

// refuse returns an error with the formatted text if wrong is true, and nil otherwise.
func refuse(wrong bool, format string, args ...any) error {
	if wrong {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// checkCgroup rejects Create without TakeOver, because this process may have to move to another control group.
func (o Options) checkCgroup() error {
	if o.Cgroup == Create && !o.TakeOver {
		return errors.New("a control group needs TakeOver, because this process may have to move into another group")
	}
	return oneOf(o.Cgroup, Auto, Create, Off)
}

// checkMLflow also accepts a URI that only MLflow supports. Such a URI does not keep the job from running, and is
// reported at the end.
func (o Options) checkMLflow() error {
	if oneOf(o.MLflow, Auto, Off) == nil {
		return nil
	}

	if err := mlflow.CheckURI(o.MLflow); err != nil && !errors.Is(err, mlflow.ErrUnsupportedURI) {
		return fmt.Errorf("not auto, off or the URI of a server: %w", err)
	}

	return nil
}

// checkStore rejects an invalid address. It makes no connection.
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

// checkListen rejects an invalid address. An address in use is detected only when it is opened.
func (o Options) checkListen() error {
	if oneOf(o.Listen, Off) == nil {
		return nil
	}
	_, err := exporter.ParseAddress(o.Listen)
	return err
}

// errNoPlace is the error for options that combine operations with perf.py's format.
var errNoPlace = errors.New("perf.py's format has no place for operations")

func (o Options) checkOps() error {
	address, err := intake.ParseAddress(o.Ops)
	if err == nil && address != (intake.Address{}) && o.Compat == PerfPy {
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

// rules returns the rules of StopIf.
func (o Options) rules() (rules []collector.Rule, err error) {
	for _, words := range o.StopIf {
		rule, err := collector.ParseRule(words)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", words, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// errNothingToStop is the error for StopIf in recordings other than Run's.
var errNothingToStop = &OptionError{"StopIf", errors.New("only Run has a command that can be stopped")}

// redaction returns the rules of Redact, which have already been checked.
func (o Options) redaction() redact.Rules {
	rules, _ := redact.New(o.Redact)
	return rules
}

// oneOf returns an error unless value is empty or one of words.
func oneOf(value string, words ...string) error {
	if value == "" || slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("%q is not %s", value, text.Choice(words))
}
