package series

// A Gap is a part of a source that has no values: a key of the samples, or a word for what it is, and why.
type Gap struct{ What, Why string }
