// Package storetest starts the servers that stores are tested with.
package storetest
