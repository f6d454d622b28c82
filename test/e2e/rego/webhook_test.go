package rego_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/vmstencil/stencil/test/harness"
)

// entries returns the webhooks of the configuration, in their order.
func entries(t *testing.T) ([]admissionregistrationv1.ValidatingWebhook, error) {
	t.Helper()
	result := kubectl(t, "", "get", configuration, "-o", "json")
	if result.Code != 0 {
		return nil, fmt.Errorf("%s", result.Stderr)
	}
	var object admissionregistrationv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal([]byte(result.Stdout), &object); err != nil {
		t.Fatal(err)
	}
	return object.Webhooks, nil
}

// awaitEntries waits until the configuration has these entries: "create.virtualmachine=Fail".
func awaitEntries(t *testing.T, want ...string) {
	t.Helper()
	harness.Eventually(t, "the configuration has its entries", func() error {
		webhooks, err := entries(t)
		if err != nil {
			return err
		}
		var got []string
		for _, webhook := range webhooks {
			name, _ := strings.CutSuffix(webhook.Name, ".policies.stencil.kubevirt.io")
			if len(webhook.ClientConfig.CABundle) == 0 {
				name += " without caBundle"
			}
			got = append(got, name+"="+string(*webhook.FailurePolicy))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the configuration has %q, want %q", got, want)
		}
		return nil
	})
}

func TestWebhooksComeAndGoWithThePolicies(t *testing.T) {
	awaitEntries(t)
	applied(t, "doors-vm", "", denies("doors"))
	awaitEntries(t, "create.templatedvirtualmachine=Fail", "create.virtualmachine=Fail", "create.virtualmachineinstance=Fail",
		"update.templatedvirtualmachine=Fail", "update.virtualmachine=Fail", "update.virtualmachineinstance=Fail")
	applied(t, "doors-template", "match: {kinds: [VirtualMachineTemplate], operations: [DELETE]}\nenforcement: Warn",
		"package x\ndeny contains \"no\" if input.oldObject.metadata.name == \"doors\"")
	awaitEntries(t, "create.templatedvirtualmachine=Fail", "create.virtualmachine=Fail", "create.virtualmachineinstance=Fail", "delete.virtualmachinetemplate=Ignore",
		"update.templatedvirtualmachine=Fail", "update.virtualmachine=Fail", "update.virtualmachineinstance=Fail")
	// A policy that no longer denies no longer fails closed.
	applied(t, "doors-vm", "enforcement: Audit\nmatch: {operations: [CREATE]}", denies("doors"))
	awaitEntries(t, "create.templatedvirtualmachine=Ignore", "create.virtualmachine=Ignore", "create.virtualmachineinstance=Ignore", "delete.virtualmachinetemplate=Ignore")
	must(t, "", "delete", "vmpol", "doors-vm")
	awaitEntries(t, "delete.virtualmachinetemplate=Ignore")
	must(t, "", "delete", "vmpol", "doors-template")
	awaitEntries(t)
}

func TestWhatSomebodyDoesToTheWebhooksIsUndone(t *testing.T) {
	applied(t, "guarded", "", denies("guarded"))
	active(t, "guarded")
	awaitDenial(t, "guarded", "no guarded here")
	original, err := entries(t)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(original)
	if err != nil {
		t.Fatal(err)
	}
	patch := func(text string) []string { return []string{"patch", configuration, "--type=json", "-p=" + text} }
	for _, tc := range []struct {
		name   string
		attack []string
	}{
		{"told to fail open", patch(`[{"op":"replace","path":"/webhooks/1/failurePolicy","value":"Ignore"}]`)},
		{"made to look away", patch(`[{"op":"add","path":"/webhooks/1/namespaceSelector","value":{"matchLabels":{"never":"true"}}}]`)},
		{"given a condition that is never met", patch(`[{"op":"add","path":"/webhooks/3/matchConditions/-","value":{"name":"never","expression":"false"}}]`)},
		{"pointed elsewhere", patch(`[{"op":"replace","path":"/webhooks/1/clientConfig","value":{"url":"https://localhost:1/x"}}]`)},
		{"taken away one by one", patch(`[{"op":"remove","path":"/webhooks/1"}]`)},
		{"taken away altogether", patch(`[{"op":"remove","path":"/webhooks"}]`)},
		{"deprived of their caBundle", patch(`[{"op":"remove","path":"/webhooks/1/clientConfig/caBundle"}]`)},
		{"deleted with their configuration", []string{"delete", configuration}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			must(t, "", tc.attack...)
			harness.Eventually(t, "the webhooks are restored", func() error {
				webhooks, err := entries(t)
				if err != nil {
					return err
				}
				if got, _ := json.Marshal(webhooks); string(got) != string(want) {
					return fmt.Errorf("got\n%s\nwant\n%s", got, want)
				}
				return nil
			})
			awaitDenial(t, "guarded", "no guarded here")
		})
	}
	events := must(t, "", "get", "events", "--field-selector=involvedObject.kind=ValidatingWebhookConfiguration,involvedObject.name=stencil-policies",
		"-o", `jsonpath={range .items[*]}{.type} {.reason}: {.message}{"\n"}{end}`)
	if !strings.Contains(events, "Warning Restored: the webhooks of the policies were restored because another client had changed create.virtualmachine.policies.stencil.kubevirt.io") {
		t.Errorf("events: %q", events)
	}
	labels := must(t, "", "get", configuration, "-o", "jsonpath={.metadata.labels}")
	if !strings.Contains(labels, `"app.kubernetes.io/part-of":"stencil"`) {
		t.Errorf("labels: %s", labels)
	}
}

func TestSelectorsThatAllPoliciesShareLimitTheWebhooks(t *testing.T) {
	const selecting = "match: {operations: [CREATE], namespaceSelector: {matchLabels: {virt: yes-please}}}"
	applied(t, "selecting-a", selecting, denies("a"))
	applied(t, "selecting-b", selecting, denies("b"))
	selector := func(want string) {
		t.Helper()
		harness.Eventually(t, "the webhook has its namespaceSelector", func() error {
			if got := must(t, "", "get", configuration, "-o", `jsonpath={.webhooks[?(@.name=="create.virtualmachine.policies.stencil.kubevirt.io")].namespaceSelector}`); got != want {
				return fmt.Errorf("namespaceSelector %s, want %s", got, want)
			}
			return nil
		})
	}
	selector(`{"matchLabels":{"virt":"yes-please"}}`)
	applied(t, "selecting-b", "match: {operations: [CREATE]}", denies("b"))
	selector(`{}`)
}
