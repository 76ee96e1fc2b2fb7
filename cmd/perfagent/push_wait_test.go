package main

import (
	"bytes"
	"testing"
	"time"
)

func TestProgress_WaitPrintsOperationAndLimit(t *testing.T) {
	var out bytes.Buffer
	p := &progress{to: &out}
	p.wait("search experiments", 30*time.Second)
	if want := "perfagent: waiting for the server to search experiments, for 30s at most\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
