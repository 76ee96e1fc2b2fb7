package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/agent/exporter"
)

// recordOptions are the options of the commands that record: run, attach and sidecar.
type recordOptions struct {
	agent.Options

	node        int
	pushTimeout time.Duration
	storeEvery  time.Duration
	stopGrace   time.Duration
	logLines    int
	tags        []string
	summary     string
	quiet       bool
	noPage      bool
	piped       bool // stdout is a pipe (run only)
	logLevel    string
	logFormat   string
	length      time.Duration // --for of sidecar and attach; 0 = until a signal
	tokenFile   string
	onEnd       string

	streams streams
	// alwaysPrintURL makes printURL print the address of the live page at every --log-level. It is set for commands
	// that start no job, which would write to the same stderr.
	alwaysPrintURL bool
}

// noPage is the flag that makes run, attach, sidecar and merge write no page. noPageVariable is its environment
// variable.
const (
	noPage         = "no-page"
	noPageVariable = "PERFAGENT_NO_PAGE"
)

// storeVariable is the environment variable that holds the address of a store. Its user and password also apply to
// other addresses of the same server.
const storeVariable = "PERFAGENT_STORE"

// environment maps flags to environment variables, in the order in which the flags are set.
var environment = []struct{ flag, variable string }{
	{"interval", "PERFAGENT_INTERVAL"},
	{"max-length", "PERFAGENT_MAX_LENGTH"},
	{"out", "PERFAGENT_OUT"},
	{"run-id", "PERFAGENT_RUN_ID"},
	{"node", "PERFAGENT_NODE"},
	{"disk-path", "PERFAGENT_DISK_PATH"},
	{"summary", "PERFAGENT_SUMMARY"},
	{noPage, noPageVariable},
	{"mlflow", "PERFAGENT_MLFLOW"},
	{"store", storeVariable},
	{"store-every", "PERFAGENT_STORE_EVERY"},
	{"push-timeout", "PERFAGENT_PUSH_TIMEOUT"},
	{"listen", "PERFAGENT_LISTEN"},
	{"cgroup", "PERFAGENT_CGROUP"}, // run only
	{"reader", "PERFAGENT_READER"},
	{"ops", "PERFAGENT_OPS"},
	{"scrape", "PERFAGENT_SCRAPE"},
	{"scrape-interval", "PERFAGENT_SCRAPE_INTERVAL"},
	{"ops-chart", "PERFAGENT_OPS_CHART"},
	{"stop-if", "PERFAGENT_STOP_IF"},       // run only
	{"stop-grace", "PERFAGENT_STOP_GRACE"}, // run only
	{"log-lines", "PERFAGENT_LOG_LINES"},   // run only
	{"redact", "PERFAGENT_REDACT"},
	{listenToken, "PERFAGENT_LISTEN_TOKEN"}, // holds the token; the flag names a file
	{"on-end", "PERFAGENT_ON_END"},
}

// flagOf maps the option that an agent.OptionError names to its flag.
var flagOf = map[string]string{
	"Interval": "interval", "MaxLength": "max-length", "Node": "node", "HTML": noPage, "Cgroup": "cgroup",
	"Compat": "compat", "DiskPaths": "disk-path", "MLflow": "mlflow", "Store": "store", "StoreEvery": "store-every",
	"Listen": "listen", "RunID": "run-id", "Tags": "tag", "Reader": "reader", "Ops": "ops", "Scrape": "scrape",
	"ScrapeInterval": "scrape-interval", "OpsChart": "ops-chart", "StopIf": "stop-if", "Redact": "redact",
	"ListenToken": listenToken, "LogLines": "log-lines",
}

// addRecordFlags declares the flags of the commands that record, with their defaults. In a description, text after a
// line break is shown only by --help.
func addRecordFlags(f *pflag.FlagSet, o *recordOptions) {
	f.DurationVarP(&o.Interval, "interval", "i", agent.DefaultInterval, "time between samples, at least 10ms")
	f.IntVar(&o.MaxLength, "max-length", agent.DefaultMaxLength,
		"maximum number of samples, rounded up to an even number; beyond that, neighbors are merged, and peaks are kept")
	f.StringVarP(&o.Out, "out", "o", agent.DefaultOut,
		"directory for runs; this run is written to `DIR`/RUN-ID/node-N.json and .html")
	f.StringVar(&o.RunID, "run-id", "",
		"`name` of the run (default: the scheduler's job ID, or the time plus random digits)\n; the same for every node")
	f.IntVar(&o.node, "node", 0, "index of this node (default: from the scheduler, or 0)")
	f.StringArrayVar(&o.DiskPaths, "disk-path", []string{"/"}, "report the usage of `PATH`'s file system; repeatable, "+
		"separated by colons in the variable; the fullest file system counts")
	f.StringVar(&o.summary, "summary", summaryAuto,
		"what to print on stderr at the end, and `when`: always (the summary), line (one line), never, or auto (the "+
			"summary on a terminal; otherwise one line, but after a success only under a scheduler or in CI)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing at the end; same as --summary never")
	f.BoolVar(&o.noPage, noPage, false, "write no page next to the report; --no-page=false writes one even after a "+
		"success in less than 2 s")
	f.StringVar(&o.Compat, "compat", "", "\"perf.py\": report perf.py's numbers in perf.py's `format`")
	f.StringArrayVarP(&o.tags, "tag", "t", nil, "add `KEY=VALUE` to the report and to MLflow; repeatable")

	f.StringVar(&o.MLflow, "mlflow", agent.Auto,
		"push the report to an MLflow server: its `URI`, off, or auto (if MLFLOW_TRACKING_URI is set)")
	f.StringVar(&o.Store, "store", "", "also put the report into the store at `ADDRESS`: a directory, redis://HOST or "+
		"s3://BUCKET\n, or proxystore+file:///DIR")
	f.DurationVar(&o.storeEvery, "store-every", agent.DefaultStoreEvery,
		"how often to store a partial report, if the store can replace it: at least 10s; 0 means never")
	f.DurationVar(&o.pushTimeout, "push-timeout", agent.DefaultPushTimeout,
		"how long to keep pushing after the job ends; perfagent push can send the rest later")
	f.StringVar(&o.Listen, "listen", agent.Off, "serve a live page and Prometheus metrics during the run on `ADDRESS`: "+
		"PORT or HOST:PORT\n; PORT is open to this machine only, 0.0.0.0:PORT also to others; port 0 takes any free port")
	f.StringVar(&o.Reader, "reader", agent.Auto, "`how` to read CPU, memory, disk, network and load: auto (the kernel's "+
		"files on Linux, gopsutil elsewhere) or gopsutil")
	f.StringVar(&o.Ops, "ops", agent.Off, "receive StatsD or JSON from the job at `ADDRESS`: on, PORT or unix:PATH\n"+
		"; \"on\" takes any two free ports on this machine, [HOST:]PORT takes PORT and the next one")
	f.StringArrayVar(&o.Scrape, "scrape", nil,
		"read the job's Prometheus endpoint at `URL`; repeatable up to 8 times, separated by spaces in the variable")
	f.DurationVar(&o.ScrapeInterval, "scrape-interval", agent.DefaultScrapeInterval, "time between scrapes, at least 1s")
	f.StringArrayVar(&o.OpsChart, "ops-chart", nil, "draw timelines of the operations and transfers with names that "+
		"match `GLOB`; repeatable, separated by spaces in the variable (default: the first 12 series)")
	addSiteFlags(f, o)
	f.StringVar(&o.logLevel, "log-level", "warn", "log `level` on stderr: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "console", "log `format`: console or json")

	for _, e := range environment {
		if flag := f.Lookup(e.flag); flag != nil {
			flag.Usage += "\n [$" + e.variable + "]"
		}
	}
}

// prepare applies defaults, checks the options and opens the log. run, attach and sidecar call it first.
func (o *recordOptions) prepare(cmd *cobra.Command) error {
	o.TakeOver = !o.streams.embedded
	if o.streams.embedded {
		o.Stdin, o.Stdout, o.Stderr = o.streams.in, rawWriter(o.streams.out), rawWriter(o.streams.err)
	}

	var err error
	if o.Log, err = newLogger(o.streams.err, o.logLevel, o.logFormat); err != nil {
		return err
	}
	if err := o.readToken(cmd); err != nil {
		return err
	}
	if err := o.applyDefaults(cmd); err != nil {
		return err
	}
	o.warn(cmd)

	o.OnListen, o.OnReport = o.printURL, o.showSummary

	return nil
}

// check rejects negative values, and the empty and zero values that package agent would replace with its defaults. If
// it returns an error, flag is the name of the flag with the bad value.
func (o *recordOptions) check() (flag string, err error) {
	switch {
	case o.Interval == 0:
		return "interval", fmt.Errorf("%v is below %v", o.Interval, agent.MinInterval)
	case o.MaxLength == 0:
		return "max-length", fmt.Errorf("0 is not between 2 and %d", agent.MaxMaxLength)
	case !slices.Contains(summaries(), o.summary):
		return "summary", fmt.Errorf("%q is not auto, line, always or never", o.summary)
	case o.pushTimeout < 0:
		return "push-timeout", fmt.Errorf("%v is negative", o.pushTimeout)
	case o.storeEvery < 0:
		return "store-every", fmt.Errorf("%v is negative", o.storeEvery)
	case o.length < 0:
		return "for", fmt.Errorf("%v is negative", o.length)
	case o.stopGrace < 0:
		return "stop-grace", fmt.Errorf("%v is negative", o.stopGrace)
	case o.logLines < 0:
		return "log-lines", fmt.Errorf("%d is negative", o.logLines)
	case o.ScrapeInterval == 0:
		return "scrape-interval", fmt.Errorf("%v is below %v", o.ScrapeInterval, agent.MinScrapeInterval)
	}

	if err := checkOut(o.Out); err != nil {
		return "out", err
	}
	empty := map[string]string{"mlflow": o.MLflow, "listen": o.Listen, "reader": o.Reader, "ops": o.Ops}
	for flag, value := range empty {
		if value == "" {
			return flag, errors.New("the value is empty")
		}
	}

	o.Tags, err = tagMap(o.tags)

	return "tag", err
}

// tagMap parses KEY=VALUE tags. It returns nil if there are none.
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

// printURL prints the address of the live page if alwaysPrintURL is set, if stderr is a terminal, or if the user asked
// for any free port. Otherwise only the log has the address, because the job writes to the same stderr.
func (o *recordOptions) printURL(url string) {
	address, _ := exporter.ParseAddress(o.Listen) // checked by agent.Options.Check
	print := o.alwaysPrintURL || address.Port == "0" || inForeground(o.streams.err)
	if print && !o.Log.Core().Enabled(zapcore.InfoLevel) {
		fmt.Fprintf(o.streams.err, "perfagent: listening on %s\n", url)
		return
	}
	o.Log.Info("listening on " + url)
}
