package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

const (
	// pluginName is the name of stencilctl as a plugin of kubectl.
	pluginName = "stencil"
	downloads  = source + "/releases/download/"
)

// archive is an archive of stencilctl for a platform.
type archive struct {
	on      platform
	name    string
	binary  string
	content []byte
}

// archive packs stencilctl and other files: as zip for Windows, as compressed tar for others.
func (r release) archive(on platform, binary []byte, others ...entry) (archive, error) {
	packed := archive{on: on, name: client + "-" + r.version + "-" + on.os + "-" + on.arch, binary: client}
	pack := tarGz
	if on.os == "windows" {
		packed.name, packed.binary, pack = packed.name+".zip", client+".exe", zipped
	} else {
		packed.name += ".tar.gz"
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return packed, fmt.Errorf("reading the license: %w", err)
	}
	entries := append([]entry{{name: packed.binary, mode: 0o755, content: binary}, {name: "LICENSE", mode: 0o644, content: license}}, others...)
	packed.content, err = pack(entries, r.created)
	return packed, err
}

// plugin is a manifest of krew, see https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type plugin struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Spec       pluginSpec        `yaml:"spec"`
}

type pluginSpec struct {
	Version          string           `yaml:"version"`
	Homepage         string           `yaml:"homepage"`
	ShortDescription string           `yaml:"shortDescription"`
	Description      string           `yaml:"description"`
	Platforms        []pluginPlatform `yaml:"platforms"`
}

type pluginPlatform struct {
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	} `yaml:"selector"`
	URI    string `yaml:"uri"`
	SHA256 string `yaml:"sha256"`
	Bin    string `yaml:"bin"`
}

// krew returns the manifest by which krew installs stencilctl as `kubectl stencil`.
func (r release) krew(archives []archive) ([]byte, error) {
	manifest := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": pluginName},
		Spec: pluginSpec{
			Version: r.version, Homepage: source, ShortDescription: "Templates for KubeVirt VMs",
			Description: "Renders, checks and approves templates of KubeVirt VirtualMachines,\ncreates and captures VMs, and tests policies.\n",
		},
	}
	for _, each := range archives {
		one := pluginPlatform{URI: downloads + r.version + "/" + each.name, SHA256: fmt.Sprintf("%x", sha256.Sum256(each.content)), Bin: each.binary}
		one.Selector.MatchLabels = map[string]string{"os": each.on.os, "arch": each.on.arch}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, one)
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest for krew: %w", err)
	}
	return text, nil
}
