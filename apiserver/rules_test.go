package apiserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	noSuch = `[{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 1, "message": "it needs memory"}]`
	letter = `[{"name": "hostname", "rule": "string", "path": "jsonpath::.spec.hostname", "maxLength": 1, "message": "too long"%s}]`
)

func TestRulesInTheRenderedVM(t *testing.T) {
	for _, tc := range []struct {
		name, rules, body string
		wantCode          int
		want, wantNot     string
		wantWarnings      warnings
	}{
		{name: "a rule that is not satisfied", rules: noSuch, wantCode: 422,
			want: `"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: rule memory of template shop/box: it needs memory (there is no such field)","field":"spec.virtualMachine.spec.template.spec.domain.memory.guest"}]`},
		{name: "no value is told where some are sensitive", rules: strings.ReplaceAll(letter, "%s", ""), wantCode: 422, want: "rule hostname of template shop/box: too long", wantNot: "longenough"},
		{name: "a rule that only warns", rules: strings.ReplaceAll(letter, "%s", `, "justWarning": true`), wantCode: 200,
			wantWarnings: warnings{"rule hostname of template shop/box: too long at spec.template.spec.hostname"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fixture{rules: tc.rules}
			got := f.do(t, "POST", base+"virtualmachinetemplates/box/process", "", "parameters: {NAME: web-1, PASSWORD: longenough}")
			if got.Code != tc.wantCode || !strings.Contains(got.Body.String(), tc.want) || tc.wantNot != "" && strings.Contains(got.Body.String(), tc.wantNot) {
				t.Errorf("%d %s", got.Code, got.Body)
			}
			if diff := cmp.Diff(tc.wantWarnings, f.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRulesOfATemplateThatIsSent(t *testing.T) {
	var f fixture
	got := f.do(t, "POST", base+"processedtemplates", "", `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: sent, annotations: {validations: '`+noSuch+`'}}
spec: {virtualMachine: {metadata: {name: a}, spec: {instancetype: {name: u1.small}, template: {spec: {domain: {}}}}}}
`)
	if got.Code != http.StatusCreated {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	want := warnings{"rule memory of template shop/sent: it cannot be evaluated: an instance type sets the size of the VM at spec.template.spec.domain.memory.guest"}
	if diff := cmp.Diff(want, f.warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
