package diagnosis

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// memoryOption returns the part of the job's command lines that sets how much memory a program takes: "-Xmx3g", "--mem
// 8G", or "java", which takes a share of the memory that it finds. It returns "" if there is none.
func (e *ruleInput) memoryOption() string {
	if option := memoryOptionIn(e.command); option != "" {
		return option
	}
	for _, p := range e.Processes {
		if option := memoryOptionIn(strings.Fields(p.Command)); option != "" {
			return option
		}
	}
	return ""
}

// sizeValue matches a size of memory, or a percentage.
var sizeValue = regexp.MustCompile(`^\d+(\.\d+)?([kKmMgGtT]([iI]?[bB])?|[bB]|%)?$`)

// unitValue matches a sizeValue with a unit.
var unitValue = regexp.MustCompile(`^\d+(\.\d+)?([kKmMgGtT]([iI]?[bB])?|%)$`)

// shellSigns are characters that a shell removes from around a word: sh -c "(java -Xmx3g; sort -S 2G)".
const shellSigns = "\"'`;&|()"

// memoryOptionIn is memoryOption for one command.
func memoryOptionIn(command []string) string {
	var args []string
	for _, arg := range command { // an argument may hold a command: sh -c "java -Xmx3g"
		args = append(args, strings.Fields(arg)...)
	}
	for i, next := range append(args, "")[1:] {
		if option := sizeOption(strings.Trim(args[i], shellSigns), strings.Trim(next, shellSigns)); option != "" {
			return option
		}
	}
	if slices.ContainsFunc(args, func(arg string) bool { return path.Base(arg) == "java" }) {
		return "java"
	}
	return ""
}

// sizeOption returns arg, with the value in arg or next, if it is an option that sets how much memory a program takes.
// It returns "" for any other argument.
func sizeOption(arg, next string) string {
	for _, option := range []string{"-Xmx", "-XX:MaxRAM", "-XX:MaxHeapSize", "-XX:InitialRAM"} {
		if strings.HasPrefix(arg, option) && len(arg) > len(option) {
			return arg
		}
	}

	both := arg
	name, value, joined := strings.Cut(arg, "=")
	if !joined {
		value, both = next, arg+" "+next
	}
	switch dashes := len(name) - len(strings.TrimLeft(name, "-")); {
	case namesMemory(name) && sizeValue.MatchString(value) && (dashes > 0 || joined):
		return both
	case dashes == 1 && len(arg) > 2 && strings.Contains("mMS", arg[1:2]) && unitValue.MatchString(arg[2:]): // sort -S4G
		return arg
	case dashes == 1 && len(arg) == 2 && strings.Contains("mMS", arg[1:]) && unitValue.MatchString(next):
		return both // samtools sort -m 2G
	}
	return ""
}

// wordEnd matches where a word ends within a name such as sortRAM. It is compiled on first use.
var wordEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([a-z])([A-Z])`) })

// namesMemory reports whether the name of an option contains a word for memory: --max-memory, --limitBAMsortRAM,
// --max_old_space_size.
func namesMemory(name string) bool {
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	words := strings.FieldsFunc(wordEnd().ReplaceAllString(name, "$1 $2"), notLetter)
	for i, word := range words {
		switch strings.ToLower(word) {
		case "mem", "memory", "ram", "heap", "localmem", "maxmem", "maxmemory", "maxram", "maxheap", "heapsize":
			return true
		case "buffer", "space":
			if i+1 < len(words) && strings.EqualFold(words[i+1], "size") {
				return true
			}
		}
	}
	return false
}
