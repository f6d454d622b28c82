package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/cache/policydata"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// Values that depend on other objects of the namespace are those of the files, or are given.
func TestDataOfNamespaces(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		testfile.Write(t, path, []byte(content))
		return path
	}
	policyFile := file("policy.yaml", `{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicy, metadata: {name: limits}, spec: {
data: [{name: gpus, virtualMachines: {selector: {matchLabels: {gpu: a100}}}}], rego: "package p\n\ndeny contains sprintf(\"%d others with %d CPUs, %d unknown\", [data.cluster.gpus.count, data.cluster.gpus.cpus, data.cluster.gpus.unknown]) if data.cluster.gpus.count > 0\n"}}`)
	quotaFile := file("quota-policy.yaml", `{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicy, metadata: {name: quotas}, spec: {
data: [{name: quota, resourceQuota: {name: team}}], rego: "package p\n\ndeny contains sprintf(\"%s is used\", [data.cluster.quota.used.pods]) if data.cluster.quota.used.pods == data.cluster.quota.hard.pods\n"}}`)
	vm := func(name, namespace, size string) string {
		return "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: " + name + ", namespace: " + namespace + ", labels: {gpu: a100}}, spec: {" + size + "template: {spec: {domain: {cpu: {cores: 2}, devices: {}}}}}}\n"
	}
	web := file("web.yaml", vm("web", "shop", ""))
	state := file("state.yaml", strings.Join([]string{
		vm("web", "shop", ""), vm("one", "shop", ""), vm("two", "shop", "instancetype: {name: u1.large}, "), vm("three", "shop", "instancetype: {name: u1.gone}, "), vm("one", "other", ""),
		"{apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineClusterInstancetype, metadata: {name: u1.large}, spec: {cpu: {guest: 8}, memory: {guest: 1Gi}}}\n",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: shop}, spec: {hard: {pods: 3}}, status: {used: {pods: 3}}}\n",
	}, "---\n"))
	broken := file("broken.yaml", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: team}, spec: {hard: [1]}}")
	for name, tc := range map[string]struct {
		arguments []string
		code      int
		output    string
	}{
		"nothing is given":         {arguments: []string{"-p", policyFile}, code: cli.ExitFindings, output: "data.cluster.gpus has no value: no file that --data names has VirtualMachines; give them, or --data gpus=VALUE"},
		"the objects are given":    {arguments: []string{"-p", policyFile, "--data", state}, code: cli.ExitFindings, output: "3 others with 10 CPUs, 1 unknown"},
		"none of another":          {arguments: []string{"-p", policyFile, "--data", state, "-n", "empty"}, code: cli.ExitFindings, output: "3 others with 10 CPUs"},
		"the value is given":       {arguments: []string{"-p", policyFile, "--data", `gpus={"count": 7, "cpus": 70, "unknown": 0}`}, code: cli.ExitFindings, output: "7 others with 70 CPUs, 0 unknown"},
		"another value is given":   {arguments: []string{"-p", policyFile, "--data", "gpus={count: 0}", "--data", state}, code: cli.ExitOK, output: "limits"},
		"the value is no YAML":     {arguments: []string{"-p", policyFile, "--data", "gpus={"}, code: cli.ExitUsage, output: "--data gpus: "},
		"no quota is given":        {arguments: []string{"-p", quotaFile, "--data", web}, code: cli.ExitFindings, output: "data.cluster.quota has no value: no file that --data names has ResourceQuota team; give them, or --data quota=VALUE"},
		"a quota is given":         {arguments: []string{"-p", quotaFile, "--data", web + "," + state}, code: cli.ExitFindings, output: "3 is used"},
		"the quota cannot be read": {arguments: []string{"-p", quotaFile, "--data", broken}, code: cli.ExitUsage, output: "broken.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range []string{"eval", "explain"} {
				var out bytes.Buffer
				code := run(t.Context(), append([]string{"stencilctl", "policy", command, "-f", web}, tc.arguments...), cli.Streams{Out: &out, Err: &out})
				if command == "eval" && code != tc.code || !strings.Contains(out.String(), tc.output) {
					t.Errorf("%s: exit code %d, want %d:\n%s", command, code, tc.code, out.String())
				}
			}
		})
	}
}

// A logged decision has the numbers with which it was made, and is the same when it is made again.
func TestReplayOfARecordWithNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	testfile.Write(t, path, []byte(`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicy, metadata: {name: limits}, spec: {
data: [{name: all, virtualMachines: {}}], rego: "package p\n\ndeny contains sprintf(\"%d others\", [data.cluster.all.count]) if data.cluster.all.count > 0\n"}}`))
	compiled := compiledPolicy(t, path)
	one := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	one.SetNamespace("shop")
	one.SetName("one")
	numbers, err := policydata.NewObjects([]*unstructured.Unstructured{one}, nil, nil).Bind(compiled.References()[0])
	if err != nil {
		t.Fatal(err)
	}
	c := policyinput.Case{
		Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine", Namespace: "shop", Name: "web"}, Object: map[string]any{"kind": "VirtualMachine"},
	}
	document := c.Document()
	input, err := rego.NewInput(document)
	if err != nil {
		t.Fatal(err)
	}
	entries := []policyset.Entry{{Policy: compiled.WithData([]rego.Binding{{Name: "all", Source: numbers}})}}
	record, err := c.Record("uid-1", policyset.NewEvaluator(policyset.Options{}).Evaluate(t.Context(), entries, input), document, input)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(record.Policies[0].Data[0].Value), `{"count":1,"cpus":1,"memory":0,"unknown":0}`; got != want || record.Policies[0].Data[0].Digest == "" {
		t.Errorf("the record has %s, want %s", got, want)
	}
	line, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	testfile.Write(t, log, append(line, '\n'))
	var out bytes.Buffer
	code := run(t.Context(), []string{"stencilctl", "policy", "eval", "--decision", log, "-p", path, "--data", "all={count: 7}"}, cli.Streams{Out: &out, Err: &out})
	if got := out.String(); code != cli.ExitOK || !strings.Contains(got, "1 others") || !strings.HasSuffix(got, "  the same as in the log\n") {
		t.Errorf("exit code %d:\n%s", code, got)
	}
}
