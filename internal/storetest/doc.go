// Package storetest starts servers for tests of stores.
package storetest

// The credentials of the S3 server that S3 starts.
const (
	S3KeyID  = "perfagentkey"
	S3Secret = "s3cr3t-of-s3"
)
