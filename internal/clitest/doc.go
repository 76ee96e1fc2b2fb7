// Package clitest runs the program as users do, for tests: it builds the binary once for a package's tests, starts it
// in a directory of its own, on a terminal, in a shell or beside others, talks with it line by line, and checks what it
// says. What a test wraps is a shell's script, a few lines of Python, or a part that the test binary itself plays.
//
// Nothing here is for package agent alone: its tests run in their own process, and need no binary.
package clitest
