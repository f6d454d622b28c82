package selfprotection

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestManifestsOf(t *testing.T) {
	configMap := func(key, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"meta.helm.sh/release-name": "stencil", "other": "x"}},
			Data:       map[string]string{key: text},
		}
	}
	for _, tc := range []struct {
		name, key, text string
		want            string
		wantProblem     string
	}{
		{
			name: "a policy is read, with the annotations of the release",
			key:  "ValidatingAdmissionPolicy.p.yaml",
			text: "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: p\nspec:\n  failurePolicy: Fail\n",
			want: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"annotations":{"meta.helm.sh/release-name":"stencil"},"name":"p"},"spec":{"failurePolicy":"Fail"}}`,
		},
		{
			name:        "another kind is refused, so that whoever writes the ConfigMap gets no further than these kinds",
			key:         "ClusterRoleBinding.p.yaml",
			text:        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: p}",
			wantProblem: "reading ClusterRoleBinding.p.yaml: rbac.authorization.k8s.io/v1 ClusterRoleBinding is none of the kinds that are protected",
		},
		{
			name:        "another version is refused",
			key:         "ValidatingAdmissionPolicy.p.yaml",
			text:        "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}",
			wantProblem: "admissionregistration.k8s.io/v1beta1 ValidatingAdmissionPolicy is none",
		},
		{
			name:        "a key that names something else is refused",
			key:         "ValidatingAdmissionPolicy.q.yaml",
			text:        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}",
			wantProblem: "it holds ValidatingAdmissionPolicy/p, whose key would be ValidatingAdmissionPolicy.p.yaml",
		},
		{name: "what is no YAML is refused", key: "x", text: "{", wantProblem: "decoding the manifest"},
		{name: "what is no object is refused", key: "x", text: "[]", wantProblem: "decoding the manifest"},
		{name: "nothing is refused", key: "x", text: "", wantProblem: "is none of the kinds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			manifests, problems := manifestsOf(configMap(tc.key, tc.text), nil)
			if tc.wantProblem != "" {
				if len(manifests) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.wantProblem) {
					t.Fatalf("got %v and %v, want %q", manifests, problems, tc.wantProblem)
				}
				return
			}
			if len(manifests) != 1 || len(problems) != 0 {
				t.Fatalf("got %v and %v", manifests, problems)
			}
			raw, err := manifests[0].object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.TrimSpace(string(raw))); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAManifestNamesTheConfigMapThatItRequires(t *testing.T) {
	const binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: b\n"
	for _, tc := range []struct{ name, text, want string }{
		{"one that names none", binding, ""},
		{"one that has other annotations", binding + "  annotations: {example.com/requires-configmap: x}\n", ""},
		{"one that names one", binding + "  annotations: {stencil.kubevirt.io/requires-configmap: stencil-approval-index}\n", "stencil-approval-index"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// An annotation of the ConfigMap with the manifests does not belong to them.
			m, err := readManifest("ValidatingAdmissionPolicyBinding.b.yaml", tc.text, map[string]string{RequiresAnnotation: "other"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if m.requires != tc.want {
				t.Errorf("it requires %q, want %q", m.requires, tc.want)
			}
		})
	}
}

func TestADigestTellsContentsApart(t *testing.T) {
	read := func(text string) string {
		m, err := readManifest("ValidatingAdmissionPolicy.p.yaml", text, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m.digest
	}
	const one = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {failurePolicy: Fail}\n"
	if read(one) != read("# a comment\n"+one) {
		t.Error("a comment makes another digest")
	}
	if read(one) == read(strings.Replace(one, "Fail", "Ignore", 1)) {
		t.Error("another content has the same digest")
	}
}

func TestWriter(t *testing.T) {
	entry := func(manager string, at time.Time, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for _, tc := range []struct {
		name        string
		entries     []metav1.ManagedFieldsEntry
		want        string
		wantWritten time.Time
		wantLast    string
	}{
		{name: "nobody is known: helm", want: "helm"},
		{
			name: "whoever wrote data last, and not who wrote something else since",
			entries: []metav1.ManagedFieldsEntry{
				entry("helm", ago(time.Hour), `{"f:data":{}}`),
				entry("argocd-controller", ago(time.Minute), `{"f:metadata":{},"f:data":{".":{}}}`),
				entry("kubectl-label", noon, `{"f:metadata":{"f:labels":{}}}`),
			},
			want: "argocd-controller", wantWritten: ago(time.Minute), wantLast: "kubectl-label",
		},
		{
			name: "entries that cannot be read do not count",
			entries: []metav1.ManagedFieldsEntry{
				entry("broken", noon, `[`), {Manager: "empty"},
				entry("helm", ago(time.Hour), `{"f:data":{}}`),
			},
			want: "helm", wantWritten: ago(time.Hour), wantLast: "broken",
		},
		{
			name: "within a second somebody else was later than the release",
			entries: []metav1.ManagedFieldsEntry{
				entry("helm", noon, `{"f:data":{}}`), entry("mallory", noon, `{"f:metadata":{}}`),
			},
			want: "helm", wantWritten: noon, wantLast: "mallory",
		},
		{
			name: "in whatever order they are listed",
			entries: []metav1.ManagedFieldsEntry{
				entry("mallory", noon, `{"f:metadata":{}}`), entry("helm", noon, `{"f:data":{}}`),
			},
			want: "helm", wantWritten: noon, wantLast: "mallory",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, written := writer(tc.entries)
			if got != tc.want || !written.Equal(tc.wantWritten) {
				t.Errorf("got %s at %s, want %s at %s", got, written, tc.want, tc.wantWritten)
			}
			if got := lastChange(tc.entries, tc.want); got != tc.wantLast {
				t.Errorf("last change by %q, want %q", got, tc.wantLast)
			}
		})
	}
}

func TestChanged(t *testing.T) {
	for _, tc := range []struct {
		name, manager string
		paths         []string
		want          string
	}{
		{"fields and who changed them", "kubectl-edit", []string{"spec.a", "spec.b"}, `spec.a, spec.b had been changed, last by field manager "kubectl-edit"`},
		{"many fields are counted", "", []string{"a", "b", "c", "d", "e", "f", "g"}, "a, b, c, d, e and 2 more fields had been changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := changed(tc.paths, tc.manager); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestWebhooksGetTheTrustOfAnotherConfiguration(t *testing.T) {
	const text = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a},
		webhooks: [{name: w, clientConfig: {service: {namespace: n, name: s}}}]}`
	m, err := readManifest("MutatingWebhookConfiguration.a.yaml", text, nil, "Q0E=")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := caBundleOf(webhooksOf(m.object)["w"]); got != "Q0E=" {
		t.Errorf("caBundle %v", got)
	}
}
