package capture

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// TestInstancetypeOfTheInstallation checks which references are retained by a request that does not say it.
func TestInstancetypeOfTheInstallation(t *testing.T) {
	type object = map[string]any
	named := func(name, kind string) object { return object{"name": name, "kind": kind} }
	kept := v1beta1.VirtualMachineTemplateRequestSpec{Instancetype: "Keep", Parameterize: []v1beta1.CaptureParameter{"INSTANCETYPE"}}
	for name, tc := range map[string]struct {
		vm      object
		setting v1beta1.CaptureInstancetype
		request v1beta1.VirtualMachineTemplateRequestSpec
		want    v1beta1.VirtualMachineTemplateRequestSpec
	}{
		"cluster-wide":                   {vm: object{"instancetype": object{"name": "u1.small"}, "preference": object{"name": "fedora"}}, setting: "Keep", want: kept},
		"cluster-wide, with their kinds": {vm: object{"instancetype": named("u1.small", "VirtualMachineClusterInstancetype"), "preference": named("fedora", "virtualmachineclusterpreferences")}, setting: "Keep", want: kept},
		"one alone":                      {vm: object{"instancetype": object{"name": "u1.small"}}, setting: "Keep", want: kept},
		"of the namespace":               {vm: object{"instancetype": named("small", "VirtualMachineInstancetype")}, setting: "Keep"},
		"one of two of the namespace":    {vm: object{"instancetype": object{"name": "u1.small"}, "preference": named("fedora", "VirtualMachinePreference")}, setting: "Keep"},
		"inferred":                       {vm: object{"instancetype": object{"inferFromVolume": "root"}}, setting: "Keep"},
		"no setting":                     {vm: object{"instancetype": object{"name": "u1.small"}}, want: kept},
		"another setting":                {vm: object{"instancetype": object{"name": "u1.small"}}, setting: "Expand"},
		"a request that says it": {
			vm: object{"instancetype": object{"name": "u1.small"}}, setting: "Keep",
			request: v1beta1.VirtualMachineTemplateRequestSpec{Instancetype: "Expand"}, want: v1beta1.VirtualMachineTemplateRequestSpec{Instancetype: "Expand"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{request: &v1beta1.VirtualMachineTemplateRequest{Spec: tc.request}, content: &content{}}
			s.content.Spec.Source.VirtualMachine = object{"spec": tc.vm}
			if diff := cmp.Diff(tc.want, (&Reconciler{instancetype: tc.setting}).requested(s)); diff != "" {
				t.Errorf("the request is treated as (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.request, s.request.Spec); diff != "" {
				t.Errorf("the request itself was changed:\n%s", diff)
			}
		})
	}
}
