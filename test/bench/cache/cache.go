package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/bench/catalogue"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/product"
)

// Options are the sizes and the extent of the measurement.
type Options struct {
	// Golden is the template that all templates are variants of.
	Golden *v1beta1.VirtualMachineTemplate
	// Definitions is the folder with the CRDs of template.kubevirt.io.
	Definitions string
	// Templates is how many there are.
	Templates int
	// Starts is how often the manager is started; the result is the median. At least 1.
	Starts int
	// Profile is a folder for Go profiles of a manager that holds the templates, empty for none.
	Profile string
	// Log receives the cluster's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	templates int
	// size of a template as JSON, in bytes, on average.
	size int64
	// listed is how long a client takes to list and decode them, reflected how long a reflector does that stores nothing. Both are
	// measured before each start.
	listed, reflected []time.Duration
	// empty is a start without any template, full are those with all.
	empty start
	full  []start
}

// Run starts a cluster, fills it and measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	binary, err := product.Binary(ctx, string(manager.StencilManager))
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: options.Log, AuditPolicy: auditPolicy})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	process, err := prepare(ctx, plane, options)
	if err != nil {
		return nil, err
	}
	process.Binary = binary

	result = &Result{templates: options.Templates}
	options.Progress("cache: a start without templates")
	if result.empty, err = measure(ctx, plane, process, 5*time.Second); err != nil {
		return nil, err
	}
	options.Progress("cache: creating %d templates", options.Templates)
	if result.size, err = catalogue.Create(ctx, plane.AdminConfig(), options.Golden, options.Templates); err != nil {
		return nil, err
	}
	for number := range options.Starts {
		options.Progress("cache: start %d of %d, and a minute of watching", number+1, options.Starts)
		listed, err1 := list(ctx, plane, options.Templates)
		reflected, err2 := receive(ctx, plane, options.Templates)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		result.listed, result.reflected = append(result.listed, listed), append(result.reflected, reflected)
		full, err := measure(ctx, plane, process, observation)
		if err != nil {
			return nil, err
		}
		result.full = append(result.full, full)
	}
	return result, profile(ctx, process, options)
}

// prepare installs the chart with webhooks that match no namespace: the templates are created while no manager runs that could validate them.
func prepare(ctx context.Context, plane *controlplane.Plane, options Options) (manager.Options, error) {
	definitions, err := controlplane.ReadCRDs(options.Definitions)
	if err != nil {
		return manager.Options{}, err
	}
	if err := plane.InstallCRDs(ctx, definitions...); err != nil {
		return manager.Options{}, err
	}
	return install.Beside(ctx, plane, map[string]any{
		"crds": map[string]any{"enabled": false},
		// No namespace has this label.
		"webhooks": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"judged": "true"}}},
	})
}

// list lists and decodes the templates, and returns how long that took. The API server's cache may be behind the last creation at first.
func list(ctx context.Context, plane *controlplane.Plane, count int) (took time.Duration, err error) {
	client, err := catalogue.Client(plane.AdminConfig())
	if err != nil {
		return 0, err
	}
	for range 10 {
		var listed v1beta1.VirtualMachineTemplateList
		begin := time.Now()
		if err := client.Get().Resource("virtualmachinetemplates").Param("resourceVersion", "0").Do(ctx).Into(&listed); err != nil {
			return 0, fmt.Errorf("listing the templates: %w", err)
		}
		if took = time.Since(begin); len(listed.Items) == count {
			return took, nil
		}
	}
	return 0, fmt.Errorf("the API server does not list the %d templates", count)
}
