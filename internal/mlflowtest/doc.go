// Package mlflowtest provides MLflow servers for tests: real servers of two major versions, and a fake that is equally
// strict and can simulate failures.
package mlflowtest
