package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

const (
	// module of the programs.
	module = "github.com/vmstencil/stencil"
	// authoritiesModule is the module with the certificate authorities of the images.
	authoritiesModule = "golang.org/x/crypto/x509roots/fallback"
	noAssertion       = "NOASSERTION"
	rootElement       = "Package-program"
)

// sbom returns what a program consists of in SPDX 2.3: itself, Go's standard library, and the modules that the Go command has recorded in it; and the
// authorities, Debian packages or base of its image, if it has them.
func (o origin) sbom(p program, on platform, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s for %s: %w", p.name, on, err)
	}
	digest, _, err := v1.SHA256(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	program := &spdx.Package{
		PackageName: p.name, PackageSPDXIdentifier: rootElement, PackageVersion: o.version, PackageDownloadLocation: "git+" + source + "@" + o.revision,
		PackageChecksums: []spdx.Checksum{{Algorithm: spdx.SHA256, Value: digest.Hex}}, PackageLicenseDeclared: licenses, PackageLicenseConcluded: noAssertion,
		PackageCopyrightText: noAssertion, PackageDescription: p.description, PrimaryPackagePurpose: "APPLICATION",
		PackageExternalReferences: []*spdx.PackageExternalReference{packageURL(module, o.version)},
	}
	document := spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: p.repository() + "-" + o.version + "-" + on.os + "-" + on.arch,
		// A name only: nothing is served there.
		DocumentNamespace: source + "/spdx/" + p.repository() + "/" + digest.Hex,
		CreationInfo:      &spdx.CreationInfo{Created: o.created.Format(time.RFC3339), Creators: []spdx.Creator{{CreatorType: "Tool", Creator: "stencil-release-" + o.version}}},
		Packages:          []*spdx.Package{program},
		Relationships: []*spdx.Relationship{{
			RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", rootElement), Relationship: "DESCRIBES",
		}},
	}
	add := func(path, version string, reference *spdx.PackageExternalReference) *spdx.Package {
		id := fmt.Sprintf("Package-%d", len(document.Packages))
		added := &spdx.Package{
			PackageName: path, PackageSPDXIdentifier: common.ElementID(id), PackageVersion: version, PackageDownloadLocation: noAssertion,
			PackageLicenseDeclared: noAssertion, PackageLicenseConcluded: noAssertion, PackageCopyrightText: noAssertion, PrimaryPackagePurpose: "LIBRARY",
			PackageExternalReferences: []*spdx.PackageExternalReference{reference},
		}
		document.Packages = append(document.Packages, added)
		document.Relationships = append(document.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", rootElement), RefB: common.MakeDocElementID("", id), Relationship: "DEPENDS_ON",
		})
		return added
	}
	addModule := func(path, version string) { add(path, version, packageURL(path, version)) }
	addModule("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, each := range info.Deps {
		version := each.Version
		switch {
		case strings.HasPrefix(each.Path, module+"/"):
			// A folder of the same commit.
			version = o.version
		case each.Replace != nil:
			each = each.Replace
			version = each.Version
		}
		addModule(each.Path, version)
	}
	if p.authorities {
		version, err := ownDependency(authoritiesModule)
		if err != nil {
			return nil, err
		}
		addModule(authoritiesModule, version)
	}
	if p.debian {
		for _, each := range o.packages[on].Packages {
			added := add(each.Name, each.Version, &spdx.PackageExternalReference{Category: spdx.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: each.URL()})
			added.PackageChecksums = []spdx.Checksum{{Algorithm: spdx.SHA256, Value: each.SHA256}}
		}
	}
	if p.launcher {
		base := o.launcher.dependency()
		added := add(o.launcher.reference.Context().Name(), o.launcher.tag, &spdx.PackageExternalReference{Category: spdx.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: base.URI})
		added.PackageChecksums, added.PrimaryPackagePurpose = []spdx.Checksum{{Algorithm: spdx.SHA256, Value: base.Digest["sha256"]}}, "CONTAINER"
	}
	var text bytes.Buffer
	if err := spdxjson.Write(document, &text, spdxjson.Indent(" "), spdxjson.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("encoding the SBOM of %s: %w", p.name, err)
	}
	return text.Bytes(), nil
}

// packageURL returns a reference by which scanners find a module, see https://github.com/package-url/purl-spec.
func packageURL(path, version string) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{Category: spdx.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + path + "@" + version}
}

// ownDependency returns the version of a module with which this program is built.
func ownDependency(path string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program has no build information")
	}
	for _, each := range info.Deps {
		if each.Path == path {
			return each.Version, nil
		}
	}
	return "", fmt.Errorf("this program is built without %s", path)
}
