// Package mlflowtest provides MLflow servers for tests: real ones of two major versions, and a fake that is as strict
// and can simulate failures.
package mlflowtest
