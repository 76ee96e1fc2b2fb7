//go:build !unix

package mlflow

// openFlags matter for FIFOs and terminals on Unix only.
const openFlags = 0
