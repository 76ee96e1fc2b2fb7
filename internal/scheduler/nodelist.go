package scheduler

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// maxNodes bounds how many names of a node list are read. Slurm supports at most 65,536 nodes.
const maxNodes = 1 << 16

// nodeNames yields the names in a Slurm node list: "gpu[1-2,07],login" is gpu1, gpu2, gpu07 and login. A name may have
// several brackets; the last varies fastest. A malformed list yields the names before the mistake.
func nodeNames(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := maxNodes
		bounded := func(name string) bool {
			left--
			return yield(name) && left > 0
		}

		for list != "" {
			var expression string
			expression, list = cutExpression(list)
			if expression == "" || !expand("", expression, bounded) {
				return
			}
		}
	}
}

// cutExpression cuts list at the first comma outside of brackets.
func cutExpression(list string) (expression, rest string) {
	inside := false
	for i := range len(list) {
		switch list[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				return list[:i], list[i+1:]
			}
		}
	}
	return list, ""
}

// expand yields each name in expression, with prefix before it. It returns false if yield does, or if expression is
// malformed.
func expand(prefix, expression string, yield func(string) bool) bool {
	before, rest, found := strings.Cut(expression, "[")
	if !found {
		return yield(prefix + expression)
	}
	ranges, after, found := strings.Cut(rest, "]")
	if !found {
		return false
	}

	for part := range strings.SplitSeq(ranges, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 32)
		last, err2 := strconv.ParseUint(high, 10, 32)
		if err1 != nil || err2 != nil || last < first {
			return false
		}
		for n := first; n <= last; n++ {
			if !expand(fmt.Sprintf("%s%s%0*d", prefix, before, len(low), n), after, yield) {
				return false
			}
		}
	}

	return true
}

// indexInList returns the position of host among the names of list, counting from 0, and the host's name in the list.
func indexInList(host, list string) (place int, name string, ok bool) {
	for name := range nodeNames(list) {
		if sameHost(name, host) {
			return place, name, true
		}
		place++
	}
	return 0, "", false
}

// sameHost reports whether a and b name the same host. One of the names may lack the domain.
func sameHost(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	labelA, domainA, _ := strings.Cut(a, ".")
	labelB, domainB, _ := strings.Cut(b, ".")

	return labelA == labelB && (domainA == domainB || domainA == "" || domainB == "")
}

// tasksAt returns the number of tasks that list gives for the node with the index node. In a list such as "3,1" or
// "2(x2),1", "2(x2)" stands for two nodes with two tasks each.
func tasksAt(list string, node int) (tasks int, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.ParseUint(count, 10, 31)
		if err != nil {
			return 0, false
		}
		of := uint64(1)
		if repeated {
			if of, err = strconv.ParseUint(times, 10, 31); err != nil {
				return 0, false
			}
		}

		if uint64(node) < of {
			return int(n), true
		}
		node -= int(of)
	}

	return 0, false
}
