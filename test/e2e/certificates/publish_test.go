package certificates_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// bundles returns the caBundle of every webhook of the release, by webhook.
func bundles(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	found := map[string]string{}
	mutating, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "a-stencil-render", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, webhook := range mutating.Webhooks {
		found[webhook.Name] = string(webhook.ClientConfig.CABundle)
	}
	validating, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "stencil-validate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, webhook := range validating.Webhooks {
		found[webhook.Name] = string(webhook.ClientConfig.CABundle)
	}
	return found
}

func TestCABundleIsPutBack(t *testing.T) {
	startReplica(t)
	client := newClient(t)
	want := bundles(t, client)
	foreign, _ := makeAuthority(t, metav1.Now().Add(-1e9), 1e9/2)
	cases := map[string]string{
		"emptied":                              `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":""}]`,
		"removed":                              `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`,
		"replaced by an expired authority":     fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%s}]`, mustJSON(t, foreign)),
		"mixed with what is not a certificate": fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":%s}]`, mustJSON(t, append([]byte("hello\n"), foreign...))),
	}
	for name, patch := range cases {
		t.Run("after it was "+name, func(t *testing.T) {
			for _, configuration := range []string{renderConfiguration, validateConfiguration} {
				kubectl(t, "", "patch", configuration, "--type=json", "--patch", patch)
			}
			harness.Eventually(t, "the caBundles are back", func() error {
				if diff := cmp.Diff(want, bundles(t, client)); diff != "" {
					return fmt.Errorf("caBundles (-want +got):\n%s", diff)
				}
				return nil
			})
		})
	}
	if err := newRequests(t).vm(t.Context(), "afterwards"); err != nil {
		t.Error(err)
	}
}

// mustJSON encodes bytes as the API does.
func mustJSON(t *testing.T, data []byte) string {
	t.Helper()
	encoded, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestUpgradeOfTheReleaseLeavesTheCABundleAlone(t *testing.T) {
	startReplica(t)
	client := newClient(t)
	want := bundles(t, client)
	s := startStream(t)
	s.awaitMore(t, 20)

	changed := release
	changed.Values = map[string]any{"webhooks": map[string]any{"timeoutSeconds": 9}, "commonLabels": map[string]any{"example.com/upgraded": "yes"}}
	if err := install.Chart(t.Context(), shared.Plane(t), changed); err != nil {
		t.Fatal(err)
	}
	if got := kubectl(t, "", "get", renderConfiguration, "-o", "jsonpath={.webhooks[0].timeoutSeconds}"); got != "9" {
		t.Errorf("the upgrade did not change the configuration: timeoutSeconds is %s", got)
	}
	if diff := cmp.Diff(want, bundles(t, client)); diff != "" {
		t.Errorf("caBundles (-want +got):\n%s", diff)
	}
	if err := install.Chart(t.Context(), shared.Plane(t), release); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, bundles(t, client)); diff != "" {
		t.Errorf("caBundles after the change was taken back (-want +got):\n%s", diff)
	}
	s.awaitMore(t, 20)
	s.expectNoFailure(t)
}

func TestReinstalledConfigurationIsPublishedIn(t *testing.T) {
	startReplica(t)
	client := newClient(t)
	want := bundles(t, client)
	manifest := kubectl(t, "", "get", validateConfiguration, "-o", "json")
	var object map[string]any
	if err := json.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	metadata := object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(metadata, field)
	}
	for _, webhook := range object["webhooks"].([]any) {
		delete(webhook.(map[string]any)["clientConfig"].(map[string]any), "caBundle")
	}
	bare, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	kubectl(t, "", "delete", validateConfiguration)
	kubectl(t, string(bare), "create", "-f", "-")
	harness.Eventually(t, "the caBundles are back", func() error {
		if diff := cmp.Diff(want, bundles(t, client)); diff != "" {
			return fmt.Errorf("caBundles (-want +got):\n%s", diff)
		}
		return nil
	})
	harness.Eventually(t, "the webhook for templates is reached", func() error { return newRequests(t).template(t.Context(), "afterwards") })
}

func TestPublishingIsToldInAnEvent(t *testing.T) {
	startReplica(t)
	before := authority(t)
	kubectl(t, "", "--namespace", install.Namespace, "delete", "secret", authoritySecret)
	awaitRotation(t, before)
	for _, configuration := range []string{"MutatingWebhookConfiguration/a-stencil-render", "ValidatingWebhookConfiguration/stencil-validate"} {
		harness.Eventually(t, "an event tells of "+configuration, func() error {
			notes := kubectl(t, "", "--namespace", install.Namespace, "get", "events.events.k8s.io", "-o", "jsonpath={range .items[*]}{.reason} {.regarding.name} {.note}{\"\\n\"}{end}")
			if !strings.Contains(notes, "CABundlePublished "+authoritySecret+" caBundle of "+configuration+" now holds the present certificate authority") {
				return errors.New("there is no event about " + configuration + ":\n" + notes)
			}
			return nil
		})
	}
}

func TestManagerOwnsTheCABundleAndNothingElse(t *testing.T) {
	startReplica(t)
	var configuration struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", renderConfiguration, "-o", "json", "--show-managed-fields")), &configuration); err != nil {
		t.Fatal(err)
	}
	owned := map[string]string{}
	for _, entry := range configuration.Metadata.ManagedFields {
		var compact bytes.Buffer
		if err := json.Compact(&compact, entry.FieldsV1.GetRawBytes()); err != nil {
			t.Fatal(err)
		}
		owned[entry.Manager] += compact.String()
	}
	const bundle = `{"f:clientConfig":{"f:caBundle":{}}}`
	want := `{"f:webhooks":{"k:{\"name\":\"governed.template.kubevirt.io\"}":` + bundle + `,"k:{\"name\":\"namespace.stencil.kubevirt.io\"}":` + bundle + `,"k:{\"name\":\"render.template.kubevirt.io\"}":` + bundle + `,"k:{\"name\":\"requests.writers.template.kubevirt.io\"}":` + bundle + `,"k:{\"name\":\"virtualmachinetemplate.lending.template.kubevirt.io\"}":` + bundle +
		`,"k:{\"name\":\"virtualmachinetemplate.writers.template.kubevirt.io\"}":` + bundle + `}}`
	if got := owned["stencil-ca-bundle"]; got != want {
		t.Errorf("the manager owns %s", got)
	}
	if strings.Contains(owned["helm"], "caBundle") {
		t.Errorf("helm owns the caBundle: %s", owned["helm"])
	}
}
