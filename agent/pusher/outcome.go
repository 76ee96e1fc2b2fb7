package pusher

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// ClientConfig returns the configuration of a client for the server at uri, from the MLFLOW_…
// variables, for a perfagent of the given version.
func ClientConfig(uri, version string, lookup func(key string) (value string, ok bool)) (mlflow.Config, error) {
	cfg, err := mlflow.NewConfig(uri, lookup)
	cfg.UserAgent = "perfagent/" + version

	return cfg, err
}

// Outcome says what a finished push has sent, and where it is to be seen.
func (p *Plan) Outcome(c *mlflow.Client) string {
	out := fmt.Sprintf(
		"%s and %s sent to %s",
		text.Count(p.Metrics, "metric", "metrics"),
		text.Count(p.Points, "point", "points"),
		c.RunURL(p.Run),
	)
	if p.Known > 0 {
		out += fmt.Sprintf(" (%d were there)", p.Known)
	}

	return strings.Join(append([]string{out}, p.Notes...), "; ")
}

// DoneState returns the state of a push that the server has all of. It keeps what a later push
// needs to know of s.
func DoneState(s reporter.PushState, notes []string) reporter.PushState {
	return reporter.PushState{
		State: reporter.PushDone, RunID: s.RunID, Given: s.Given, URI: s.URI, Invocation: s.Invocation,
		Error: strings.Join(notes, "; "),
	}
}
