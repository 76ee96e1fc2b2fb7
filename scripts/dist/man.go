package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// manPages makes a manual page for the program and one for each command. It makes them from the output of "perfagent
// help", so that the two agree.
func manPages(p program, version string, at time.Time) ([]file, error) {
	commands, err := p.commands()
	if err != nil {
		return nil, err
	}

	var pages []file
	for _, c := range append([]command{{name: ""}}, commands...) {
		help, err := p.output(strings.Fields("help " + c.name)...)
		if err != nil {
			return nil, err
		}
		page := manPage{name: "perfagent", short: summary, version: version, time: at, commands: commands}
		if c.name != "" {
			page.name, page.short = "perfagent-"+c.name, c.short
		}
		pages = append(pages, file{name: page.name + ".1", data: []byte(page.render(help))})
	}

	return pages, nil
}

// A command is a command of perfagent.
type command struct{ name, short string }

// commands returns the commands of the program, from its shell completion. It omits commands that cobra adds.
func (p program) commands() ([]command, error) {
	out, err := p.output("__complete", "")
	if err != nil {
		return nil, err
	}

	var list []command
	for line := range strings.Lines(out) {
		name, short, found := strings.Cut(strings.TrimSpace(line), "\t")
		if found && name != "help" && name != "completion" {
			list = append(list, command{name, short})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("perfagent __complete names no command: %q", out)
	}

	return list, nil
}

// A manPage holds the data of a manual page.
type manPage struct {
	name, short string
	version     string
	time        time.Time
	commands    []command
}

var (
	// heading matches a line of the help that begins a section.
	heading = regexp.MustCompile(`^(\S.*):$`)
	// flagLine matches a line of the help that begins a flag. Its groups are the flag and the start of the description.
	flagLine = regexp.MustCompile(`^ {2,}((?:-\w, )?--?\w[\w-]*(?: \S+)*?)(?: {2,}(\S.*))?$`)
)

// render returns the page, made from a help text. The usage comes first, as in all manual pages.
func (m manPage) render(help string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s \"perfagent %s\" \"User Commands\"\n", roff(strings.ToUpper(m.name)), m.time.Format("2006-01-02"), roff(m.version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(m.name), roff(m.short))

	var usage []string
	var rest [][]string
	for block := range strings.SplitSeq(strings.TrimSpace(help), "\n\n") {
		lines := strings.Split(block, "\n")
		if lines[0] == "Usage:" {
			usage = lines[1:]
			continue
		}
		rest = append(rest, lines)
	}
	b.WriteString(".SH SYNOPSIS\n")
	renderBlock(&b, usage)

	b.WriteString(".SH DESCRIPTION\n")
	for i, lines := range rest {
		if words, ok := strings.CutPrefix(lines[0], "Exit code: "); ok {
			b.WriteString(".SH EXIT STATUS\n")
			lines[0] = words
		} else if match := heading.FindStringSubmatch(lines[0]); match != nil && len(lines) > 1 {
			fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(match[1])))
			lines = lines[1:]
		} else if i > 0 {
			b.WriteString(".PP\n")
		}
		renderBlock(&b, lines)
	}

	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", m.seeAlso())

	return b.String()
}

// renderBlock renders the lines of a paragraph: flags, prose, or preformatted text.
func renderBlock(b *strings.Builder, lines []string) {
	switch {
	case len(lines) == 0:
	case flagLine.MatchString(lines[0]):
		renderFlags(b, lines)
	case strings.HasPrefix(lines[0], " "):
		b.WriteString(".RS 2\n.nf\n")
		for _, line := range lines {
			b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
		b.WriteString(".fi\n.RE\n")
	default:
		for _, line := range lines {
			b.WriteString(roff(line) + "\n")
		}
	}
}

// renderFlags renders lines of flags. A line that does not begin a flag continues the previous description.
func renderFlags(b *strings.Builder, lines []string) {
	for _, line := range lines {
		match := flagLine.FindStringSubmatch(line)
		switch {
		case match == nil:
			b.WriteString(roff(strings.TrimSpace(line)) + "\n")
		case match[2] == "":
			fmt.Fprintf(b, ".TP\n.B %s\n", roff(match[1]))
		default:
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(match[1]), roff(match[2]))
		}
	}
}

// seeAlso returns references to the other pages.
func (m manPage) seeAlso() string {
	others := []string{"perfagent"}
	for _, c := range m.commands {
		others = append(others, "perfagent-"+c.name)
	}

	var refs []string
	for _, name := range others {
		if name != m.name {
			refs = append(refs, `\fB`+roff(name)+`\fR(1)`)
		}
	}

	return strings.Join(refs, ",\n")
}

// roff escapes a line so that roff prints it unchanged.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}

	return line
}
