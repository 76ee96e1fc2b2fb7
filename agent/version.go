package agent

import "github.com/perfagent/perfagent"

// Version returns the version of perfagent in this program, as the file VERSION has it: "1.0.0".
func Version() string {
	return perfagent.Version()
}
