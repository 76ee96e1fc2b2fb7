package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/agent"
)

// addStopFlags declares the flags of run that make perfagent stop the job.
func addStopFlags(f *pflag.FlagSet, o *recordOptions) {
	f.StringArrayVar(&o.StopIf, "stop-if", nil,
		"stop the job when this `RULE` holds: 'KEY OP NUMBER [for DURATION]', such as 'job_memory_mb > 8000' or "+
			"'job_cpu_cores < 0.05 for 30m' (repeatable; separated by semicolons in the variable)")
	f.DurationVar(&o.stopGrace, "stop-grace", agent.DefaultStopGrace,
		"how long a job that --stop-if stops has between SIGTERM and SIGKILL")
}

// rulesIn splits the value of PERFAGENT_STOP_IF into rules, at semicolons and newlines.
func rulesIn(value string) []string {
	rules := strings.FieldsFunc(value, func(c rune) bool { return c == ';' || c == '\n' })
	return slices.DeleteFunc(rules, func(rule string) bool { return strings.TrimSpace(rule) == "" })
}
