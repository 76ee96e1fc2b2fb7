package main

import "os"

// watchSignals returns the signals that end the live view.
func watchSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// notifyResumed does nothing: Windows does not stop processes.
func notifyResumed(chan os.Signal) {}

func isResize(os.Signal) bool { return false }

// signalNumber returns the number n of the exit code 128+n. Ctrl-C is the only signal.
func signalNumber(os.Signal) int { return 2 }

// stopGroup does nothing: Windows does not stop processes.
func stopGroup(<-chan os.Signal) {}
