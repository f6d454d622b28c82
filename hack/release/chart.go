package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
)

const (
	// chartFolder is the folder of the charts in the checkout, and in the repository.
	chartFolder = "charts"
	chartFile   = "Chart.yaml"
	// chartConfigType and chartContentType are Helm's media types, see https://helm.sh/docs/topics/registries/.
	chartConfigType  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContentType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// charts are the names of the charts.
var charts = []string{"stencil", "golden-images"}

// writeCharts packages the charts, and writes them as images too. It returns the packages by the names of their files, and the list of the images.
func (r release) writeCharts(digests map[string]v1.Hash) (packages map[string][]byte, list []byte, err error) {
	packages = map[string][]byte{}
	for _, each := range charts {
		packaged, err := r.chart(each, digests)
		if err != nil {
			return nil, nil, err
		}
		image, err := r.chartImage(each, packaged)
		if err != nil {
			return nil, nil, err
		}
		if err := r.writeLayout(chartFolder+"/"+each, image); err != nil {
			return nil, nil, err
		}
		digest, err := image.Digest()
		if err != nil {
			return nil, nil, err
		}
		list = fmt.Appendf(list, "%s/%s/%s:%s@%s\n", r.repository, chartFolder, each, r.tag(), digest)
		packages[each+"-"+r.tag()+".tgz"] = packaged
	}
	return packages, list, nil
}

// chart returns a packaged chart, whose version is that of the release, and whose values name the images by their digests.
func (r release) chart(chart string, digests map[string]v1.Hash) ([]byte, error) {
	folder := filepath.Join(r.root, chartFolder, chart)
	var files []entry
	err := filepath.WalkDir(folder, func(path string, file fs.DirEntry, err error) error {
		if err != nil || !file.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch {
		case relative == chartFile:
			content, err = r.versioned(content)
		case relative == "values.yaml" && chart == "stencil":
			values := map[string]string{"defaulting.image.repository": r.repository + "/" + launcherDefaulter.repository()}
			for path, image := range map[string]string{
				"manager.image": "stencil-manager", "apiserver.image": "stencil-apiserver", "transfers.image": "stencil-mover",
				"defaulting.image": launcherDefaulter.repository(), "defaulting.debianImage": debianDefaulter.repository(),
			} {
				// A release need not have those of stencil-defaulter.
				if digest, built := digests[image]; built {
					values[path+".repository"], values[path+".digest"] = r.repository+"/"+image, digest.String()
				}
			}
			content, err = set(content, values)
		}
		files = append(files, entry{name: chart + "/" + filepath.ToSlash(relative), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("packaging the chart %s: %w", chart, err)
	}
	return tarGz(files, r.created)
}

// versioned returns Chart.yaml with the version of the release.
func (o origin) versioned(content []byte) ([]byte, error) {
	return set(content, map[string]string{"version": o.tag(), "appVersion": o.tag()})
}

// set replaces values of a YAML document that are on one line, and leaves all else as it is, comments included. Paths are separated by dots.
func set(document []byte, values map[string]string) ([]byte, error) {
	var tree yaml.Node
	if err := yaml.Unmarshal(document, &tree); err != nil {
		return nil, err
	}
	lines := bytes.Split(document, []byte("\n"))
	for path, value := range values {
		node := tree.Content[0]
		for key := range strings.SplitSeq(path, ".") {
			if node = child(node, key); node == nil {
				return nil, fmt.Errorf("there is no %s", path)
			}
		}
		if node.Kind != yaml.ScalarNode || node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			return nil, fmt.Errorf("%s is not on one line", path)
		}
		line := lines[node.Line-1]
		before := line[:node.Column-1]
		lines[node.Line-1] = append(bytes.Clone(before), value...)
		if rest := bytes.TrimSpace(line[node.Column-1:]); !bytes.Equal(bytes.Trim(rest, `"'`), []byte(node.Value)) {
			return nil, fmt.Errorf("something follows %s on its line", path)
		}
	}
	return bytes.Join(lines, []byte("\n")), nil
}

func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// chartImage returns a packaged chart as `helm push` would push it.
func (r release) chartImage(chart string, packaged []byte) (v1.Image, error) {
	text, err := os.ReadFile(filepath.Join(r.root, chartFolder, chart, chartFile))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	var metadata map[string]any
	if text, err = r.versioned(text); err == nil {
		err = yaml.Unmarshal(text, &metadata)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", chartFile, err)
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", chartFile, err)
	}
	content := static.NewLayer(packaged, chartContentType)
	layer, err := partial.Descriptor(content)
	if err != nil {
		return nil, fmt.Errorf("describing the chart: %w", err)
	}
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("describing the chart: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config:      v1.Descriptor{MediaType: chartConfigType, Size: size, Digest: digest},
		Layers:      []v1.Descriptor{*layer},
		Annotations: r.labels(chart, fmt.Sprint(metadata["description"])),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of the chart: %w", err)
	}
	return partial.CompressedToImage(artifact{manifest: manifest, config: config, content: content})
}

// artifact is an image with another config than that of a container.
type artifact struct {
	manifest, config []byte
	content          v1.Layer
}

// MediaType implements partial.CompressedImageCore.
func (artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// RawConfigFile implements partial.CompressedImageCore.
func (a artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.content.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("there is no layer %s: %w", digest, err)
	}
	return a.content, nil
}
