package defaults_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

// pool is what kubemacpool registers, with a webhook that is never called.
const pool = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kubemacpool-mutator}
webhooks:
- name: mutatevirtualmachines.kubemacpool.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://127.0.0.1:1/never"}
  namespaceSelector: {matchExpressions: [{key: mutatevirtualmachines.kubemacpool.io, operator: NotIn, values: [ignore]}]}
  rules: [{apiGroups: [never.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]
`

// macOf returns the address of the one interface of a VM.
func macOf(t *testing.T, name string) string {
	t.Helper()
	return domain(t, stored(t, "team-a", name), "devices", "interfaces", "default", "macAddress")
}

func TestMACAddresses(t *testing.T) {
	if err := stencil.RestartManager("--defaulting-mac=generate"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stencil.RestartManager(); err != nil {
			t.Error(err)
		}
	})

	t.Run("machines that are created at once have different ones", func(t *testing.T) {
		const vmCount = 12
		var names []string
		for i := range vmCount {
			names = append(names, fmt.Sprintf("mac-%d", i))
		}
		discard(t, "team-a", names...)
		var creating sync.WaitGroup
		for _, name := range names {
			creating.Go(func() {
				if out := kubectl(t, ada, vmWith(name, ""), "create", "-f", "-"); out.Code != 0 {
					t.Errorf("%s: %s", name, out.Stderr)
				}
			})
		}
		creating.Wait()
		holders := map[string]string{}
		for _, name := range names {
			address := macOf(t, name)
			parsed, err := net.ParseMAC(address)
			if err != nil || len(parsed) != 6 || parsed[0]&3 != 2 {
				t.Errorf("%s has %q, which is no locally administered unicast address", name, address)
			}
			if other := holders[address]; other != "" {
				t.Errorf("%s and %s both have %s", name, other, address)
			}
			holders[address] = name
		}
	})

	t.Run("the same manifest again keeps it", func(t *testing.T) {
		discard(t, "team-a", "mac-kept")
		mustKubectl(t, ada, vmWith("mac-kept", ""), "apply", "-f", "-")
		before := macOf(t, "mac-kept")
		mustKubectl(t, ada, strings.Replace(vmWith("mac-kept", ""), "Halted", "Manual", 1), "apply", "-f", "-")
		if after := macOf(t, "mac-kept"); before == "" || after != before {
			t.Errorf("it was %s and is %s", before, after)
		}
	})

	t.Run("an address that was seen in a dry run and taken is not made", func(t *testing.T) {
		discard(t, "team-a", "mac-thief", "mac-victim")
		seen := mustKubectl(t, ada, vmWith("mac-victim", ""), "create", "--dry-run=server", "-f", "-", "-o",
			"jsonpath={.spec.template.spec.domain.devices.interfaces[0].macAddress}").Stdout
		if _, err := net.ParseMAC(seen); err != nil {
			t.Fatalf("the dry run shows %q", seen)
		}
		mustKubectl(t, ada, strings.Replace(vmWith("mac-thief", ""), "masquerade: {}", `macAddress: "`+seen+`", masquerade: {}`, 1), "create", "-f", "-")
		mustKubectl(t, ada, vmWith("mac-victim", ""), "create", "-f", "-")
		if thief, victim := macOf(t, "mac-thief"), macOf(t, "mac-victim"); thief != seen || victim == "" || victim == seen {
			t.Errorf("seen %s, taken by hand %s, made %s", seen, thief, victim)
		}
	})

	t.Run("where kubemacpool cares it is left alone", func(t *testing.T) {
		const ignored = "mutatevirtualmachines.kubemacpool.io"
		mustKubectl(t, nil, pool, "create", "-f", "-")
		t.Cleanup(func() {
			mustKubectl(t, nil, "", "delete", "mutatingwebhookconfiguration", "kubemacpool-mutator")
			mustKubectl(t, nil, "", "label", "namespace", "team-a", ignored+"-")
		})
		made := func(want bool) {
			t.Helper()
			harness.Eventually(t, "MAC addresses are made or not, as wanted", func() error {
				out := kubectl(t, ada, vmWith("mac-pooled", ""), "create", "--dry-run=server", "-f", "-", "-o", "json")
				if got := strings.Contains(out.Stdout, "macAddress"); out.Code != 0 || got != want {
					return fmt.Errorf("made %t: %s", got, out.Stderr)
				}
				return nil
			})
		}
		made(false)
		mustKubectl(t, nil, "", "label", "namespace", "team-a", ignored+"=ignore")
		made(true)
	})
}
