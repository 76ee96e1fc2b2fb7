// Package hosttest makes one machine look like several, for tests that run as root on Linux.
package hosttest
