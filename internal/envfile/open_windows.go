package envfile

// nonBlocking is not needed: opening a file does not wait here.
const nonBlocking = 0
