package defaults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// TestUpgradesLeaveTheWebhooksThatTheManagerAdds upgrades after another client has removed the webhooks, and after one has changed a label that Helm writes:
// the manager restores both, so that Helm owns fields which are not in the chart.
func TestUpgradesLeaveTheWebhooksThatTheManagerAdds(t *testing.T) {
	const configuration = "mutatingwebhookconfiguration/zz-stencil-defaults"
	timeouts := func() string {
		return harness.Kubectl(t, stencil.Plane, nil, "", "get", configuration, "-o", "jsonpath={.webhooks[*].timeoutSeconds}").Stdout
	}
	becomes := func(what, path, want string) {
		t.Helper()
		harness.Eventually(t, what, func() error {
			if got := harness.Kubectl(t, stencil.Plane, nil, "", "get", configuration, "-o", "jsonpath="+path).Stdout; got != want {
				return fmt.Errorf("it is %q, not %q", got, want)
			}
			return nil
		})
	}
	harness.Must(t, stencil.Plane, nil, "", "patch", configuration, "--type=json", `--patch=[{"op": "remove", "path": "/webhooks"}]`)
	becomes("the webhooks are back", "{.webhooks[*].timeoutSeconds}", "10")
	harness.Must(t, stencil.Plane, nil, "", "label", "--overwrite", configuration, "app.kubernetes.io/name=other")
	becomes("the label is back", `{.metadata.labels.app\.kubernetes\.io/name}`, "stencil")

	options := stencil.Options()
	before := options.Values
	t.Cleanup(func() {
		options.Values = before
		if err := install.Chart(context.WithoutCancel(t.Context()), stencil.Plane, options); err != nil {
			t.Error(err)
		}
	})
	options.Values = maps.Clone(before)
	options.Values["webhooks"] = map[string]any{"timeoutSeconds": 9}
	upgraded := make(chan error, 1)
	go func() { upgraded <- install.Chart(t.Context(), stencil.Plane, options) }()
	for done := false; !done; {
		select {
		case err := <-upgraded:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		case <-time.After(20 * time.Millisecond):
		}
		if got := timeouts(); got == "" {
			t.Fatal(errors.New("the upgrade removed the webhooks"))
		}
	}
	becomes("the webhooks are those of the upgrade", "{.webhooks[*].timeoutSeconds}", "9")
	if events := harness.Must(t, stencil.Plane, nil, "", "get", "events", "-A", "-o", "jsonpath={range .items[*]}{.reason} {.message}{\"\\n\"}{end}").Stdout; strings.Count(events, "Restored MutatingWebhookConfiguration/zz-stencil-defaults") != 2 {
		t.Errorf("not two events about what other clients changed:\n%s", events)
	}
}
