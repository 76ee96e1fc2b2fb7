//go:build !linux

package host

import "github.com/perfagent/perfagent/collector/process"

type helper struct{}

func newHelper() *helper { return nil }

func (j *jobReader) selfUsage() process.Usage { return process.Usage{} }
