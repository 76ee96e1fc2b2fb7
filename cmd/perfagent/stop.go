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
		"stop the command when `RULE` holds, for example 'job_cpu_cores < 0.05 for 30m'; repeatable\n"+
			", separated by semicolons in the variable; a rule is 'KEY OP NUMBER [for TIME]'")
	f.DurationVar(&o.stopGrace, "stop-grace", agent.DefaultStopGrace,
		"how long --stop-if waits between SIGTERM and SIGKILL")
}

// rulesIn splits the value of PERFAGENT_STOP_IF into rules, at semicolons and newlines.
func rulesIn(value string) []string {
	rules := strings.FieldsFunc(value, func(c rune) bool { return c == ';' || c == '\n' })
	return slices.DeleteFunc(rules, func(rule string) bool { return strings.TrimSpace(rule) == "" })
}
