package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestThePluginIsWhatTheArchivesHave reads the manifest as krew does.
func TestThePluginIsWhatTheArchivesHave(t *testing.T) {
	r := of(t, checkout(t))
	var archives []archive
	contents := map[string][]byte{}
	for _, on := range []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}} {
		packed, err := r.archive(on, []byte("stencilctl for "+on.String()), entry{name: "man/man1/stencilctl.1", mode: 0o644, content: []byte("a page")})
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, packed)
		contents[packed.name] = packed.content
	}
	text, err := r.krew(archives)
	if err != nil {
		t.Fatal(err)
	}
	var manifest plugin
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata["name"] != "stencil" || manifest.Spec.Version != "v1.2.3" {
		t.Errorf("name %q, version %q", manifest.Metadata["name"], manifest.Spec.Version)
	}
	var names []string
	for _, each := range manifest.Spec.Platforms {
		on := each.Selector.MatchLabels["os"] + "/" + each.Selector.MatchLabels["arch"]
		name := path.Base(each.URI)
		names = append(names, name)
		content, found := contents[name]
		if !found || each.URI != "https://github.com/vmstencil/stencil/releases/download/v1.2.3/"+name {
			t.Errorf("%s is downloaded from %s", on, each.URI)
			continue
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != each.SHA256 {
			t.Errorf("%s has checksum %x, and the manifest %s", name, sum, each.SHA256)
		}
		var files map[string][]byte
		if strings.HasSuffix(name, ".zip") {
			files = unzip(t, content)
		} else {
			files = untarGz(t, content)
		}
		if got := string(files[each.Bin]); got != "stencilctl for "+on || len(files["LICENSE"]) == 0 || string(files["man/man1/stencilctl.1"]) != "a page" {
			t.Errorf("%s has program %q, and files %d", name, got, len(files))
		}
	}
	want := []string{
		"stencilctl-v1.2.3-linux-amd64.tar.gz", "stencilctl-v1.2.3-linux-arm64.tar.gz", "stencilctl-v1.2.3-darwin-amd64.tar.gz",
		"stencilctl-v1.2.3-darwin-arm64.tar.gz", "stencilctl-v1.2.3-windows-amd64.zip", "stencilctl-v1.2.3-windows-arm64.zip",
	}
	if !slices.Equal(names, want) {
		t.Errorf("archives %q", names)
	}
}

func unzip(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, each := range archive.File {
		file, err := each.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[each.Name], err = io.ReadAll(file); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
