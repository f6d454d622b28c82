package selfprotection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/internal/fixture"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(fixture.JSON(t, text)); err != nil {
		t.Fatal(err)
	}
	return o
}

const header = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n"

func TestContentsAreTheSameWhen(t *testing.T) {
	m := manifest{object: object(t, header+`
metadata: {name: v, labels: {ours: "1"}, annotations: {also: ours}}
webhooks:
- {name: a, failurePolicy: Fail, clientConfig: {service: {name: s}}}
- {name: b, clientConfig: {url: "https://x", caBundle: QQ==}}
`)}
	storedContent := contentOf(object(t, header+`
metadata: {name: v, labels: {ours: "1"}, annotations: {also: ours}}
webhooks:
- {name: a, failurePolicy: Fail, timeoutSeconds: 10, clientConfig: {service: {name: s, port: 443}}}
- {name: b, timeoutSeconds: 10, clientConfig: {url: "https://x", caBundle: QQ==}}
`), m)
	for _, tc := range []struct {
		name, stored string
		want         []string
	}{
		{
			name: "others keep metadata of theirs, a status and the caBundle that the manifest leaves out",
			stored: `
metadata: {name: v, uid: u, generation: 3, labels: {ours: "1", theirs: "2"}, annotations: {also: ours, injector: x}}
status: {typeChecking: {}}
webhooks:
- {name: a, failurePolicy: Fail, timeoutSeconds: 10, clientConfig: {caBundle: Qg==, service: {name: s, port: 443}}}
- {name: b, timeoutSeconds: 10, clientConfig: {url: "https://x", caBundle: QQ==}}
`},
		{
			name: "not when somebody changes a field of the manifest, one that it leaves to its default, or a label",
			stored: `
metadata: {name: v, labels: {ours: "2"}, annotations: {also: ours}}
webhooks:
- {name: a, failurePolicy: Ignore, timeoutSeconds: 1, clientConfig: {service: {name: s, port: 443}}}
- {name: b, timeoutSeconds: 10, clientConfig: {url: "https://x", caBundle: QQ==}}
`, want: []string{"labels.ours", "webhooks[0].failurePolicy", "webhooks[0].timeoutSeconds"}},
		{
			name: "not when somebody adds a field",
			stored: `
metadata: {name: v, labels: {ours: "1"}, annotations: {also: ours}}
webhooks:
- {name: a, failurePolicy: Fail, timeoutSeconds: 10, clientConfig: {service: {name: s, port: 443}}, objectSelector: {matchLabels: {never: "true"}}}
- {name: b, timeoutSeconds: 10, clientConfig: {url: "https://x", caBundle: QQ==}}
`, want: []string{"webhooks[0].objectSelector"}},
		{
			name: "not when somebody takes fields away",
			stored: `
metadata: {name: v}
webhooks:
- {name: a, timeoutSeconds: 10, clientConfig: {service: {name: s, port: 443}}}
- {name: b, timeoutSeconds: 10, clientConfig: {url: "https://x", caBundle: QQ==}}
`, want: []string{"annotations.also", "labels.ours", "webhooks[0].failurePolicy"}},
		{
			name: "not when a webhook is missing",
			stored: `
metadata: {name: v, labels: {ours: "1"}, annotations: {also: ours}}
webhooks:
- {name: a, failurePolicy: Fail, timeoutSeconds: 10, clientConfig: {service: {name: s, port: 443}}}
`, want: []string{"webhooks"}},
		{
			name: "not when the caBundle is another and the manifest holds one",
			stored: `
metadata: {name: v, labels: {ours: "1"}, annotations: {also: ours}}
webhooks:
- {name: a, failurePolicy: Fail, timeoutSeconds: 10, clientConfig: {service: {name: s, port: 443}}}
- {name: b, timeoutSeconds: 10, clientConfig: {url: "https://x", caBundle: Qg==}}
`, want: []string{"webhooks[1].clientConfig.caBundle"}},
		{
			name:   "not when everything is gone",
			stored: `metadata: {name: v, labels: {ours: "1"}, annotations: {also: ours}}`, want: []string{"webhooks"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stored := contentOf(object(t, header+tc.stored), m)
			if diff := cmp.Diff(tc.want, stored.differences(storedContent)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if got, want := stored.equal(storedContent), len(tc.want) == 0; got != want {
				t.Errorf("equal: want %t, got %t", want, got)
			}
		})
	}
}

func TestWebhooksThatAManifestLeavesToOthers(t *testing.T) {
	m := manifest{object: object(t, header+`metadata: {name: v, labels: {ours: "1"}}`)}
	storedContent := contentOf(object(t, header+`metadata: {name: v, labels: {ours: "1"}}`), m)
	stored := object(t, header+`
metadata: {name: v, labels: {ours: "2"}}
webhooks:
- {name: a, clientConfig: {url: "https://x", caBundle: Qg==}}
`)
	if diff := cmp.Diff([]string{"labels.ours"}, contentOf(stored, m).differences(storedContent)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	want := object(t, header+`
metadata: {name: v, labels: {ours: "1"}}
webhooks:
- {name: a, clientConfig: {url: "https://x", caBundle: Qg==}}
`)
	// The replacement has the stored webhooks and the labels of the manifest.
	got := replacement(stored, m)
	if diff := cmp.Diff(want.Object["webhooks"], got.Object["webhooks"]); diff != "" || got.GetLabels()["ours"] != "1" {
		t.Errorf("replacement with labels %v (-want +got):\n%s", got.GetLabels(), diff)
	}
}

func TestReplacement(t *testing.T) {
	m := manifest{object: object(t, header+`
metadata: {name: v, labels: {ours: "1"}}
webhooks:
- {name: a, clientConfig: {service: {name: s}}}
- {name: b, clientConfig: {url: "https://x", caBundle: QQ==}}
- {name: c, clientConfig: {url: "https://y"}}
`)}
	stored := object(t, header+`
metadata: {name: v, uid: u, resourceVersion: "7", generation: 3, labels: {ours: "2", theirs: "2"}, annotations: {injector: x},
  finalizers: [theirs], ownerReferences: [{apiVersion: v1, kind: Node, name: one, uid: other}], managedFields: [{manager: m}]}
webhooks:
- {name: a, failurePolicy: Ignore, clientConfig: {url: "https://evil", caBundle: Qg==}}
- {name: b, clientConfig: {url: "https://x", caBundle: Qg==}}
- {name: d, clientConfig: {url: "https://x", caBundle: Qg==}}
`)
	before := stored.DeepCopy()
	got := replacement(stored, m)
	want := object(t, header+`
metadata: {name: v, uid: u, resourceVersion: "7", labels: {ours: "1", theirs: "2"}, annotations: {injector: x},
  finalizers: [theirs], ownerReferences: [{apiVersion: v1, kind: Node, name: one, uid: other}]}
webhooks:
- {name: a, clientConfig: {service: {name: s}, caBundle: Qg==}}
- {name: b, clientConfig: {url: "https://x", caBundle: QQ==}}
- {name: c, clientConfig: {url: "https://y"}}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the manifest with the metadata and caBundles of others (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, stored.Object); diff != "" {
		t.Errorf("the stored object has changed:\n%s", diff)
	}
}

// Fields that the API server adds to a policy or binding are no difference, other added fields are.
func TestStrippedContents(t *testing.T) {
	m := manifest{object: object(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p, labels: {ours: "1"}}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], resources: [pods]}]}
  validations: [{expression: "true"}]
`)}
	const stored = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p, uid: u, generation: 2, labels: {ours: "1", theirs: "2"}}
`
	for _, tc := range []struct {
		name, rest string
		want       []string
	}{
		{name: "defaults and empty fields", rest: `
status: {observedGeneration: 2}
spec:
  failurePolicy: Fail
  matchConditions: []
  matchConstraints: {matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, resourceRules: [{apiGroups: [""], resources: [pods], scope: "*"}]}
  validations: [{expression: "true"}]
`},
		{name: "what was changed, added and taken away", rest: `
spec:
  failurePolicy: Ignore
  matchConditions: [{name: never, expression: "false"}]
  matchConstraints: {matchPolicy: Exact, namespaceSelector: {matchLabels: {a: b}}, resourceRules: [{apiGroups: [""], resources: [pods], scope: Cluster}]}
`, want: []string{"spec.failurePolicy", "spec.matchConditions", "spec.matchConstraints.matchPolicy", "spec.matchConstraints.namespaceSelector", "spec.matchConstraints.resourceRules[0].scope", "spec.validations"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := contentOf(object(t, stored+tc.rest), m).stripped().differences(contentOf(m.object, m).stripped())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
