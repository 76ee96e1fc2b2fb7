package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/summary"
)

// recordOptions are the flags that run and sidecar share.
type recordOptions struct {
	agent.Options

	node        int
	pushTimeout time.Duration
	tags        []string
	summary     string
	logLevel    string
	logFormat   string

	streams streams
	log     *logger
	// tellURL says where the live page is whatever --log-level is: there is no job whose stderr
	// that might be.
	tellURL bool
}

// environment maps each flag that has one to its variable.
var environment = []struct{ flag, variable string }{
	{"interval", "PERFAGENT_INTERVAL"},
	{"max-length", "PERFAGENT_MAX_LENGTH"},
	{"out", "PERFAGENT_OUT"},
	{"run-id", "PERFAGENT_RUN_ID"},
	{"node", "PERFAGENT_NODE"},
	{"disk-path", "PERFAGENT_DISK_PATH"},
	{"summary", "PERFAGENT_SUMMARY"},
	{"html", "PERFAGENT_HTML"},
	{"mlflow", "PERFAGENT_MLFLOW"},
	{"push-timeout", "PERFAGENT_PUSH_TIMEOUT"},
	{"listen", "PERFAGENT_LISTEN"},
	{"cgroup", "PERFAGENT_CGROUP"}, // run only
}

// flagOf maps the options that package agent checks to their flags.
var flagOf = map[string]string{
	"Interval": "interval", "MaxLength": "max-length", "Node": "node", "HTML": "html", "Cgroup": "cgroup",
	"Compat": "compat", "DiskPaths": "disk-path", "MLflow": "mlflow", "Listen": "listen", "RunID": "run-id", "Tags": "tag",
}

// addRecordFlags declares the flags. Their defaults are the program's.
func addRecordFlags(f *pflag.FlagSet, o *recordOptions) {
	f.DurationVar(&o.Interval, "interval", agent.DefaultInterval, "time between samples, at least 10ms")
	f.IntVar(&o.MaxLength, "max-length", agent.DefaultMaxLength, "kept samples at most (rounded up to even); older ones are merged, peaks stay")
	f.StringVar(&o.Out, "out", agent.DefaultOut, "directory of the reports: `DIR`/RUN-ID/node-N.json")
	f.StringVar(&o.RunID, "run-id", "", "name of the run, the same on every node (default: the scheduler's job id, else time and random)")
	f.IntVar(&o.node, "node", 0, "index of this node (default: from the scheduler, else 0)")
	f.StringArrayVar(&o.DiskPaths, "disk-path", []string{"/"}, "a `PATH` on the file system whose fill is measured; repeatable, the fullest counts; in the variable separated by ':'")
	f.StringVar(&o.summary, "summary", "auto", "summary on stderr at the end: auto (when stderr is a terminal), always, never")
	addHTMLFlag(f, &o.HTML)
	f.StringVar(&o.Compat, "compat", "", "\"perf.py\": its numbers and its file instead of ours")
	f.StringArrayVar(&o.tags, "tag", nil, "`KEY=VALUE` for the report and the MLflow run; repeatable")
	f.StringVar(&o.MLflow, "mlflow", agent.Auto, "push to an MLflow server: auto (when MLFLOW_TRACKING_URI is set), off, or a `URI`")
	f.DurationVar(&o.pushTimeout, "push-timeout", agent.DefaultPushTimeout, "what pushing may take after the job's end; what is missing then, perfagent push sends later")
	f.StringVar(&o.Listen, "listen", agent.Off, "serve a live page and Prometheus' /metrics at `ADDR`: PORT (this machine only), HOST:PORT, 0.0.0.0:PORT; port 0 is any free one")
	f.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error, on stderr")
	f.StringVar(&o.logFormat, "log-format", "console", "console or json")

	for _, e := range environment {
		if flag := f.Lookup(e.flag); flag != nil {
			flag.Usage += " [$" + e.variable + "]"
		}
	}
}

// addHTMLFlag declares the flag of the commands that write a page beside a report.
func addHTMLFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "html", agent.Auto, "the page beside the report: auto (write it) or never")
}

// prepare settles the options and makes the log: what run and sidecar do first.
func (o *recordOptions) prepare(cmd *cobra.Command) error {
	o.TakeOver = !o.streams.inside
	if o.streams.inside {
		o.Stdin, o.Stdout, o.Stderr = o.streams.in, o.streams.out, o.streams.err
	}
	if err := o.settle(cmd); err != nil {
		return err
	}

	log, err := newLogger(o.streams.err, o.logLevel, o.logFormat)
	if err != nil {
		return err
	}

	o.log = log
	o.Log, o.OnListen, o.OnReport = log.Logger, o.sayURL, o.showSummary

	return nil
}

// settle fills in from the environment what no flag gave, and checks everything. Errors name the
// flag or the variable.
func (o *recordOptions) settle(cmd *cobra.Command) error {
	from := make(map[string]string)
	for _, e := range environment {
		value := os.Getenv(e.variable)
		if cmd.Flags().Changed(e.flag) || value == "" || cmd.Flags().Lookup(e.flag) == nil {
			continue
		}
		from[e.flag] = e.variable
		if err := setFlag(cmd, e.flag, value); err != nil {
			return fmt.Errorf("%s=%q: %w", e.variable, value, err)
		}
	}

	wrong := func(flag string, err error) error {
		if variable := from[flag]; variable != "" {
			return fmt.Errorf("%s: %w", variable, err)
		}
		return fmt.Errorf("--%s: %w", flag, err)
	}

	if cmd.Flags().Changed("run-id") && o.RunID == "" {
		return wrong("run-id", errors.New("an empty name"))
	}
	if cmd.Flags().Changed("node") {
		o.Node = &o.node
	}
	if o.PushTimeout = o.pushTimeout; o.pushTimeout == 0 {
		o.PushTimeout = -1 // nothing is sent
	}
	if flag, err := o.check(); err != nil {
		return wrong(flag, err)
	}

	var bad *agent.OptionError
	if err := o.Options.Check(); errors.As(err, &bad) {
		return wrong(flagOf[bad.Option], bad.Err)
	}

	return nil
}

// setFlag sets a flag from the environment. A list is separated as PATH is.
func setFlag(cmd *cobra.Command, name, value string) error {
	flag := cmd.Flags().Lookup(name)
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return list.Replace(strings.Split(value, string(os.PathListSeparator)))
	}

	return cmd.Flags().Set(name, value)
}

// check refuses what package agent cannot know to be bad: where a flag may not be empty or 0, it
// would take its default. It returns the flag, too.
func (o *recordOptions) check() (flag string, err error) {
	switch {
	case o.Interval == 0:
		return "interval", fmt.Errorf("%v is below %v", o.Interval, agent.MinInterval)
	case o.MaxLength == 0:
		return "max-length", fmt.Errorf("0 is not between 2 and %d", agent.MaxMaxLength)
	case o.Out == "":
		return "out", errors.New("an empty directory name")
	case o.summary != "auto" && o.summary != "always" && o.summary != "never":
		return "summary", fmt.Errorf("%q is not auto, always or never", o.summary)
	case o.pushTimeout < 0:
		return "push-timeout", fmt.Errorf("%v is negative", o.pushTimeout)
	}

	for flag, value := range map[string]string{"html": o.HTML, "mlflow": o.MLflow, "listen": o.Listen} {
		if value == "" {
			return flag, errors.New("an empty value")
		}
	}

	o.Tags, err = tagMap(o.tags)

	return "tag", err
}

// tagMap returns the tags by key.
func tagMap(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}

	tags := make(map[string]string, len(list))
	for _, t := range list {
		key, value, found := strings.Cut(t, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE", t)
		}
		tags[key] = value
	}

	return tags, nil
}

// sayURL says where the live page is: on a terminal, and where any port was asked for. Elsewhere
// stderr is the job's, and only the log has it.
func (o *recordOptions) sayURL(url string) {
	address, _ := exporter.ParseAddress(o.Listen) // checked before
	tell := o.tellURL || address.Port == "0" || inForeground(o.streams.err)
	if tell && !o.log.enabledInfo() {
		fmt.Fprintf(o.streams.err, "perfagent: listening on %s\n", url)
		return
	}
	o.log.Info("listening on " + url)
}

func (o *recordOptions) wantsSummary() bool {
	return o.summary == "always" || o.summary == "auto" && isTerminal(o.streams.err)
}

// showSummary prints the summary, once the report has been written.
func (o *recordOptions) showSummary(r *agent.Result) {
	ignoreBackground()
	if !o.wantsSummary() {
		return
	}

	var out bytes.Buffer // one write: it is read whole or not at all
	_ = summary.Write(&out, r.Report, summaryOptions(r.Report, o.streams.err, r.ReportPath, r.PagePath))
	if _, err := o.streams.err.Write(out.Bytes()); err != nil {
		o.log.Debug(fmt.Sprintf("write summary: %v", err))
	}
}

// conclude says what was pushed, where a summary was asked for.
func (o *recordOptions) conclude(r *agent.Result) {
	switch {
	case r == nil || r.Pushed == "":
	case o.wantsSummary():
		fmt.Fprintf(o.streams.err, "perfagent: %s\n", text.Printable(r.Pushed))
	default:
		o.log.Debug(r.Pushed)
	}
}

var errNoCommand = errors.New("no command: perfagent run [flags] -- CMD [ARG…]")
