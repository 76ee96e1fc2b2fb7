//go:build !unix

package mlflow

// openFlags are for FIFOs and terminals, on Unix.
const openFlags = 0
