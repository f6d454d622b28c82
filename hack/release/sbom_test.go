package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// readSBOM returns an SBOM, which must be valid.
func readSBOM(t *testing.T, text []byte) *spdx.Document {
	t.Helper()
	document, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	return document
}

// TestSBOMsHaveWhatIsInTheProgram describes the test itself, a program with modules.
func TestSBOMsHaveWhatIsInTheProgram(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := of(t, t.TempDir())
	text, err := r.sbom(program{name: "stencil-manager", authorities: true}, platform{"linux", "amd64"}, binary)
	if err != nil {
		t.Fatal(err)
	}
	document := readSBOM(t, text)
	var found []string
	for _, each := range document.Packages {
		found = append(found, each.PackageExternalReferences[0].Locator)
	}
	authorities, err := ownDependency(authoritiesModule)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"pkg:golang/github.com/vmstencil/stencil@v1.2.3", "pkg:golang/github.com/google/go-containerregistry@v0.22.1", "pkg:golang/" + authoritiesModule + "@" + authorities,
	} {
		if !slices.Contains(found, want) {
			t.Errorf("no %s in %q", want, found)
		}
	}
	if !slices.ContainsFunc(found, func(each string) bool { return strings.HasPrefix(each, "pkg:golang/stdlib@1.") }) {
		t.Errorf("no standard library in %q", found)
	}
	if len(document.Relationships) != len(document.Packages) {
		t.Errorf("%d relationships of %d packages", len(document.Relationships), len(document.Packages))
	}
}

//suite:long
func TestProvenanceNamesTheCommit(t *testing.T) {
	r := of(t, checkout(t))
	r.images, r.clients, r.revision = r.images[:1], nil, strings.Repeat("3", 40)+modified
	r.sums(t)
	text, err := os.ReadFile(filepath.Join(r.output, provenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	var predicate provenance
	if err := json.Unmarshal(text, &predicate); err != nil {
		t.Fatal(err)
	}
	definition := predicate.BuildDefinition
	if got := definition.ResolvedDependencies[0].Digest["gitCommit"]; got != strings.Repeat("3", 40) {
		t.Errorf("commit %q", got)
	}
	if got := definition.ExternalParameters["source"]; got != "git+https://github.com/vmstencil/stencil@"+strings.Repeat("3", 40)+"-modified" {
		t.Errorf("source %q", got)
	}
	if definition.InternalParameters["SOURCE_DATE_EPOCH"] != "1700000000" || !strings.HasPrefix(definition.InternalParameters["go"], "go1.") {
		t.Errorf("parameters %v", definition.InternalParameters)
	}
}
