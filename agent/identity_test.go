package agent

import (
	"testing"

	"github.com/perfagent/perfagent/internal/scheduler"
)

// A report contains a Pod's node name. A host's name is in the report anyway.
func TestIdentity_HasNodeNameOfPodWithoutIndex(t *testing.T) {
	told := map[string]string{"KUBERNETES_SERVICE_HOST": "10.97.0.1", "NODE_NAME": "node1"}
	for _, variables := range []map[string]string{told, nil} {
		lookup := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
		s := &session{o: Options{identity: scheduler.Detect(scheduler.Environment{Lookup: lookup, Hostname: "perfagent-x9rhz"})}}
		switch id := s.identity(); {
		case variables == nil && id != nil:
			t.Errorf("identity of a host alone: %+v, want nil", id)
		case variables != nil && (id == nil || id.NodeName != "node1" || id.NodeFrom != scheduler.NodeFromNone || id.Node != nil):
			t.Errorf("identity of a Pod: %+v, want the node name node1 and no index", id)
		}
	}
}
