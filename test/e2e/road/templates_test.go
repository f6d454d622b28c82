package road_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// TestBadTemplatesAreRefused tests both versions: what the schema rejects and what the webhook rejects.
func TestBadTemplatesAreRefused(t *testing.T) {
	const good = `"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}}}}`
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{
			name: "an undefined reference",
			spec: `{"virtualMachine":{"metadata":{"name":"${NAMME}"},"spec":{` + good + `}},"parameters":[{"name":"NAME"}]}`,
			want: []string{`spec.virtualMachine.metadata.name`, `NAMME`},
		},
		{
			name: "an undefined reference in parentheses",
			spec: `{"syntax":"Parentheses","virtualMachine":{"metadata":{"name":"$(NAMME)"},"spec":{` + good + `}},"parameters":[{"name":"NAME"}]}`,
			want: []string{`spec.virtualMachine.metadata.name: Invalid value: "$(NAMME)": no parameter is called NAMME; did you mean NAME?`},
		},
		{
			name: "an unknown field of the VM",
			spec: `{"virtualMachine":{"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"cpu":{"coress":2},"devices":{}}}}}}}`,
			want: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.coress`},
		},
		{
			name: "a wrong type",
			spec: `{"virtualMachine":{"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"cpu":{"cores":"two"},"devices":{}}}}}}}`,
			want: []string{`spec.virtualMachine.spec.template.spec.domain.cpu.cores`},
		},
		{
			name: "all errors of one template at once",
			spec: `{"virtualMachine":{"metadata":{"uid":"1"},"spec":{"runstrategy":"Halted",` + `"template":{"spec":{"domain":{"devices":{}}}}}},"parameters":[{"name":"A","value":"x","type":"int"},{"name":"B","from":"[b-a]{2}","generate":"expression"}]}`,
			want: []string{`spec.virtualMachine.metadata.uid`, `spec.virtualMachine.spec.runstrategy`, `spec.parameters[0].value`, `spec.parameters[1].from`},
		},
		{
			name: "a generator that cannot be read",
			spec: `{"virtualMachine":{"spec":{` + good + `}},"parameters":[{"name":"A","generate":"expression","from":"[z-a]{3}"}]}`,
			want: []string{`spec.parameters[0].from`},
		},
		{
			name: "another generator than expression",
			spec: `{"virtualMachine":{"spec":{` + good + `}},"parameters":[{"name":"A","generate":"magic","from":"[a-z]{3}"}]}`,
			want: []string{`spec.parameters[0].generate`},
		},
		{
			name: "a parameter that is declared twice",
			spec: `{"virtualMachine":{"spec":{` + good + `}},"parameters":[{"name":"A"},{"name":"A"}]}`,
			// Some API servers name the type of the value between the two.
			want: []string{`spec.parameters: Invalid value: `, `parameter names must be unique`},
		},
		{
			name: "no VM",
			spec: `{"parameters":[]}`,
			want: []string{`spec.virtualMachine`, `Required value`},
		},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(version+": "+tc.name, func(t *testing.T) {
				out := kubectl(t, nil, `{"apiVersion":"template.kubevirt.io/`+version+`","kind":"VirtualMachineTemplate","metadata":{"name":"broken","namespace":"golden"},"spec":`+tc.spec+`}`, "create", "-f", "-", "--namespace=golden")
				if out.Code == 0 {
					mustKubectl(t, nil, "", "delete", "vmt", "broken", "--namespace=golden")
					t.Fatal("it was stored")
				}
				for _, want := range tc.want {
					if !strings.Contains(out.Stderr, want) {
						t.Errorf("standard error lacks %q:\n%s", want, out.Stderr)
					}
				}
			})
		}
	}
}

func TestSuspiciousTemplatesAreStoredWithAWarning(t *testing.T) {
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "vmt", "odd", "--namespace=golden", "--ignore-not-found")
	})
	out := mustKubectl(t, nil, gen.Manifest(gen.Template("odd", gen.InNamespace("golden"), gen.Declares("UNUSED"), gen.Renders("", gen.LeastSpec()))), "create", "-f", "-", "--namespace=golden")
	if want := "Warning: parameter UNUSED is declared and never referred to"; !strings.Contains(out.Stderr, want) {
		t.Errorf("standard error lacks %q: %s", want, out.Stderr)
	}
}

func TestTheTemplateAPIIsThePublishedOne(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"the short name and the columns of templates", []string{"get", "vmt", "fedora", "--namespace=golden"}, []string{"NAME", "AGE", "READY", "fedora"}},
		{"the other short name", []string{"get", "vmts", "--namespace=golden"}, []string{"fedora", "ubuntu", "windows"}},
		{"the short names of requests", []string{"get", "vmtr,vmtrs", "--namespace=golden"}, nil},
		{"explain", []string{"explain", "vmt.spec.parameters.generate"}, []string{"FIELD: generate", "expression"}},
		{"the deprecated version warns", []string{"get", "virtualmachinetemplates.v1alpha1.template.kubevirt.io", "--namespace=golden"}, []string{"Warning:", "deprecated", "fedora"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := mustKubectl(t, nil, "", tc.args...)
			for _, want := range tc.want {
				if !strings.Contains(out.Stdout+out.Stderr, want) {
					t.Errorf("output lacks %q:\n%s%s", want, out.Stdout, out.Stderr)
				}
			}
		})
	}
	t.Run("the spec of a request is immutable", func(t *testing.T) {
		mustKubectl(t, nil, gen.Manifest(gen.VM("x", gen.LeastSpec())), "create", "-f", "-")
		t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vm", "x") })
		mustKubectl(t, nil, `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplateRequest","metadata":{"name":"r","namespace":"golden"},"spec":{"virtualMachineRef":{"namespace":"`+namespaces.Of(t)+`","name":"x"}}}`, "create", "-f", "-", "--namespace=golden")
		t.Cleanup(func() {
			mustKubectl(t, nil, "", "delete", "vmtr", "r", "--namespace=golden", "--ignore-not-found")
			mustKubectl(t, nil, "", "delete", "vmt", "r", "--namespace=golden", "--ignore-not-found")
		})
		out := kubectl(t, nil, "", "patch", "vmtr", "r", "--namespace=golden", "--type=merge", "-p", `{"spec":{"templateName":"y"}}`)
		if !strings.Contains(out.Stderr, "spec is immutable") {
			t.Errorf("got %s%s", out.Stdout, out.Stderr)
		}
	})
}
