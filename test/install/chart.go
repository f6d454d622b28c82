package install

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
)

const chartName = "stencil"

// Chart installs the chart, or upgrades the release when there is one, and returns when everything of it is stored.
func Chart(ctx context.Context, plane *controlplane.Plane, options Options) error {
	options = options.withDefaults()
	chart, err := ChartFolder()
	if err != nil {
		return err
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
	return helm(ctx, plane, arguments...)
}

// Uninstall removes the release. CRDs, and templates with them, stay.
func Uninstall(ctx context.Context, plane *controlplane.Plane, options Options) error {
	options = options.withDefaults()
	return helm(ctx, plane, "uninstall", options.Release, "--namespace", options.Namespace)
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

// writeValues writes Values, laid over what ManagerURL implies, to a file that remove takes away.
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
	merge(values, o.Values)
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

// merge lays upper over lower, as Helm does: maps merge, anything else is replaced.
func merge(lower, upper map[string]any) {
	for key, value := range upper {
		below, isMap := lower[key].(map[string]any)
		above, areMaps := value.(map[string]any)
		if isMap && areMaps {
			merge(below, above)
			continue
		}
		lower[key] = value
	}
}

// ChartFolder returns the path of the chart in this checkout: charts/stencil in a folder above the working directory, which for a
// test is that of its package, or else above this source file.
func ChartFolder() (string, error) {
	var starts []string
	if directory, err := os.Getwd(); err == nil {
		starts = append(starts, directory)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, directory := range starts {
		for ; ; directory = filepath.Dir(directory) {
			chart := filepath.Join(directory, "charts", chartName)
			if _, err := os.Stat(filepath.Join(chart, "Chart.yaml")); err == nil {
				return chart, nil
			}
			if directory == filepath.Dir(directory) {
				break
			}
		}
	}
	return "", errors.New("charts/stencil was not found above the working directory: run this inside a checkout of Stencil")
}
