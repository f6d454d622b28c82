package gen_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

func TestApproval(t *testing.T) {
	equal(t, gen.Approval("vault", gen.Governs("a", "b"), gen.Approves("golden/fedora", "kiosks/*"), gen.AnyValue("CORES"),
		gen.Overrides("spec.runStrategy", `metadata.labels["team"]`), gen.Spec("{enforcement: Warn}")), `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: TemplateApproval
metadata: {name: vault}
spec:
  enforcement: Warn
  namespaces: [a, b]
  templates: [{namespace: golden, name: fedora}, {namespace: kiosks, selector: {}}]
  parameters: [{name: CORES, anyValue: true}]
  overrides: [spec.runStrategy, 'metadata.labels["team"]']
`)
}
