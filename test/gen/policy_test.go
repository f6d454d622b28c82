package gen_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

func TestPolicy(t *testing.T) {
	equal(t, gen.Policy("odd", "package odd\ndeny contains \"odd\"\n", gen.Spec("{enforcement: Audit}")), `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: VirtualMachinePolicy
metadata: {name: odd}
spec:
  enforcement: Audit
  rego: |
    package odd
    deny contains "odd"
`)
}
