package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/jsonpath"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// helm runs the real helm without a cluster and returns what it printed, and whether it succeeded.
func helm(t testing.TB, stdin string, arguments ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), tools["helm"], arguments...)
	// As planes run it.
	command.Env = []string{"HOME=" + home, "TMPDIR=" + home, "KUBECONFIG=" + home + "/none", "GOGC=400"}
	command.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), err == nil
}

func chartFolder(t *testing.T) string {
	t.Helper()
	folder, err := install.ChartFolder()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// templateArguments of `helm template` for a release in namespace stencil-system with values on standard input.
func templateArguments(t *testing.T, release string) []string {
	t.Helper()
	return []string{"template", release, chartFolder(t), "--namespace", install.Namespace, "--kube-version", "1.30.0", "--values", "-"}
}

// render returns the objects that the chart renders from values, given in YAML.
func render(t *testing.T, release, values string) objects {
	t.Helper()
	stdout, stderr, ok := helm(t, values, templateArguments(t, release)...)
	if !ok {
		t.Fatalf("helm template: %s", stderr)
	}
	return decode(t, stdout)
}

// objects are the objects of a rendered chart, by Kind/name.
type objects map[string]*unstructured.Unstructured

func decode(t testing.TB, manifest string) objects {
	t.Helper()
	found := objects{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("decoding what helm rendered: %v", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		key := object.GetKind() + "/" + object.GetName()
		if _, twice := found[key]; twice {
			t.Fatalf("%s is rendered twice", key)
		}
		found[key] = object
	}
}

// get returns the object called Kind/name.
func (o objects) get(t *testing.T, key string) *unstructured.Unstructured {
	t.Helper()
	object, ok := o[key]
	if !ok {
		t.Fatalf("%s is not rendered", key)
	}
	return object
}

// field returns the value at a JSONPath such as {.spec.replicas} of an object: nil if there is none, a list when the path selects several values.
func (o objects) field(t *testing.T, key, path string) any {
	t.Helper()
	query := jsonpath.New(path).AllowMissingKeys(true)
	if err := query.Parse(path); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	results, err := query.FindResults(o.get(t, key).Object)
	if err != nil {
		t.Fatalf("%s of %s: %v", path, key, err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	if len(results[0]) == 1 {
		return results[0][0].Interface()
	}
	var values []any
	for _, result := range results[0] {
		values = append(values, result.Interface())
	}
	return values
}

// plain converts any value to its JSON form, so that an int equals an int64 and a []string a []any.
func plain(t *testing.T, value any) any {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}
