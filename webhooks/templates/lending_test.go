package templates_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/webhooks/templates"
)

// permissions are the actions that are allowed, or an error.
type permissions struct {
	granted map[string]bool
	err     error
}

func (p permissions) May(_ context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error) {
	return p.granted[user.Username+" "+action.String()], p.err
}

func TestLending(t *testing.T) {
	disk := func(spec string) string {
		return "{virtualMachine: {spec: {dataVolumeTemplates: [{metadata: {name: root}, spec: {" + spec + "}}]}}}"
	}
	const fromNamespace = "sourceRef: {kind: DataSource, namespace: golden, name: fedora}"
	const added = "label stencil.kubevirt.io/disk-access=Lend was added: users who may use the template get copies of the disks in namespace golden that it names; set it to None to lend none"
	copies := permissions{granted: map[string]bool{"ada create datavolumes/source in golden": true}}
	for _, tc := range []struct {
		name        string
		operation   admissionv1.Operation
		object      string
		permissions permissions
		wantPatch   string
		wantWarning string
	}{
		{
			name: "a template that names a disk lends it", permissions: copies, object: manifest("os: fedora", disk(fromNamespace)),
			wantPatch: `[{"op":"add","path":"/metadata/labels/stencil.kubevirt.io~1disk-access","value":"Lend"}]`, wantWarning: added,
		},
		{
			name: "a template without labels", permissions: copies,
			object:    "{metadata: {name: fedora, namespace: golden}, spec: " + disk("source: {pvc: {namespace: '${FROM}', name: fedora}}") + "}",
			wantPatch: `[{"op":"add","path":"/metadata/labels","value":{"stencil.kubevirt.io/disk-access":"Lend"}}]`, wantWarning: added,
		},
		{
			name: "who may create pods and claims reads every disk", object: manifest("a: b", disk(fromNamespace)),
			permissions: permissions{granted: map[string]bool{"ada create pods in golden": true, "ada create persistentvolumeclaims in golden": true}},
			wantPatch:   `[{"op":"add","path":"/metadata/labels/stencil.kubevirt.io~1disk-access","value":"Lend"}]`, wantWarning: added,
		},
		{
			name: "pods alone are not enough", object: manifest("", disk(fromNamespace)),
			permissions: permissions{granted: map[string]bool{"ada create pods in golden": true}},
		},
		{name: "a writer who may not copy", object: manifest("", disk(fromNamespace))},
		{name: "the writer has decided", permissions: copies, object: manifest("stencil.kubevirt.io/disk-access: None", disk(fromNamespace))},
		{name: "an update", operation: admissionv1.Update, permissions: copies, object: manifest("", disk(fromNamespace))},
		{name: "a disk of the VM's own namespace", permissions: copies, object: manifest("", disk("sourceRef: {kind: DataSource, name: fedora}"))},
		{name: "an image", permissions: copies, object: manifest("", disk("source: {registry: {url: docker://images.example/fedora}}"))},
		{name: "no disk", permissions: copies, object: manifest("", good)},
		{name: "no VirtualMachine", permissions: copies, object: manifest("", "{}")},
		{name: "an invalid VirtualMachine", permissions: copies, object: manifest("", "{virtualMachine: {spec: 1}}")},
		{name: "an invalid template", permissions: copies, object: manifest("", "{parameters: 1}")},
		{
			name: "no answer", object: manifest("", disk(fromNamespace)), permissions: permissions{err: errors.New("timeout")},
			wantWarning: "the template lends no disks, because Stencil could not find out whether you may copy them (timeout): label it stencil.kubevirt.io/disk-access=Lend to lend them",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.operation == "" {
				tc.operation = admissionv1.Create
			}
			request := review(t, tc.operation, tc.object, tc.object)
			request.Namespace, request.UserInfo.Username = "golden", "ada"
			answer := templates.NewLending(tc.permissions).Handle(t.Context(), request)
			patch := ""
			if len(answer.Patches) > 0 {
				raw, err := json.Marshal(answer.Patches)
				if err != nil {
					t.Fatal(err)
				}
				patch = string(raw)
			}
			var warnings []string
			if tc.wantWarning != "" {
				warnings = []string{tc.wantWarning}
			}
			got := fmt.Sprint(answer.Allowed, patch, answer.Warnings)
			if diff := cmp.Diff(fmt.Sprint(true, tc.wantPatch, warnings), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
