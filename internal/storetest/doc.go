// Package storetest starts the servers that stores are tested with.
package storetest

// The keys of a server of S3 that was started by a test.
const (
	S3KeyID  = "perfagentkey"
	S3Secret = "s3cr3t-of-s3"
)
