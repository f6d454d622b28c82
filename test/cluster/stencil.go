package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/release"
)

// Version is the version of the release that clusters install.
const Version = "v0.0.0-cluster"

// Install installs KubeVirt, and Stencil as soon as KubeVirt's definitions are there, and returns when both are ready.
func (c *Cluster) Install(ctx context.Context) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return c.InstallKubeVirt(ctx) })
	both.Go(func() error {
		if err := c.pushRelease(ctx); err != nil {
			return err
		}
		err := deadline.Wait(ctx, "VirtualMachines are defined", limit, func(ctx context.Context) error {
			result, err := c.Plane.Kubectl(ctx, nil, "", "get", "virtualmachines", "--all-namespaces")
			if err == nil && result.Code != 0 {
				err = errors.New(result.Stderr)
			}
			return err
		})
		if err != nil {
			return err
		}
		return c.InstallStencil(ctx, nil)
	})
	return both.Wait()
}

// InstallStencil builds a release of this checkout, pushes its images, and installs its chart with values. It returns when Helm reports that all pods are
// ready.
func (c *Cluster) InstallStencil(ctx context.Context, values map[string]any) error {
	if err := c.pushRelease(ctx); err != nil {
		return err
	}
	began := time.Now()
	content, err := yaml.Marshal(values)
	if err != nil {
		return err
	}
	file := filepath.Join(c.config.Folder, "values.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return err
	}
	result, err := c.Plane.Helm(ctx, "upgrade", "--install", install.Release, filepath.Join(c.release, "stencil-"+Version[1:]+".tgz"), "--namespace", install.Namespace, "--create-namespace",
		"--values", file, "--wait", "--timeout", "4m")
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fmt.Errorf("installing the chart: %s", result.Stderr)
	}
	fmt.Fprintf(c.log, "cluster: Stencil ready after %.0f s\n", time.Since(began).Seconds())
	return nil
}

// released is the release that clusters install, in the registry of its images.
var released = release.Release{Version: Version, Repository: "ghcr.io/vmstencil"}

// pushRelease pushes the images of a release of this checkout, once.
func (c *Cluster) pushRelease(ctx context.Context) error {
	if c.release != "" {
		return nil
	}
	output, err := buildRelease(ctx, c.log)
	if err != nil {
		return err
	}
	layouts, err := filepath.Glob(filepath.Join(output, "oci", "stencil-*"))
	if err != nil {
		return err
	}
	for _, each := range layouts {
		if err := c.pushLayout(ctx, each); err != nil {
			return fmt.Errorf("pushing %s: %w", filepath.Base(each), err)
		}
	}
	c.release = output
	return nil
}

// buildRelease returns the folder with a release of this checkout, and builds it if no earlier cluster did from the same files.
func buildRelease(ctx context.Context, log io.Writer) (output string, err error) {
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	tree, err := treeOf(ctx, root, cache)
	if err != nil {
		return "", err
	}
	output = filepath.Join(cache, "release-"+tree)
	if _, err := os.Stat(output); err == nil {
		return output, nil
	}
	if err := removeOld(filepath.Join(cache, "release-*")); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	began, built := time.Now(), released
	built.Command = filepath.Join(folder, "release-command")
	if _, err := release.Run(ctx, filepath.Join(root, "hack", "release"), "go", "build", "-o", built.Command, "."); err != nil {
		return "", err
	}
	if err := built.Write(ctx, root, filepath.Join(folder, "release")); err != nil {
		return "", err
	}
	fmt.Fprintf(log, "cluster: release built in %.0f s\n", time.Since(began).Seconds())
	return output, os.Rename(filepath.Join(folder, "release"), output)
}

// removeOld removes the folders that match a pattern and were made more than a day ago: no cluster that starts uses them.
func removeOld(pattern string) error {
	folders, err := filepath.Glob(pattern)
	for _, each := range folders {
		if info, statErr := os.Stat(each); statErr == nil && time.Since(info.ModTime()) > 24*time.Hour {
			err = errors.Join(err, os.RemoveAll(each))
		}
	}
	return err
}

// treeOf returns the name that git gives to the present files of a checkout.
func treeOf(ctx context.Context, root, cache string) (tree string, err error) {
	folder, err := os.MkdirTemp(cache, "index-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for _, arguments := range [][]string{{"read-tree", "HEAD"}, {"add", "--all"}, {"write-tree"}} {
		command := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...)
		command.Env = append(os.Environ(), "GIT_INDEX_FILE="+filepath.Join(folder, "index"))
		output, err := command.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", arguments[0], err)
		}
		tree = strings.TrimSpace(string(output))
	}
	return tree[:16], nil
}

// pushLayout pushes the image in an OCI layout that is named like its repository.
func (c *Cluster) pushLayout(ctx context.Context, folder string) error {
	to, err := node.InRegistry(released.Repository + "/" + filepath.Base(folder) + ":" + released.Tag())
	if err != nil {
		return err
	}
	content, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return err
	}
	manifest, err := content.IndexManifest()
	if err != nil {
		return err
	}
	for _, each := range manifest.Manifests {
		index, err := content.ImageIndex(each.Digest)
		if err != nil {
			return err
		}
		err = remote.WriteIndex(to, index, remote.WithContext(ctx), remote.WithTransport(c.registry()))
		if err != nil {
			return err
		}
	}
	return nil
}
