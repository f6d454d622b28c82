package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/release"
)

// Version is that of the release of this checkout that clusters install.
const Version = "v0.0.0-cluster"

// InstallStencil builds a release of this checkout, pushes its images, and installs its chart with values. It returns when Helm reports that all pods are
// ready.
func (c *Cluster) InstallStencil(ctx context.Context, values map[string]any) error {
	output, err := c.buildRelease(ctx)
	if err != nil {
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
	result, err := c.Plane.Helm(ctx, "upgrade", "--install", install.Release, c.chart(output), "--namespace", install.Namespace, "--create-namespace",
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

// chart is the path of the chart in a release.
func (c *Cluster) chart(output string) string {
	return filepath.Join(output, "stencil-"+Version[1:]+".tgz")
}

// buildRelease writes a release of this checkout to the cluster's folder, if that has none, and pushes its images.
func (c *Cluster) buildRelease(ctx context.Context) (output string, err error) {
	output = filepath.Join(c.config.Folder, "release")
	if _, err := os.Stat(output); err == nil {
		return output, nil
	}
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	began := time.Now()
	built := &release.Release{Version: Version, Root: root, Command: filepath.Join(c.config.Folder, "release-command"), Repository: "ghcr.io/vmstencil"}
	if _, err := release.Run(ctx, filepath.Join(root, "hack", "release"), "go", "build", "-o", built.Command, "."); err != nil {
		return "", err
	}
	if err := built.Write(ctx, root, output); err != nil {
		return "", errors.Join(err, os.RemoveAll(output))
	}
	fmt.Fprintf(c.log, "cluster: release built in %.0f s\n", time.Since(began).Seconds())
	layouts, err := filepath.Glob(filepath.Join(output, "oci", "stencil-*"))
	if err != nil {
		return "", err
	}
	for _, each := range layouts {
		if err := c.pushLayout(ctx, each, built); err != nil {
			return "", fmt.Errorf("pushing %s: %w", filepath.Base(each), err)
		}
	}
	return output, nil
}

// pushLayout pushes the image in an OCI layout that is named like its repository.
func (c *Cluster) pushLayout(ctx context.Context, folder string, built *release.Release) error {
	to, err := node.InRegistry(built.Repository + "/" + filepath.Base(folder) + ":" + built.Tag())
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
