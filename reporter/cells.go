package reporter

// ClipText cuts printable text to a width in cells of a terminal; what was cut ends in
// an ellipsis. No text comes out wider than that in any terminal.
func ClipText(s string, width int) string { return clip(s, width) }

// TextWidth is how many cells of a terminal printable text takes at most.
func TextWidth(s string) int { return textWidth(s) }

// WrapText breaks text at spaces into lines of a width; what follows the last of so many
// is cut.
func WrapText(s string, width, lines int) []string { return wrap(s, width, lines) }
