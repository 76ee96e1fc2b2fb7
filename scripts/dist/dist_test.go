package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const someHelp = `Do something. It's said in two
lines, with a back\slash.

  perfagent thing -- x       an example
  .dotted

Usage:
  perfagent thing [flags]

Recording:
  -i, --interval DURATION   time between samples
                            [$PERFAGENT_INTERVAL] (default 1s)
      --no-page             no page
      --long-flag VALUE
          text on a line of its own

Exit code: 0 if it worked,
or 1.

Use "perfagent help" for more.
`

// A manual page has the text of the help, with the usage first.
func TestManPage(t *testing.T) {
	page := manPage{
		name: "perfagent-thing", short: "do something", version: "1.0.0", time: time.Unix(0, 0).UTC(),
		commands: []command{{"run", ""}, {"thing", ""}},
	}
	const want = `.TH PERFAGENT\-THING 1 1970-01-01 "perfagent 1.0.0" "User Commands"
.SH NAME
perfagent\-thing \- do something
.SH SYNOPSIS
.RS 2
.nf
perfagent thing [flags]
.fi
.RE
.SH DESCRIPTION
Do something. It\(aqs said in two
lines, with a back\eslash.
.PP
.RS 2
.nf
perfagent thing \-\- x       an example
\&.dotted
.fi
.RE
.SH RECORDING
.TP
.B \-i, \-\-interval DURATION
time between samples
[$PERFAGENT_INTERVAL] (default 1s)
.TP
.B \-\-no\-page
no page
.TP
.B \-\-long\-flag VALUE
text on a line of its own
.SH EXIT STATUS
0 if it worked,
or 1.
.PP
Use \(dqperfagent help\(dq for more.
.SH SEE ALSO
\fBperfagent\fR(1),
\fBperfagent\-run\fR(1)
`
	if got := page.render(someHelp); got != want {
		t.Errorf("manual page:\n%s\nwant:\n%s", got, want)
	}
}

// mandoc reads the manual pages without warnings.
func TestManPage_PassesMandoc(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("needs mandoc: apt-get install mandoc (make e2e does it as root)")
	}
	page := manPage{name: "perfagent-thing", short: "do something", version: "1.0.0", time: time.Unix(0, 0)}
	cmd := exec.Command(mandoc, "-T", "lint", "-W", "warning")
	cmd.Stdin = strings.NewReader(page.render(someHelp))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

// An earlier version sorts before a later version in Debian and RPM, where ~ sorts before the end of the version.
func TestSortable(t *testing.T) {
	for version, want := range map[string]string{
		"1.0.0": "1.0.0", "1.1.0rc1": "1.1.0~rc1", "1.1a2": "1.1~a2", "1.1.dev3": "1.1~.dev3", "1.0.post1": "1.0.post1",
	} {
		if got := (&release{version: version}).sortable(); got != want || !versionForm.MatchString(version) {
			t.Errorf("sortable form of %s = %s, want %s, and a valid version", version, got, want)
		}
	}
	for _, version := range []string{"", "v1.0.0", "1.0.0-rc1", "1.0.0+local", "1!1.0", "1.0\n2"} {
		if versionForm.MatchString(version) {
			t.Errorf("%q matches versionForm, want no match", version)
		}
	}
}

// An unknown license is an error, so that someone reviews the license.
func TestLicense_RejectsUnknownLicense(t *testing.T) {
	m := module{name: "example.com/x", texts: []file{{name: "LICENSE", data: []byte("All rights reserved.")}}}
	if id, err := m.license(); err == nil {
		t.Errorf("license = %s, want an error", id)
	}

	m.texts[0].data = []byte("Permission is hereby granted, free of charge, to any\nperson obtaining a copy of this  software")
	if id, err := m.license(); err != nil || id != "MIT" {
		t.Errorf("license = %s, error %v; want MIT", id, err)
	}
}

// NOTICE has the license and the patent grant of Go, although it takes them from another module.
func TestLinked_IncludesLicenseOfStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := linked("../..")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(modules, func(m module) bool { return m.name == standardName })
	for _, name := range []string{"LICENSE", "PATENTS"} {
		want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
		if err != nil {
			t.Skipf("this distribution of Go lacks its license: %v", err)
		}
		if !slices.ContainsFunc(modules[i].texts, func(f file) bool { return f.name == name && bytes.Equal(f.data, want) }) {
			t.Errorf("%s in NOTICE differs from %s: %+v", name, modules[i].version, modules[i].texts)
		}
	}
}

// A tar archive has fixed modes and a fixed order, and every folder precedes its files.
func TestWriteTar_WritesFoldersBeforeFiles(t *testing.T) {
	var b bytes.Buffer
	if err := writeTar(&b, []file{{name: "z/y/x", data: []byte("1"), exec: true}, {name: "a", data: []byte("2")}}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tar", "-tv", "--numeric-owner", "--utc")
	cmd.Stdin = &b
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		got = append(got, fields[0]+" "+fields[1]+" "+fields[5])
	}
	want := "-rw-r--r-- 0/0 a|drwxr-xr-x 0/0 z/|drwxr-xr-x 0/0 z/y/|-rwxr-xr-x 0/0 z/y/x"
	if strings.Join(got, "|") != want {
		t.Errorf("entries of the archive = %q, want %s", got, want)
	}
}
