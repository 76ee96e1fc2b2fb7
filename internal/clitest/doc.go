// Package clitest helps tests to run the program as users do. It builds the binary once per test package, starts it in
// a new directory, on a terminal, in a shell or together with other processes, exchanges lines with it, and checks its
// output. The wrapped job is a shell script, a few lines of Python, or a helper: a role of the test binary.
//
// Package agent does not use clitest: its tests run in the process of the test, without a binary.
package clitest
