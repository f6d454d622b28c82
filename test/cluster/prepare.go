package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/test/cluster/image"
	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/controlplane"
)

// The release of Debian, and its packages, that the images of KubeVirt and CDI have.
const (
	debian         = "bookworm"
	debianPackages = "libvirt-daemon,libvirt-daemon-driver-qemu,libvirt-clients,qemu-system-x86,qemu-utils,seabios,nftables,passt,nbdkit,iproute2,xorriso,ca-certificates"
)

// prepare builds the tools and the images that are missing, and returns the folders of the images.
func prepare(ctx context.Context, log io.Writer) ([]string, error) {
	names := slices.Concat(node.Tools, node.Config{}.PlaneOptions().Tools(), image.Programs(), image.CDIPrograms(), []string{"cdi-operator-objects", "kubectls", "helm", "kubevirt-operator", "virt-operator-deployment"})
	tools, err := controlplane.Tools(ctx, names...)
	if err != nil {
		return nil, err
	}
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	builder, err := digestOf("image")
	if err != nil {
		return nil, err
	}
	programs := map[string]string{}
	inputs := []string{builder, debian, debianPackages}
	for _, name := range slices.Concat(image.Programs(), image.CDIPrograms()) {
		programs[name] = tools[name]
		inputs = append(inputs, filepath.Base(tools[name]))
	}
	key := sha256.Sum256([]byte(strings.Join(inputs, "\n")))
	store := filepath.Join(cache, "images-"+hex.EncodeToString(key[:8]))
	if _, err := os.Stat(store); err == nil {
		return []string{store}, nil
	}
	fmt.Fprintln(log, "making the images of KubeVirt and CDI, once")
	return []string{store}, makeImages(ctx, cache, store, programs)
}

// cacheFolder returns the folder of what clusters share.
func cacheFolder() (string, error) {
	folder := os.Getenv("STENCIL_CACHE")
	if folder == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(caches, "stencil")
	}
	folder = filepath.Join(folder, "cluster")
	return folder, os.MkdirAll(folder, 0o755)
}

// makeImages writes the images of KubeVirt and CDI, and the one that holds pods, to a store.
func makeImages(ctx context.Context, cache, store string, programs map[string]string) (err error) {
	folder, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	root, err := debianRoot(ctx, cache)
	if err != nil {
		return err
	}
	base, err := image.NewLayer(filepath.Join(folder, "debian.tar"), root)
	if err != nil {
		return err
	}
	version, source, err := module(ctx, "kubevirt", "kubevirt.io/kubevirt")
	if err != nil {
		return err
	}
	images, err := image.KubeVirt{Version: version, Source: source, Programs: programs, Root: root}.Images(ctx, folder, base)
	if err != nil {
		return err
	}
	if version, source, err = module(ctx, "cdi", "kubevirt.io/containerized-data-importer"); err != nil {
		return err
	}
	more, err := image.CDI{Version: version, Source: source, Programs: programs}.Images(folder, base)
	if err != nil {
		return err
	}
	maps.Copy(images, more)
	if images[node.Pause], err = pause(ctx, folder); err != nil {
		return err
	}
	partial := filepath.Join(folder, "store")
	made, err := image.Open(partial)
	if err != nil {
		return err
	}
	for _, reference := range slices.Sorted(maps.Keys(images)) {
		if err := made.Add(reference, images[reference]); err != nil {
			return err
		}
	}
	return os.Rename(partial, store)
}

// debianRoot returns a root file system with Debian's packages, which debootstrap makes once.
func debianRoot(ctx context.Context, cache string) (string, error) {
	key := sha256.Sum256([]byte(debian + debianPackages))
	root := filepath.Join(cache, "debian-"+hex.EncodeToString(key[:8]))
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	partial := root + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--include="+debianPackages, debian, partial)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("debootstrap: %w\n%s", err, output)
	}
	return root, os.Rename(partial, root)
}

// module returns the version and the folder of a module that the tools in a folder are built from.
func module(ctx context.Context, folder, name string) (version, source string, err error) {
	tools, err := folderOf(filepath.Join("tools", folder))
	if err != nil {
		return "", "", err
	}
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", name)
	command.Dir = tools
	output, err := command.Output()
	if err != nil {
		return "", "", fmt.Errorf("looking for the source of %s: %w", name, err)
	}
	version, source, _ = strings.Cut(strings.TrimSpace(string(output)), " ")
	return version, source, nil
}
