package main

import "github.com/spf13/pflag"

// addSiteFlags declares what a site sets for all of its jobs.
func addSiteFlags(f *pflag.FlagSet, o *recordOptions) {
	f.StringArrayVar(&o.Redact, "redact", nil,
		"also hide what `REGEX` matches in the command line, or its first group (repeatable; separated by spaces in the "+
			"variable); off hides nothing, not even passwords and tokens")
}
