// Package mlflowtest gives tests MLflow servers to talk to: real ones of two
// major versions, and a fake one, as strict as they are, that can be made to fail.
package mlflowtest
