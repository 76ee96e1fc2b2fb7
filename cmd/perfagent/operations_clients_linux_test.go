package main

import (
	"fmt"
	"testing"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/clitest"
)

// The programs in the documentation send only valid records of operations.
func TestDocs_OperationsProgramsSendValidRecords(t *testing.T) {
	t.Parallel()
	python := opsPython(t)
	for _, b := range fenced(t, operationsDoc, "python job") {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			t.Parallel()
			n, o := opsRun(t, python, "-c", b.text)
			ops := n.Operations
			if o.Out+o.Err != "" || len(ops.Times) != 1 || len(ops.Counters) != 1 || ops.Dropped != (aggregate.Dropped{}) {
				t.Errorf("operations %+v, outcome %+v; want one time, one counter, nothing dropped and no output", ops, o)
			}
			clitest.RunCommand(t, clitest.Command(t, python, "-c", b.text)).Want(t, 0) // without perfagent
		})
	}
}
