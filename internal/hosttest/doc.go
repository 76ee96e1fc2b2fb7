// Package hosttest makes several machines out of one, for tests that run as root on Linux.
package hosttest
