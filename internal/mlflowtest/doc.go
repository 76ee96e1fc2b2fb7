// Package mlflowtest provides MLflow servers for tests: real ones of two major versions, and a fake
// that is as strict as they are and can be made to fail.
package mlflowtest
