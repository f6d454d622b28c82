package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/vmstencil/stencil/hack/release/debian"
)

const (
	// user runs the programs, by number, so that runAsNonRoot is checked without a passwd file. It is nonroot of distroless images.
	user = "65532:65532"
	// authoritiesPath is where Go's x509 package looks first.
	authoritiesPath = "etc/ssl/certs/ca-certificates.crt"

	source   = "https://github.com/vmstencil/stencil"
	licenses = "Apache-2.0"
)

// origin is from what an image is made.
type origin struct {
	version, revision string
	created           time.Time
	// packages are the Debian packages for each platform in the image of stencil-defaulter. Without them, there is no such image.
	packages map[platform]*debian.Lock
	// launcher is the image on which the other image of stencil-defaulter is. Without it, there is no such image.
	launcher *launcher
}

// labels returns the pre-defined annotations of the OCI image specification.
func (o origin) labels(title, description string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.version":     o.version,
		"org.opencontainers.image.revision":    o.revision,
		"org.opencontainers.image.created":     o.created.Format(time.RFC3339),
		"org.opencontainers.image.source":      source,
		"org.opencontainers.image.licenses":    licenses,
	}
}

// labelsOf returns the annotations of the image of a program.
func (o origin) labelsOf(p program) map[string]string {
	labels := o.labels(p.repository(), p.description)
	if p.cgo {
		// Each package has its license.
		delete(labels, "org.opencontainers.image.licenses")
	}
	return labels
}

// index returns the image of a program for the platforms of images.
func (r release) index(ctx context.Context, p program, binaries map[platform][]byte) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.OCIImageIndex)
	for _, on := range r.images {
		var image v1.Image
		var err error
		switch {
		case p.launcher:
			image, err = r.onLauncher(p, on, binaries[on])
		case p.debian:
			var base []entry
			if base, err = r.packaged(ctx, on); err == nil {
				image, err = r.image(p, on, binaries[on], base)
			}
		default:
			image, err = r.image(p, on, binaries[on], nil)
		}
		if err != nil {
			return nil, fmt.Errorf("making the image of %s for %s: %w", p.name, on, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: on.os, Architecture: on.arch}}})
	}
	annotated, ok := mutate.Annotations(index, r.labelsOf(p)).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotating the index of %s: it is no index", p.name)
	}
	return annotated, nil
}

// image returns the image of a program: the binary and nothing else, or in addition the authorities, or the files of base.
func (o origin) image(p program, on platform, binary []byte, base []entry) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config := &v1.ConfigFile{
		OS: on.os, Architecture: on.arch, Created: v1.Time{Time: o.created},
		Config: v1.Config{
			User: user, WorkingDir: "/", Entrypoint: []string{"/" + p.name}, Labels: o.labelsOf(p), ExposedPorts: map[string]struct{}{},
			Env: p.env,
		},
		RootFS: v1.RootFS{Type: "layers"},
	}
	for _, port := range p.ports {
		config.Config.ExposedPorts[strconv.Itoa(port)+"/tcp"] = struct{}{}
	}
	image, err := mutate.ConfigFile(image, config)
	if err != nil {
		return nil, err
	}
	if len(base) > 0 {
		if image, err = o.append(image, types.OCILayer, "the packages of hack/release/debian/defaulter-"+on.arch+".lock", base...); err != nil {
			return nil, err
		}
	}
	if p.authorities {
		// A layer of its own: the images share it, and it stays the same when only the program changes.
		if image, err = o.append(image, types.OCILayer, "the certificate authorities that Mozilla trusts", entry{name: authoritiesPath, mode: 0o644, content: authorities()}); err != nil {
			return nil, err
		}
	}
	files := []entry{{name: p.name, mode: 0o755, content: binary}}
	if p.link != "" {
		files = append(files, entry{name: p.link, link: p.name})
	}
	return o.append(image, types.OCILayer, p.name+" "+o.version, files...)
}

// append adds a layer.
func (o origin) append(image v1.Image, kind types.MediaType, comment string, files ...entry) (v1.Image, error) {
	content, err := tarGz(files, o.created)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(kind))
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "hack/release", Comment: comment}})
}

// authorities returns the certificates of the authorities that Mozilla trusts, of the version in go.mod. Those that it trusts with a condition are
// left out, because the file cannot contain one.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}
