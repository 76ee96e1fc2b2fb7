package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perfagent/perfagent/mlflow"
)

// A dry run waits for one response, for 30 s or the user's timeout.
func TestLimitForDryRun_WaitsForOneResponse(t *testing.T) {
	asked := 0
	cfg := mlflow.Config{Timeout: 2 * time.Minute, OnRetry: func(error, time.Duration) bool { asked++; return true }}
	t.Setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
	limitForDryRun(&cfg)
	if cfg.Timeout != 2*time.Minute {
		t.Errorf("timeout %v, want the user's 2m", cfg.Timeout)
	}

	t.Setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "")
	limitForDryRun(&cfg)
	if cfg.Timeout != dryRunTimeout {
		t.Errorf("timeout %v, want %v", cfg.Timeout, dryRunTimeout)
	}
	if cfg.OnRetry(fmt.Errorf("search: %w", context.DeadlineExceeded), 0) || asked != 0 {
		t.Errorf("OnRetry after a timeout asked %d times or returned true, want no retry", asked)
	}
	if !cfg.OnRetry(errors.New("status 503"), 0) || asked != 1 {
		t.Errorf("OnRetry after status 503 asked %d times, want one retry", asked)
	}
}

func TestProgress_WaitPrintsOperationAndLimit(t *testing.T) {
	var out bytes.Buffer
	p := &progress{to: &out}
	p.wait("search experiments", 30*time.Second)
	if want := "perfagent: waiting for the server to search experiments, for 30s at most\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
