package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/test/bench/measurement"
)

// Options are the input and the extent of the measurement.
type Options struct {
	// Template is the golden Fedora template.
	Template *v1beta1.VirtualMachineTemplate
	// HelmEngine is the folder of the module that measures Helm's engine.
	HelmEngine string
	// Rounds is how often everything is measured; the result is the median. At least 1.
	Rounds int
	// Time of each measurement of a round.
	Time time.Duration
	// Progress receives the steps of the benchmark.
	Progress func(format string, arguments ...any)
}

// Result holds one measurement per round of each work.
type Result struct {
	Compile, Render, Request, All measurement.Series
	HelmText, HelmJSON            measurement.Series
}

// Parameters that both engines are given where the result must not be random.
const (
	proofName     = "web-1"
	proofPassword = "abcd-efgh-0123"
)

// Run measures.
func Run(ctx context.Context, options Options) (*Result, error) {
	compiled, err := template.Compile(options.Template)
	if err != nil {
		return nil, fmt.Errorf("compiling the template: %w", err)
	}
	helm, err := measurement.BuildCounterpart(ctx, options.HelmEngine)
	if err != nil {
		return nil, err
	}
	defer helm.Remove()

	result := &Result{}
	for round := range options.Rounds {
		options.Progress("engine: round %d of %d", round+1, options.Rounds)
		if err := result.measure(ctx, options, compiled, helm); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (r *Result) measure(ctx context.Context, options Options, compiled *template.Compiled, helm *measurement.Counterpart) error {
	for _, own := range []struct {
		into *measurement.Series
		work func() error
	}{
		{&r.Compile, func() error { _, err := template.Compile(options.Template); return err }},
		{&r.Render, func() error { return render(compiled, nil) }},
		{&r.Request, func() error { return request(compiled) }},
		{&r.All, func() error {
			fresh, err := template.Compile(options.Template)
			if err != nil {
				return err
			}
			return render(fresh, nil)
		}},
	} {
		measured, err := measurement.Of(options.Time, own.work)
		if err != nil {
			return err
		}
		*own.into = append(*own.into, measured)
	}
	var answer helmAnswer
	if err := helm.Run(ctx, &answer, "-time", options.Time.String(), "-name", proofName, "-password", proofPassword); err != nil {
		return err
	}
	if err := same(compiled, answer.Document); err != nil {
		return err
	}
	r.HelmText = append(r.HelmText, answer.Text)
	r.HelmJSON = append(r.HelmJSON, answer.JSON)
	return nil
}

// render makes one VM. Nothing is cached: each VM has a binding, and with it generated values, of its own.
func render(compiled *template.Compiled, values map[string]string) error {
	binding, err := compiled.Bind(values)
	if err != nil {
		return err
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		return err
	}
	if len(rendered.JSON()) == 0 {
		return fmt.Errorf("rendered nothing")
	}
	return nil
}

// request makes a VM as the webhook does for a request with a name and one parameter.
func request(compiled *template.Compiled) error {
	values := map[string]string{"INSTANCETYPE": "u1.large"}
	bound, err := compiled.BindName(proofName, values)
	if err != nil {
		return err
	}
	for name, value := range bound {
		values[name] = value
	}
	return render(compiled, values)
}

// same proves that the numbers are about the same work: given equal parameters, both engines render equal objects.
func same(compiled *template.Compiled, helms []byte) error {
	binding, err := compiled.Bind(map[string]string{"NAME": proofName, "CLOUD_USER_PASSWORD": proofPassword})
	if err != nil {
		return fmt.Errorf("binding for the comparison: %w", err)
	}
	rendered, err := compiled.Render(binding)
	if err != nil {
		return fmt.Errorf("rendering for the comparison: %w", err)
	}
	var ours, theirs map[string]any
	if err := json.Unmarshal(rendered.JSON(), &ours); err != nil {
		return fmt.Errorf("decoding what the template rendered: %w", err)
	}
	if err := json.Unmarshal(helms, &theirs); err != nil {
		return fmt.Errorf("decoding what the chart rendered: %w", err)
	}
	if !reflect.DeepEqual(ours, theirs) {
		return fmt.Errorf("the chart and the template do not render the same object:\n%s\n%s", bytes.TrimSpace(helms), rendered.JSON())
	}
	return nil
}
