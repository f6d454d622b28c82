package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestTheChartNamesImagesByDigest(t *testing.T) {
	r := of(t, checkout(t))
	r.images, r.clients = r.images[:1], nil
	r.sums(t)
	packaged, err := os.ReadFile(filepath.Join(r.output, "stencil-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	files := untarGz(t, packaged)
	type image struct{ Repository, Tag, Digest string }
	var values struct {
		Manager, Apiserver, Defaulting struct{ Image image }
	}
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	for name, into := range map[string]any{"stencil/values.yaml": &values, "stencil/Chart.yaml": &chart} {
		if err := yaml.Unmarshal(files[name], into); err != nil {
			t.Fatal(err)
		}
	}
	if chart.Version != "1.2.3" || chart.AppVersion != "1.2.3" {
		t.Errorf("the chart is %+v", chart)
	}
	list, err := os.ReadFile(filepath.Join(r.output, imageList))
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []image{values.Manager.Image, values.Apiserver.Image} {
		if !strings.Contains(string(list), each.Repository+":1.2.3@"+each.Digest+"\n") || !strings.HasPrefix(each.Repository, "registry.example.com/stencil/") {
			t.Errorf("image %+v is not in the list:\n%s", each, list)
		}
	}
	if defaulter := values.Defaulting.Image; defaulter.Repository != "registry.example.com/stencil/stencil-defaulter" || defaulter.Digest != "" {
		t.Errorf("the defaulter, which the release does not have, is %+v", defaulter)
	}
	original, err := os.ReadFile("../../charts/stencil/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if comments := strings.Count(string(original), "#"); strings.Count(string(files["stencil/values.yaml"]), "#") != comments {
		t.Errorf("comments of the values are lost: there were %d", comments)
	}
}

func TestSet(t *testing.T) {
	const document = "a: # first\n  b: \"\"\n  c: 1 # second\nd: |\n  text\n"
	for name, tc := range map[string]struct{ path, want, problem string }{
		"a value":                  {path: "a.b", want: "a: # first\n  b: new\n  c: 1 # second\nd: |\n  text\n"},
		"no such value":            {path: "a.x", problem: "there is no a.x"},
		"below a value":            {path: "a.b.c", problem: "there is no a.b.c"},
		"a comment on its line":    {path: "a.c", problem: "something follows a.c"},
		"a value on several lines": {path: "d", problem: "d is not on one line"},
		"no value":                 {path: "a", problem: "a is not on one line"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := set([]byte(document), map[string]string{tc.path: "new"})
			if tc.problem == "" && (err != nil || string(got) != tc.want) {
				t.Errorf("got %q, %v", got, err)
			}
			if tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("error %v", err)
			}
		})
	}
}
