// Package clitest runs the program as users do, for tests: it builds the binary once per test package, starts it in a
// new directory, on a terminal, in a shell or together with others, exchanges lines with it, and checks its output. The
// wrapped job is a shell script, a few lines of Python, or a helper: a role of the test binary.
//
// Package agent does not use it: its tests run in their own process, without a binary.
package clitest
