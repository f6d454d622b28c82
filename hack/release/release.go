package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/vmstencil/stencil/hack/release/debian"
)

// release is what is built.
type release struct {
	origin
	// root is the folder of the checkout.
	root string
	// repository is where the images will be, without their names.
	repository string
	// plainHTTP pushes without TLS.
	plainHTTP bool
	// images and clients are the platforms of the images and of the archives of stencilctl.
	images, clients []platform
	// output is the folder that is written.
	output string
	// debian is from where the packages are downloaded.
	debian debian.Source
	// toolchain compiles and links what is written in C.
	toolchain *toolchain
}

const (
	// layouts is the folder with the OCI layouts, one for each repository.
	layouts   = "oci"
	checksums = "SHA256SUMS"
	imageList = "images.txt"
	chartList = "charts.txt"
	// provenanceFile is the predicate of the provenance of everything, sboms the folder with one SBOM for each program and platform.
	provenanceFile = "provenance.json"
	sboms          = "sbom"
	// modified marks the revision of a checkout with changes.
	modified = "-modified"
)

// versionPattern is a version as Go modules and Helm have it, with the v. Build metadata (+…) is no part of an image's tag.
var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// tag is the version without the v: the tag of the images, and the version of the chart.
func (o origin) tag() string { return strings.TrimPrefix(o.version, "v") }

// write builds everything and writes it to the output folder, which must be empty or not exist.
func (r release) write(ctx context.Context) error {
	if entries, err := os.ReadDir(r.output); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder", r.output)
	}
	digests, archives, err := r.programs(ctx)
	if err != nil {
		return err
	}
	packages, charts, err := r.writeCharts(digests)
	if err != nil {
		return err
	}
	definitions, err := r.definitions()
	if err != nil {
		return err
	}
	manifest, err := r.krew(archives)
	if err != nil {
		return err
	}
	notes, err := r.notes(digests)
	if err != nil {
		return err
	}
	built, err := r.provenance()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		provenanceFile:       built,
		"stencil-crds.yaml":  definitions,
		pluginName + ".yaml": manifest,
		imageList:            r.list(digests),
		chartList:            charts,
		notesFile:            notes,
	}
	maps.Copy(files, packages)
	for _, each := range archives {
		files[each.name] = each.content
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(r.output, name), content, 0o644); err != nil {
			return fmt.Errorf("writing a file of the release: %w", err)
		}
	}
	return writeChecksums(r.output)
}

// programs builds the programs, writes their images, and returns the digests of these and the archives of stencilctl.
func (r release) programs(ctx context.Context) (digests map[string]v1.Hash, archives []archive, err error) {
	digests = map[string]v1.Hash{}
	for _, each := range r.all() {
		wanted := slices.Clone(r.images)
		if each.name == client {
			wanted = append(wanted, r.clients...)
		}
		binaries := map[platform][]byte{}
		for _, on := range wanted {
			if binaries[on] != nil {
				continue
			}
			if binaries[on], err = r.build(ctx, each, on); err != nil {
				return nil, nil, err
			}
			if err := r.writeSBOM(each, on, binaries[on]); err != nil {
				return nil, nil, err
			}
		}
		index, err := r.index(ctx, each, binaries)
		if err != nil {
			return nil, nil, err
		}
		if digests[each.repository()], err = index.Digest(); err != nil {
			return nil, nil, err
		}
		if err := r.writeLayout(each.repository(), index); err != nil {
			return nil, nil, err
		}
		if each.name != client || len(r.clients) == 0 {
			continue
		}
		here := platform{runtime.GOOS, runtime.GOARCH}
		if binaries[here] == nil {
			if binaries[here], err = r.build(ctx, each, here); err != nil {
				return nil, nil, err
			}
		}
		manual, err := r.manual(ctx, binaries[here])
		if err != nil {
			return nil, nil, err
		}
		for _, on := range r.clients {
			packed, err := r.archive(on, binaries[on], manual...)
			if err != nil {
				return nil, nil, err
			}
			archives = append(archives, packed)
		}
	}
	return digests, archives, nil
}

// writeSBOM writes the SBOM of a program for a platform.
func (r release) writeSBOM(p program, on platform, binary []byte) error {
	text, err := r.sbom(p, on, binary)
	if err != nil {
		return err
	}
	path := filepath.Join(r.output, sbomFile(p.repository(), on))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644)); err != nil {
		return fmt.Errorf("writing an SBOM: %w", err)
	}
	return nil
}

// writeLayout writes an image as an OCI layout, whose index.json names it.
func (r release) writeLayout(repository string, image mutate.Appendable) error {
	path := filepath.Join(r.output, layouts, filepath.FromSlash(repository))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("creating a layout: %w", err)
	}
	named := v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": r.tag()}}
	if _, err := layout.Write(path, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image, Descriptor: named})); err != nil {
		return fmt.Errorf("writing the layout of %s: %w", repository, err)
	}
	return nil
}

// list returns the images of the release, one in a line, as `docker pull` takes them.
func (r release) list(digests map[string]v1.Hash) []byte {
	var text strings.Builder
	for _, each := range r.all() {
		fmt.Fprintf(&text, "%s/%s:%s@%s\n", r.repository, each.repository(), r.tag(), digests[each.repository()])
	}
	return []byte(text.String())
}

// definitions returns the CustomResourceDefinitions in one file.
func (r release) definitions() ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(r.root, chartFolder, "stencil", "files", "crds", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("the chart has no CustomResourceDefinitions in files/crds")
	}
	var text strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		fmt.Fprintf(&text, "---\n%s\n", strings.TrimSpace(strings.TrimPrefix(string(content), "---\n")))
	}
	return []byte(text.String()), nil
}

// writeChecksums writes the checksums of all files in a folder, and of the manifests of the layouts by their names, as sha256sum does. Blobs of a
// layout need none: their names are their digests.
func writeChecksums(folder string) error {
	var lines []string
	err := filepath.WalkDir(folder, func(path string, file os.DirEntry, err error) error {
		if err != nil || !file.Type().IsRegular() || file.Name() == checksums {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if strings.Contains(filepath.ToSlash(relative), "/blobs/") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), filepath.ToSlash(relative)))
		return nil
	})
	if err != nil {
		return fmt.Errorf("computing the checksums: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, checksums), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return fmt.Errorf("writing the checksums: %w", err)
	}
	return nil
}
