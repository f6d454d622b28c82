package ova_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

const instancetype = `apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterInstancetype
metadata:
  name: u1.xlarge
spec:
  cpu:
    guest: 4
  memory:
    guest: 3Gi
`

const preference = `apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterPreference
metadata:
  name: fedora
spec:
  cpu:
    preferredCPUTopology: cores
`

// convertedFolder is a folder with the template of a package, and its disk.
func convertedFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "web")
	if code, _, messages := run(t.Context(), "convert", web(t), "--output-folder", folder, "-n", "golden"); code != cli.ExitOK {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	return folder
}

// sizedFolder is a folder with a template that names an instance type and a preference, and its disk.
func sizedFolder(t *testing.T) string {
	t.Helper()
	folder := convertedFolder(t)
	path := filepath.Join(folder, "web.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var template map[string]any
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	vm := template["spec"].(map[string]any)["virtualMachine"].(map[string]any)["spec"].(map[string]any)
	domain := vm["template"].(map[string]any)["spec"].(map[string]any)["domain"].(map[string]any)
	delete(domain, "cpu")
	delete(domain, "memory")
	vm["instancetype"] = map[string]any{"name": "u1.xlarge"}
	vm["preference"] = map[string]any{"name": "fedora"}
	if text, err = yaml.Marshal(template); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text))
	return folder
}

func TestInstanceTypesSizeTheHardware(t *testing.T) {
	folder := sizedFolder(t)
	sizes := filepath.Join(t.TempDir(), "sizes.yaml")
	alone := filepath.Join(t.TempDir(), "alone.yaml")
	write(t, sizes, instancetype+"---\n"+preference)
	write(t, alone, instancetype)
	for name, tc := range map[string]struct {
		files, cores string
		warnings     int
	}{
		"with the preference":    {sizes, "4", 1},
		"without the preference": {alone, "1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			packed := filepath.Join(t.TempDir(), "web.ova")
			code, out, messages := run(t.Context(), "convert", folder, "--output-file", packed, "-p", "NAME=a", "--instancetype-file", tc.files, "-o", "json")
			if code != cli.ExitOK {
				t.Fatalf("exit code %d, %s", code, messages)
			}
			var result struct {
				File, Template string
				Files          []struct{ Name string }
				Notes          []struct{ Action string }
			}
			if err := json.Unmarshal([]byte(out), &result); err != nil {
				t.Fatal(err)
			}
			warnings := 0
			for _, note := range result.Notes {
				if note.Action == "warning" {
					warnings++
				}
			}
			if result.File != packed || result.Template != "web" || len(result.Files) != 2 || warnings != tc.warnings {
				t.Errorf("result %+v", result)
			}
			code, out, messages = run(t.Context(), "inspect", packed, "--descriptor")
			for _, want := range []string{"<rasd:VirtualQuantity>4</rasd:VirtualQuantity>", "<rasd:VirtualQuantity>3072</rasd:VirtualQuantity>", `CoresPerSocket ovf:required="false">` + tc.cores + "<"} {
				if code != cli.ExitOK || !strings.Contains(out, want) {
					t.Errorf("exit code %d, %s, no %s in %s", code, messages, want, out)
				}
			}
			// The template itself has no sizes.
			if code, out, messages := run(t.Context(), "inspect", packed, "-o", "yaml"); code != cli.ExitOK || !strings.Contains(out, "name: u1.xlarge") || strings.Contains(out, "guest:") {
				t.Errorf("exit code %d, %s%s", code, messages, out)
			}
		})
	}
}

func TestInstanceTypesThatAreMissing(t *testing.T) {
	folder := sizedFolder(t)
	whole := filepath.Join(t.TempDir(), "whole")
	if code, _, messages := run(t.Context(), "convert", web(t), "--output-folder", whole, "-n", "golden"); code != cli.ExitOK {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	sizes, other := filepath.Join(t.TempDir(), "sizes.yaml"), filepath.Join(t.TempDir(), "other.yaml")
	write(t, sizes, instancetype)
	write(t, other, strings.Replace(instancetype, "u1.xlarge", "u1.small", 1))
	const missing = "the template names the VirtualMachineClusterInstancetype u1.xlarge, whose CPUs and memory the descriptor has: give the file with it, --instancetype-file FILE, " +
		"as `kubectl get virtualmachineclusterinstancetype u1.xlarge -o yaml` prints it"
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no file":                          {[]string{folder}, missing},
		"another instance type":            {[]string{folder, "--instancetype-file", other}, missing},
		"a template without one":           {[]string{whole, "--instancetype-file", sizes}, "the template names no instance type"},
		"a file that does not exist":       {[]string{folder, "--instancetype-file", sizes + ".none"}, "no such file"},
		"a file with something else in it": {[]string{folder, "--instancetype-file", filepath.Join(folder, "web.yaml")}, missing},
	} {
		t.Run(name, func(t *testing.T) {
			packed := filepath.Join(t.TempDir(), "web.ova")
			code, _, messages := run(t.Context(), append([]string{"convert", "--output-file", packed, "-p", "NAME=a"}, tc.arguments...)...)
			if code != cli.ExitUsage || !strings.Contains(messages, tc.want) {
				t.Errorf("exit code %d, %s", code, messages)
			}
			if _, err := os.Lstat(packed); !os.IsNotExist(err) {
				t.Errorf("the OVA: %v", err)
			}
		})
	}
}

func TestResultsAsJSON(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "web")
	good := web(t)
	code, out, messages := run(t.Context(), "convert", good, "--output-folder", folder, "-o", "json")
	var converted struct {
		File    string
		Written []string
		Plan    struct{ Systems []struct{ System string } }
	}
	if err := json.Unmarshal([]byte(out), &converted); code != cli.ExitOK || err != nil {
		t.Fatalf("exit code %d, %s%s, %v", code, out, messages, err)
	}
	if converted.File != good || len(converted.Plan.Systems) != 1 || len(converted.Written) != 2 || converted.Written[0] != filepath.Join(folder, "web.yaml") {
		t.Errorf("result %+v", converted)
	}
	for path, want := range map[string]struct {
		code  int
		valid bool
	}{good: {cli.ExitOK, true}, changed(t, good): {cli.ExitFindings, false}} {
		code, out, messages := run(t.Context(), "validate", path, "-o", "json")
		var result struct {
			Valid   bool
			Problem string
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil || code != want.code || result.Valid != want.valid || (result.Problem == "") != want.valid {
			t.Errorf("exit code %d, %s%s, %v", code, out, messages, err)
		}
	}
}
