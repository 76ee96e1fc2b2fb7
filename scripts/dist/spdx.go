//go:build !wheel

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// spdxDocument makes the bill of materials: the programs with their checksums, and the linked modules with their
// licenses.
func spdxDocument(r *release) (file, error) {
	hash := sha256.New()
	for _, p := range platforms {
		hash.Write(r.programs[p.go_].data)
	}
	doc := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "perfagent-" + r.version,
		DocumentNamespace: fmt.Sprintf("%s/spdx/%s-%x", homepage, r.version, hash.Sum(nil)),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "perfagent-dist-" + r.version}},
			Created:  r.time.Format("2006-01-02T15:04:05Z"),
		},
	}

	for _, m := range r.modules {
		pkg, err := modulePackage(m)
		if err != nil {
			return file{}, err
		}
		doc.Packages = append(doc.Packages, pkg)
	}
	for _, p := range platforms {
		addProgram(doc, r, p)
	}

	var b bytes.Buffer
	err := spdxjson.Write(doc, &b, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))

	return file{name: fmt.Sprintf("perfagent_%s.spdx.json", r.version), data: b.Bytes()}, err
}

// modulePackage describes a linked module.
func modulePackage(m module) (*v2_3.Package, error) {
	license, err := m.license()
	if err != nil {
		return nil, err
	}
	pkg := &v2_3.Package{
		PackageName: m.name, PackageVersion: m.version, PackageSPDXIdentifier: elementID("Module-" + m.name),
		PackageDownloadLocation: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageLicenseConcluded: license, PackageLicenseDeclared: license,
	}
	if m.isGo() {
		pkg.PackageExternalReferences = []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: fmt.Sprintf("pkg:golang/%s@%s", m.name, m.version),
		}}
	}

	return pkg, nil
}

// addProgram adds the program for one platform, and its relations to all modules.
func addProgram(doc *v2_3.Document, r *release, p platform) {
	sum := sha256.Sum256(r.programs[p.go_].data)
	id := elementID("perfagent-linux-" + p.go_)
	program := &v2_3.Package{
		PackageName: "perfagent", PackageVersion: r.version, PackageSPDXIdentifier: id, PackageFileName: "perfagent (linux/" + p.go_ + ")",
		PackageDownloadLocation: homepage, PackageHomePage: homepage, PackageCopyrightText: "NOASSERTION",
		PackageLicenseConcluded: "MIT", PackageLicenseDeclared: "MIT", PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: fmt.Sprintf("%x", sum)}},
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/github.com/perfagent/perfagent@v" + r.version,
		}},
	}

	doc.Relationships = append(doc.Relationships, &v2_3.Relationship{
		RefA: common.MakeDocElementID("", "DOCUMENT"), Relationship: common.TypeRelationshipDescribe, RefB: common.MakeDocElementID("", string(id)),
	})
	for _, m := range r.modules {
		doc.Relationships = append(doc.Relationships, &v2_3.Relationship{
			RefA: common.MakeDocElementID("", string(id)), Relationship: common.TypeRelationshipStaticLink,
			RefB: common.MakeDocElementID("", string(elementID("Module-"+m.name))),
		})
	}
	doc.Packages = append(doc.Packages, program)
}

// elementID returns an SPDX element ID for name. It replaces all characters that SPDX forbids.
func elementID(name string) common.ElementID {
	return common.ElementID(regexp.MustCompile(`[^a-zA-Z0-9.-]+`).ReplaceAllString(name, "-"))
}
