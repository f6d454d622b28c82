package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// launcherLibc is the version of glibc in virt-launcher: KubeVirt 1.8 builds it from packages of CentOS Stream 9, which has this one, see
// https://gitlab.com/redhat/centos-stream/rpms/glibc/-/blob/c9s/glibc.spec and https://github.com/kubevirt/kubevirt/blob/v1.8.2/rpm/BUILD.bazel.
const launcherLibc = "2.34"

// kubevirtVariable is read by stencil-defaulter, which pins no machine types where the cluster has another minor version.
const kubevirtVariable = "STENCIL_KUBEVIRT"

// launcherDefaulter is stencil-defaulter with KubeVirt's libvirt and QEMU.
var launcherDefaulter = program{
	name:        "stencil-defaulter",
	module:      "cmd/stencil-defaulter",
	tags:        "libvirt_dlopen",
	cgo:         true,
	launcher:    true,
	description: "Fills in the defaults of VirtualMachines with the libvirt and QEMU of KubeVirt",
}

// launcher is KubeVirt's virt-launcher image.
type launcher struct {
	// reference has the digest of the image for all platforms, tag the version of KubeVirt.
	reference name.Digest
	tag       string
	index     v1.ImageIndex
}

// launcherPattern is a reference with the tag of a release of KubeVirt, and a digest.
var launcherPattern = regexp.MustCompile(`^(.+):(v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)@(sha256:[0-9a-f]{64})$`)

// pullLauncher reads the index of an image; of the images for each platform it reads what is needed, when it is.
func pullLauncher(ctx context.Context, reference string) (*launcher, error) {
	fields := launcherPattern.FindStringSubmatch(reference)
	if fields == nil {
		return nil, fmt.Errorf("%q: want tag and digest, such as quay.io/kubevirt/virt-launcher:v1.8.2@sha256:…; `crane digest quay.io/kubevirt/virt-launcher:v1.8.2` prints the digest", reference)
	}
	digest, err := name.NewDigest(fields[1] + "@" + fields[3])
	if err != nil {
		return nil, err
	}
	index, err := remote.Index(digest, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("reading %s, which must be an image for several platforms: %w", reference, err)
	}
	return &launcher{reference: digest, tag: fields[2], index: index}, nil
}

// image returns the image for a platform.
func (l *launcher) image(on platform) (v1.Image, error) {
	manifest, err := l.index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading the index of %s: %w", l.reference, err)
	}
	for _, each := range manifest.Manifests {
		if p := each.Platform; p != nil && p.OS == on.os && p.Architecture == on.arch {
			return l.index.Image(each.Digest)
		}
	}
	return nil, fmt.Errorf("%s has no image for %s", l.reference, on)
}

// dependency returns the image for the provenance and the SBOM, see https://github.com/package-url/purl-spec/blob/main/types-doc/oci-definition.md.
func (l *launcher) dependency() resource {
	repository := l.reference.Context()
	parts := strings.Split(repository.RepositoryStr(), "/")
	return resource{
		URI:    "pkg:oci/" + parts[len(parts)-1] + "@" + url.QueryEscape(l.reference.DigestStr()) + "?repository_url=" + url.QueryEscape(repository.Name()) + "&tag=" + l.tag,
		Digest: map[string]string{"sha256": strings.TrimPrefix(l.reference.DigestStr(), "sha256:")},
	}
}

// onLauncher returns the image of stencil-defaulter: that of virt-launcher, with one layer more, another user and another command.
func (o origin) onLauncher(p program, on platform, binary []byte) (v1.Image, error) {
	image, err := o.launcher.image(on)
	if err != nil {
		return nil, err
	}
	kind, err := image.MediaType()
	if err != nil {
		return nil, fmt.Errorf("reading %s for %s: %w", o.launcher.reference, on, err)
	}
	base, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of %s for %s: %w", o.launcher.reference, on, err)
	}
	if base.OS != on.os || base.Architecture != on.arch {
		return nil, fmt.Errorf("%s has an image of %s/%s for %s", o.launcher.reference, base.OS, base.Architecture, on)
	}
	config := base.DeepCopy()
	config.Created = v1.Time{Time: o.created}
	config.Config.User, config.Config.WorkingDir, config.Config.Entrypoint, config.Config.Cmd = user, "/", []string{"/" + p.name}, nil
	config.Config.Env = append(config.Config.Env, kubevirtVariable+"="+o.launcher.tag)
	labels := maps.Clone(base.Config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, o.labelsOf(p))
	config.Config.Labels = labels
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	// All layers of an image have types of one specification.
	layer := types.OCILayer
	if kind == types.DockerManifestSchema2 {
		layer = types.DockerLayer
	}
	return o.append(image, layer, p.name+" "+o.version, entry{name: p.name, mode: 0o755, content: binary})
}

// checkLauncher returns an error if a platform has no base.
func (r release) checkLauncher() error {
	var problems error
	for _, on := range r.images {
		_, err := r.launcher.image(on)
		problems = errors.Join(problems, err)
	}
	return problems
}
