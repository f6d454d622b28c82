package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vmstencil/stencil/test/product"
)

// templateBundle is the path of the manifest of virt-operator's template component in the source of KubeVirt.
const templateBundle = "pkg/virt-operator/resource/generate/components/data/virt-template/install-virt-operator.yaml"

// virtOperator returns the path of the program of a release. With a bundle of its own it is built in a folder of the plane, by `go build -overlay`.
func (p *Plane) virtOperator(ctx context.Context, release VirtOperatorRelease) (string, error) {
	if release.Bundle == "" {
		return p.tool(ctx, "virt-operator"+release.suffix)
	}
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "test", "controlplane", "tools", "kubevirt"+release.suffix)
	folder := p.folder.file("virt-operator")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder of virt-operator: %w", err)
	}
	run := func(arguments ...string) (string, error) {
		command := exec.CommandContext(ctx, "go", arguments...)
		command.Dir = module
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
		output, err := command.Output()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			err = fmt.Errorf("go %s: %w\n%s", arguments[0], err, exit.Stderr)
		}
		return strings.TrimSpace(string(output)), err
	}
	if err := overlay(run, module, folder, release.Bundle); err != nil {
		return "", fmt.Errorf("replacing the template component of virt-operator: %w", err)
	}
	// The flags of hack/tool, so that only packages are compiled that depend on the manifest.
	binary := filepath.Join(folder, "virt-operator")
	_, err = run("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w -X kubevirt.io/client-go/version.gitVersion="+release.Version,
		"-modfile="+filepath.Join(folder, "go.mod"), "-overlay="+filepath.Join(folder, "overlay.json"), "-o", binary, "kubevirt.io/kubevirt/cmd/virt-operator")
	if err != nil {
		return "", fmt.Errorf("building virt-operator with another template component: %w", err)
	}
	return binary, nil
}

// overlay writes the go.mod and the overlay for a build of virt-operator to a folder. The go command replaces no file below its module cache, so the go.mod
// refers to KubeVirt's source by a link.
func overlay(run func(arguments ...string) (string, error), module, folder, bundle string) error {
	source, err := run("list", "-m", "-f", "{{.Dir}}", "kubevirt.io/kubevirt")
	if err != nil {
		return err
	}
	link := filepath.Join(folder, "kubevirt")
	if err := os.Symlink(source, link); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	if _, err := run("mod", "edit", "-replace=kubevirt.io/kubevirt="+link, filepath.Join(folder, "go.mod")); err != nil {
		return err
	}
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(link, templateBundle): bundle}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "overlay.json"), replaced, 0o600)
}
