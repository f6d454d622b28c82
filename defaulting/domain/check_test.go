package domain_test

import (
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/defaulting/domain"
)

// TestWhatNoGuestHas prepares VMs whose fields are well-formed, and of which no guest could be made.
func TestWhatNoGuestHas(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"a plain VM":              {`{domain: {devices: {}}}`, ""},
		"an architecture":         {`{architecture: riscv64, domain: {devices: {}}}`, `spec.template.spec.architecture riscv64: KubeVirt has the architectures amd64, arm64, s390x`},
		"a limit of 10^12 CPUs":   {`{domain: {devices: {}, resources: {limits: {cpu: "1e12"}}}}`, "spec.template.spec.domain.resources.limits.cpu 1e12: must be between 0 and 4294967295"},
		"a limit below 0":         {`{domain: {devices: {}, resources: {limits: {cpu: "-3"}}}}`, "spec.template.spec.domain.resources.limits.cpu -3: must be between 0 and 4294967295"},
		"a request of 10^12 CPUs": {`{domain: {devices: {}, resources: {requests: {cpu: "1T"}}}}`, "spec.template.spec.domain.resources.requests.cpu 1T: must be between 0 and 4294967295"},
		"a request of 2^32 CPUs":  {`{domain: {devices: {}, resources: {requests: {cpu: "4294967296"}}}}`, "spec.template.spec.domain.resources.requests.cpu 4294967296: must be between 0 and 4294967295"},
		"half a CPU":              {`{domain: {devices: {}, resources: {limits: {cpu: 500m}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			vm := &kubevirtv1.VirtualMachine{}
			if err := yaml.Unmarshal([]byte("spec: {template: {spec: "+tc.spec+"}}"), vm); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, cause := range domain.Check(domain.Prepare(vm, domain.Inputs{})) {
				got += cause.Path + " " + cause.Value + ": " + cause.Detail
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
