//go:build !unix

package journal

import "os"

func lockShared(*os.File) {}

// ReadWriterState returns Unknown on this system.
func ReadWriterState(string) WriterState { return WriterUnknown }
