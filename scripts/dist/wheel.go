package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// wheel makes the package for Python's installers. They put the program itself on PATH, so it runs without a Python
// wrapper. The sources of the module perfagent are in python/perfagent.
func wheel(r *release, p platform) (file, error) {
	folder := "perfagent-" + r.version
	tags := []string{"manylinux_2_17_" + p.machine, "manylinux2014_" + p.machine, "musllinux_1_1_" + p.machine}

	files, err := pythonModule(filepath.Join(r.checkout, "python"))
	if err != nil {
		return file{}, err
	}
	files = append(files, under(folder+".data/scripts", []file{r.programs[p.go_]})...)
	info := []file{
		{name: "METADATA", data: metadata(r)},
		{name: "WHEEL", data: wheelInfo(tags)},
		{name: "licenses/LICENSE", data: r.document("LICENSE").data},
		{name: "licenses/NOTICE", data: r.document("NOTICE").data},
	}
	files = append(files, under(folder+".dist-info", info)...)
	files = append(files, record(folder+".dist-info/RECORD", files))

	var b bytes.Buffer
	err = writeZip(&b, files, r.time)

	return file{name: fmt.Sprintf("%s-py3-none-%s.whl", folder, strings.Join(tags, ".")), data: b.Bytes()}, err
}

// pythonModule reads the module perfagent below dir: its sources and the marker py.typed.
func pythonModule(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(filepath.Join(dir, "perfagent"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || (filepath.Ext(path) != ".py" && d.Name() != "py.typed") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, file{name: filepath.ToSlash(name), data: data})
		return err
	})

	return files, err
}

// metadata returns the METADATA file, which installers and indexes show.
func metadata(r *release) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `Metadata-Version: 2.4
Name: perfagent
Version: %s
Summary: %s
Home-page: %s
License-Expression: MIT
License-File: LICENSE
License-File: NOTICE
Keywords: performance,monitoring,hpc,slurm,gpu,memory,benchmark
Classifier: Environment :: Console
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: System :: Monitoring
Requires-Python: >=3.9
Description-Content-Type: text/markdown

`, r.version, summary, homepage)
	b.Write(r.document("README.md").data)

	return b.Bytes()
}

// wheelInfo returns the WHEEL file, with a line for each tag of the wheel's name.
func wheelInfo(tags []string) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "Wheel-Version: 1.0\nGenerator: perfagent-dist\nRoot-Is-Purelib: false\n")
	for _, tag := range tags {
		fmt.Fprintf(&b, "Tag: py3-none-%s\n", tag)
	}

	return b.Bytes()
}

// record returns the RECORD file, which installers use to check and uninstall the wheel.
func record(name string, files []file) file {
	var b bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&b, "%s,,\n", name)

	return file{name: name, data: b.Bytes()}
}

// writeZip writes files as a zip archive with their permissions.
func writeZip(b *bytes.Buffer, files []file, at time.Time) error {
	z := zip.NewWriter(b)
	for _, f := range files {
		header := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode())
		w, err := z.CreateHeader(&header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}

	return z.Close()
}
