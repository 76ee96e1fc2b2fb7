package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
)

const (
	minInterval  = 10 * time.Millisecond
	maxMaxLength = 1_000_000
	maxRunID     = 128
	maxNode      = math.MaxInt32 // what readers of reports accept
)

// sampleOptions are the flags that run and sidecar share.
type sampleOptions struct {
	interval  time.Duration
	maxLength int
	out       string
	runID     string
	node      int
	diskPaths []string
	summary   string
	compat    string
	tags      []string
	mlflow    string
	listen    string
	html      string
	cgroup    string // of run; "" = there is no job
	// pushTimeout is what pushing may take after the job's end.
	pushTimeout time.Duration
	logLevel    string
	logFormat   string
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

// addSampleFlags declares the flags. Their defaults are the program's.
func addSampleFlags(f *pflag.FlagSet, o *sampleOptions) {
	f.DurationVar(&o.interval, "interval", time.Second, "time between samples, at least 10ms")
	f.IntVar(&o.maxLength, "max-length", 1000, "kept samples at most (rounded up to even); older ones are merged, peaks stay")
	f.StringVar(&o.out, "out", "perfagent-out", "directory of the reports: `DIR`/RUN-ID/node-N.json")
	f.StringVar(&o.runID, "run-id", "", "name of the run, the same on every node (default: the scheduler's job id, else time and random)")
	f.IntVar(&o.node, "node", 0, "index of this node (default: from the scheduler, else 0)")
	f.StringArrayVar(&o.diskPaths, "disk-path", []string{"/"}, "a `PATH` on the file system whose fill is measured; repeatable, the fullest counts; in the variable separated by ':'")
	f.StringVar(&o.summary, "summary", "auto", "summary on stderr at the end: auto (when stderr is a terminal), always, never")
	addHTMLFlag(f, &o.html)
	f.StringVar(&o.compat, "compat", "", "\"perf.py\": its numbers and its file instead of ours")
	f.StringArrayVar(&o.tags, "tag", nil, "`KEY=VALUE` for the report and the MLflow run; repeatable")
	f.StringVar(&o.mlflow, "mlflow", "auto", "push to an MLflow server: auto (when MLFLOW_TRACKING_URI is set), off, or a `URI`")
	f.DurationVar(&o.pushTimeout, "push-timeout", 10*time.Second, "what pushing may take after the job's end; what is missing then, perfagent push sends later")
	f.StringVar(&o.listen, "listen", listenOff, "serve a live page and Prometheus' /metrics at `ADDR`: PORT (this machine only), HOST:PORT, 0.0.0.0:PORT; port 0 is any free one")
	f.StringVar(&o.logLevel, "log-level", "warn", "debug, info, warn or error, on stderr")
	f.StringVar(&o.logFormat, "log-format", "console", "console or json")
	for _, e := range environment {
		if flag := f.Lookup(e.flag); flag != nil {
			flag.Usage += " [$" + e.variable + "]"
		}
	}
}

// settle fills in what no flag gave, from the environment and then from the
// scheduler, and checks everything. Errors name the flag or the variable.
func (o *sampleOptions) settle(cmd *cobra.Command) error {
	from := make(map[string]string)
	for _, e := range environment {
		from[e.flag] = "--" + e.flag
		value := os.Getenv(e.variable)
		if cmd.Flags().Changed(e.flag) || value == "" || cmd.Flags().Lookup(e.flag) == nil {
			continue
		}
		from[e.flag] = e.variable
		if err := setFlag(cmd, e.flag, value); err != nil {
			return fmt.Errorf("%s=%q: %w", e.variable, value, err)
		}
	}
	if cmd.Flags().Changed("run-id") && o.runID == "" {
		return errors.New("--run-id: an empty name")
	}
	if err := o.check(from); err != nil {
		return err
	}
	who := whoAmI(os.LookupEnv)
	if o.runID == "" {
		o.runID = who.runID
	}
	if o.runID == "" {
		o.runID = newRunID(time.Now())
	}
	if !cmd.Flags().Changed("node") {
		o.node = who.node
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

// runIDLetters are what a run id is made of. A regular expression would be compiled at
// every start, while the job waits.
const runIDLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// check refuses bad values; from tells where each was given.
func (o *sampleOptions) check(from map[string]string) error {
	switch {
	case o.interval < minInterval:
		return fmt.Errorf("%s: %v is below %v", from["interval"], o.interval, minInterval)
	case o.maxLength < 2 || o.maxLength > maxMaxLength:
		return fmt.Errorf("%s: %d is not between 2 and %d", from["max-length"], o.maxLength, maxMaxLength)
	case o.out == "":
		return fmt.Errorf("%s: an empty directory name", from["out"])
	case o.node < 0 || o.node > maxNode:
		return fmt.Errorf("%s: %d is not between 0 and %d", from["node"], o.node, maxNode)
	case o.summary != "auto" && o.summary != "always" && o.summary != "never":
		return fmt.Errorf("%s: %q is not auto, always or never", from["summary"], o.summary)
	case o.html != "auto" && o.html != "never":
		return fmt.Errorf("%s: %q is not auto or never", from["html"], o.html)
	case o.cgroup != "" && o.cgroup != cgroupAuto && o.cgroup != cgroupCreate && o.cgroup != cgroupOff:
		return fmt.Errorf("%s: %q is not auto, create or off", from["cgroup"], o.cgroup)
	case o.pushTimeout < 0:
		return fmt.Errorf("%s: %v is negative", from["push-timeout"], o.pushTimeout)
	case o.compat != "" && o.compat != "perf.py":
		return fmt.Errorf("--compat: %q is not perf.py", o.compat)
	}
	for _, p := range o.diskPaths {
		if p == "" {
			return fmt.Errorf("%s: an empty path", from["disk-path"])
		}
	}
	if err := checkMLflow(o.mlflow); err != nil {
		return fmt.Errorf("%s: %w", from["mlflow"], err)
	}
	if err := checkListen(o.listen); err != nil {
		return fmt.Errorf("%s: %w", from["listen"], err)
	}
	if err := checkRunID(o.runID); err != nil {
		return fmt.Errorf("%s: %w", from["run-id"], err)
	}
	_, err := o.tagMap()
	return err
}

// checkRunID accepts what can name a folder; empty means not given.
func checkRunID(id string) error {
	switch {
	case id == "":
		return nil
	case strings.Trim(id, runIDLetters) != "":
		return fmt.Errorf("%q has other characters than letters, digits, '.', '_' and '-'", id)
	case strings.Trim(id, ".") == "":
		return fmt.Errorf("%q cannot name a folder", id)
	case len(id) > maxRunID:
		return fmt.Errorf("%q is longer than %d characters", id[:32]+"…", maxRunID)
	}
	return nil
}

// tagMap is the tags by key.
func (o *sampleOptions) tagMap() (map[string]string, error) {
	if len(o.tags) == 0 {
		return nil, nil
	}
	tags := make(map[string]string, len(o.tags))
	for _, t := range o.tags {
		key, value, found := strings.Cut(t, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--tag: %q is not KEY=VALUE", t)
		}
		tags[key] = value
	}
	return tags, nil
}

// reader opens the host, at HOST_PROC and HOST_SYS where these are set.
func (o *sampleOptions) reader(j host.JobOptions, gpus *gpu.Monitor) *host.Reader {
	return host.NewReader(host.Options{
		Proc: os.Getenv("HOST_PROC"), Sys: os.Getenv("HOST_SYS"), DiskPaths: o.diskPaths, Job: j, GPUs: gpus,
	})
}

var errNoCommand = errors.New("no command: perfagent run [flags] -- CMD [ARG…]")
