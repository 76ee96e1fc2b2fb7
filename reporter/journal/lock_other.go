//go:build !unix

package journal

import "os"

func lockShared(*os.File) {}

// ReadWriterState returns WriterUnknown on this system.
func ReadWriterState(string) WriterState { return WriterUnknown }
