package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/timeout"
)

// listenToken is the flag that names the file with the token of the live page.
const listenToken = "listen-token-file"

// addSiteFlags declares flags that a site may set for all jobs.
func addSiteFlags(f *pflag.FlagSet, o *recordOptions) {
	f.StringVar(&o.tokenFile, listenToken, "",
		"with --listen, answer only requests that have the token in `FILE`, as a bearer token or as a password; "+
			"the variable holds the token itself")
	f.StringArrayVar(&o.Redact, "redact", nil,
		"also hide what `REGEX`, or its first group, matches in the recorded command line and log; repeatable, separated by "+
			"spaces in the variable; off hides nothing, not even passwords and tokens")
	f.StringVar(&o.onEnd, "on-end", "",
		"at the end, run \"sh -c `COMMAND`\" with the summary as JSON on its standard input, for at most 10s")
}

// readToken reads the token of the live page from the file of --listen-token-file, if given.
func (o *recordOptions) readToken(cmd *cobra.Command) error {
	if !cmd.Flags().Changed(listenToken) {
		return nil
	}

	var token string
	var public bool
	err, ok := timeout.Call(tokenTimeout, func() (err error) {
		token, public, err = tokenFrom(o.tokenFile)
		return err
	})
	switch {
	case !ok: // the goroutine may still write to token and public
		return fmt.Errorf("--%s: %s was not read within %v", listenToken, o.tokenFile, tokenTimeout)
	case err != nil:
		return fmt.Errorf("--%s: %w", listenToken, err)
	case public:
		o.Log.Warn(fmt.Sprintf("--%s: anyone can read %s (chmod go= %[2]s)", listenToken, o.tokenFile))
	}
	o.ListenToken = token

	return nil
}

const (
	// tokenTimeout limits how long reading the token may delay the start of the job. The file may be a pipe.
	tokenTimeout = 5 * time.Second

	// maxToken is the maximum size of a token in bytes; it leaves room for the rest of a request's header.
	maxToken = 4096
)

// tokenFrom returns the content of the file at path without its final newline. public reports whether all users can
// read it.
func tokenFrom(path string) (token string, public bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()

	data, err := io.ReadAll(io.LimitReader(f, maxToken+2))
	if err != nil {
		return "", false, err
	}
	token = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch info, err := f.Stat(); {
	case token == "":
		return "", false, errors.New("the token is empty")
	case len(token) > maxToken:
		return "", false, fmt.Errorf("the token is longer than %d bytes", maxToken)
	case err == nil && info.Mode().IsRegular():
		public = info.Mode().Perm()&0o004 != 0
	}

	return token, public, nil
}
