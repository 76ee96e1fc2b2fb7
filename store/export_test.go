package store

// ReadAnswer is readAnswer for tests.
var ReadAnswer = readAnswer
