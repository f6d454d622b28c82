package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/product"
)

const chartName = "stencil"

// Chart installs the chart, or upgrades the release when there is one, and returns when everything of it is stored.
func Chart(ctx context.Context, plane *controlplane.Plane, options Options) error {
	options = options.withDefaults()
	chart := options.Chart
	if chart == "" {
		var err error
		if chart, err = ChartFolder(); err != nil {
			return err
		}
	}
	values, remove, err := options.writeValues()
	if err != nil {
		return err
	}
	defer remove()
	arguments := []string{"upgrade", "--install", options.Release, chart, "--namespace", options.Namespace, "--create-namespace", "--values", values}
	for _, file := range options.ValuesFiles {
		arguments = append(arguments, "--values", file)
	}
	if strings.HasPrefix(chart, "oci://127.0.0.1:") {
		// The registry of a test.
		arguments = append(arguments, "--plain-http")
	}
	if options.ForceConflicts {
		arguments = append(arguments, "--force-conflicts")
	}
	return helm(ctx, plane, arguments...)
}

// Beside installs the chart for a manager beside the cluster, which does not run yet, and returns the options to start it with.
func Beside(ctx context.Context, plane *controlplane.Plane, values map[string]any) (manager.Options, error) {
	return Options{Values: values}.Beside(ctx, plane)
}

// Beside is Beside with these options, except ManagerURL.
func (o Options) Beside(ctx context.Context, plane *controlplane.Plane) (manager.Options, error) {
	address, err := manager.FreeAddress()
	if err != nil {
		return manager.Options{}, err
	}
	o.ManagerURL = "https://" + address
	if err := Chart(ctx, plane, o); err != nil {
		return manager.Options{}, err
	}
	options, err := o.Manager(plane)
	options.WebhookAddress = address
	return options, err
}

// Uninstall removes the release without its hook, which needs a node. CRDs, and templates with them, stay.
func Uninstall(ctx context.Context, plane *controlplane.Plane, options Options) error {
	options = options.withDefaults()
	return helm(ctx, plane, "uninstall", options.Release, "--namespace", options.Namespace, "--no-hooks")
}

func helm(ctx context.Context, plane *controlplane.Plane, arguments ...string) error {
	result, err := plane.Helm(ctx, arguments...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fmt.Errorf("helm %s: %s", arguments[0], strings.TrimSpace(result.Stderr))
	}
	return nil
}

// writeValues writes Values, merged over what ManagerURL implies, to a file that remove deletes.
func (o Options) writeValues() (path string, remove func(), err error) {
	values := map[string]any{"apiserver": map[string]any{"enabled": false}}
	if o.APIServerAddress != "" {
		host, text, err := net.SplitHostPort(o.APIServerAddress)
		if err != nil {
			return "", nil, fmt.Errorf("reading the address of stencil-apiserver: %w", err)
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			return "", nil, fmt.Errorf("reading the address of stencil-apiserver: %w", err)
		}
		values["apiserver"] = map[string]any{"enabled": true, "external": map[string]any{"host": host, "port": port}}
	}
	if o.ManagerURL != "" {
		values["manager"] = map[string]any{"enabled": false}
		values["webhooks"] = map[string]any{"url": o.ManagerURL}
	}
	// As Helm does.
	gen.Merge(values, o.Values)
	content, err := yaml.Marshal(values)
	if err != nil {
		return "", nil, fmt.Errorf("encoding the values of the chart: %w", err)
	}
	file, err := os.CreateTemp("", "stencil-values-*.yaml")
	if err != nil {
		return "", nil, fmt.Errorf("creating a file for the values of the chart: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", nil, errors.Join(fmt.Errorf("writing the values of the chart: %w", err), os.Remove(file.Name()))
	}
	return file.Name(), func() { _ = os.Remove(file.Name()) }, nil
}

// ChartFolder returns the path of the chart in this checkout.
func ChartFolder() (string, error) { return chartFolder(chartName) }

// CatalogueFolder returns the path of the chart golden-images in this checkout.
func CatalogueFolder() (string, error) { return chartFolder("golden-images") }

func chartFolder(name string) (string, error) {
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "charts", name), nil
}
