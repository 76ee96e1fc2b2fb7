package main

import "os"

// watchSignals end the live view.
func watchSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// notifyResumed is for systems that stop processes.
func notifyResumed(chan os.Signal) {}

func isResize(os.Signal) bool { return false }

// signalNumber is the n of 128+n: Ctrl-C is all there is.
func signalNumber(os.Signal) int { return 2 }

// stopGroup is for systems that stop processes.
func stopGroup(<-chan os.Signal) {}
