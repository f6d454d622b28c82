package main

import (
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// renderer renders the loaded chart. Helm parses a chart's templates at each rendering; it has no compiled form.
type renderer struct {
	chart *chart.Chart
}

// template is the key under which Helm returns the rendered file: the chart's name and the file's path in it.
const template = "fedora/templates/virtualmachine.yaml"

func newRenderer() (*renderer, error) {
	loaded, err := loadChart()
	if err != nil {
		return nil, err
	}
	return &renderer{chart: loaded}, nil
}

// text composes the values and renders, which are the steps that `helm template` takes for each release.
func (r *renderer) text(given map[string]any) (string, error) {
	values, err := util.ToRenderValues(r.chart, given, common.ReleaseOptions{Name: "bench", Namespace: "team-a", IsInstall: true, Revision: 1}, nil)
	if err != nil {
		return "", fmt.Errorf("composing the values: %w", err)
	}
	rendered, err := engine.Engine{}.RenderWithContext(context.Background(), r.chart, values)
	if err != nil {
		return "", fmt.Errorf("rendering: %w", err)
	}
	text, found := rendered[template]
	if !found {
		return "", fmt.Errorf("rendering: no %s among the %d results", template, len(rendered))
	}
	return text, nil
}

func (r *renderer) json(given map[string]any) ([]byte, error) {
	text, err := r.text(given)
	if err != nil {
		return nil, err
	}
	document, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("converting to JSON: %w", err)
	}
	return document, nil
}
