package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/test/bench/profiles"
	"github.com/vmstencil/stencil/test/bench/report"
	"github.com/vmstencil/stencil/test/bench/statistics"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/platform"
)

// wantedDefaulting is the most that defaulting may add according to the project's targets, when the layout is cached.
const wantedDefaulting = time.Millisecond

var (
	// skipped is a VM with the annotation that excludes it from the defaults webhook, filled one without.
	skipped = setup{name: "rendered, defaults skipped", parts: []part{policies, webhooks}, body: withoutDefaults}
	filled  = setup{name: "rendered and filled in", parts: []part{policies, webhooks}, body: reference}
	// known has the floor add the same defaults, which it has beforehand: the lower limit of any webhook.
	known = setup{name: "rendered, defaults known beforehand", parts: []part{policies, webhooks, ready}, body: withoutDefaults}
)

func withoutDefaults(m vmRequests) []byte { return m.skipped }

// defaultingSetups are all that are compared.
var defaultingSetups = []setup{skipped, known, filled}

// DefaultingResult is what RunDefaulting has measured.
type DefaultingResult struct{ grid grid }

// RunDefaulting measures what the defaults webhook adds, with the libvirt and QEMU of this host. All VMs are of one shape, as those of one template
// are, so libvirt is called for one layout only; each gets a UUID of its own, so no two answers are the same.
func RunDefaulting(ctx context.Context, options Options) (result *DefaultingResult, err error) {
	sidecar, err := defaulter.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sidecar.Close()) }()
	if err := sidecar.Start(ctx); err != nil {
		return nil, err
	}
	source, arguments, err := profiles.Requested(options.Profile)
	if err != nil {
		return nil, err
	}
	result = &DefaultingResult{}
	comparison := plan{
		setups: defaultingSetups, clients: []int{1, targetClients},
		rounds: options.Rounds, requests: 2000, limit: 4 * time.Second,
	}
	// With KubeVirt, because the instance type and the preference of golden/fedora must exist: the webhook waits a while for those that it does not
	// find.
	err = on(ctx, platform.Options{
		KubeVirt:    true,
		Log:         options.Log,
		ManagerArgs: append(arguments, "--defaulting-socket="+sidecar.Socket()),
		Values:      map[string]any{"defaulting": map[string]any{"enabled": true}},
	}, func(b *bench) (err error) {
		if err := b.unlimit(ctx); err != nil {
			return err
		}
		patch, err := b.defaultsPatch(ctx)
		if err != nil {
			return err
		}
		if err := b.startReady(ctx, patch); err != nil {
			return err
		}
		if result.grid, err = b.rounds(ctx, comparison, options.Progress); err != nil {
			return err
		}
		return b.profile(ctx, source, filled, "admission-defaulting")
	})
	return result, err
}

// startReady starts a floor that answers this patch for every VM, in addition to the webhooks of Stencil and after them.
func (b *bench) startReady(ctx context.Context, patch []byte) error {
	patches := map[string][]byte{}
	for _, m := range b.vms {
		patches[m.name] = patch
	}
	if err := b.startFloor(ctx, patches); err != nil {
		return err
	}
	// The API server calls webhook configurations in alphabetical order.
	configuration := b.floor.mutating("zz-bench-floor", map[string]any{
		"rules": []any{map[string]any{
			"operations": []any{"CREATE"}, "apiGroups": []any{"kubevirt.io"}, "apiVersions": []any{"v1"}, "resources": []any{"virtualmachines"},
		}},
		"reinvocationPolicy": "IfNeeded", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
	})
	b.registrations[ready] = &registration{
		client: b.objects, objects: []registered{configuration}, effect: b.callsOf(b.floor.calls, withoutDefaults), whole: 1,
	}
	return nil
}

// unlimit raises virt-api's own limit of 200 requests to the API server in a second, three for each VM from an instance type. With the limit, every
// set-up creates 67 VMs in a second, without a difference.
func (b *bench) unlimit(ctx context.Context) error {
	const (
		component = `{"restClient":{"rateLimiter":{"tokenBucketRateLimiter":{"qps":10000,"burst":10000}}}}`
		patch     = `{"spec":{"configuration":{"apiConfiguration":` + component + `,"webhookConfiguration":` + component + `}}}`
	)
	result, err := b.stencil.Plane.Kubectl(ctx, nil, "", "patch", "kubevirt", "kubevirt", "--namespace=kubevirt", "--type=merge", "--patch="+patch)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fmt.Errorf("lifting the limit of virt-api: %s", result.Stderr)
	}
	return nil
}

// defaultsPatch returns the patch of the defaults webhook for a VM, computed from the VM created with it and without it.
func (b *bench) defaultsPatch(ctx context.Context) ([]byte, error) {
	answers := map[string][]byte{}
	for _, s := range []setup{skipped, filled} {
		answer, err := b.senders[0].create(ctx, s.body(b.vms[0]))
		if err != nil {
			return nil, fmt.Errorf("creating a VM (%s): %w", s.name, err)
		}
		if got := bytes.Contains(answer, []byte(contract.AnnotationDefaultsApplied)); got != (s.name == filled.name) {
			return nil, fmt.Errorf("%s: whether the VM was given its defaults is %t: %s", s.name, got, answer)
		}
		answers[s.name] = answer
	}
	operations, err := jsonpatch.CreatePatch(answers[skipped.name], answers[filled.name])
	if err != nil {
		return nil, fmt.Errorf("comparing two machines: %w", err)
	}
	// The other operations are changes by the API server, and the annotation that opts out.
	operations = slices.DeleteFunc(operations, func(o jsonpatch.Operation) bool {
		return !strings.HasPrefix(o.Path, "/spec/") && (!strings.HasPrefix(o.Path, "/metadata/annotations/") || o.Operation != "add")
	})
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return patch, nil
}

// Section reports the result.
func (r *DefaultingResult) Section(context string) report.Section {
	table := report.Table{
		Title:   "Dry-run creates of machines from one template",
		Columns: []string{"set-up", "clients", "p50", "p99", "creates/s", "adds at p50", "adds at p99"},
	}
	section := report.Section{
		Name:    "admission-defaulting",
		Context: fmt.Sprintf("%s; medians of %d rounds", context, len(r.grid[1][filled.name].p50)),
		Notes: []string{
			"The manager asks a stencil-defaulter with the libvirt and QEMU of this machine. All set-ups render golden/fedora; the first two carry the annotation that keeps the API server from calling the defaults webhook. libvirt has been asked about the shape before, as it has for all but the first machine of a template. KubeVirt's own webhooks are called in all, without the limit that virt-api sets its own requests.",
			"Where the defaults are known beforehand, webhook-floor, a process that does nothing else, answers every create at once with the same patch: what the API server takes for one more webhook that changes something, and KubeVirt's for judging what was added. No webhook can go below that.",
		},
	}
	for _, clients := range []int{1, targetClients} {
		base := r.grid[clients][skipped.name]
		p50 := 0.0
		for _, s := range defaultingSetups {
			c := r.grid[clients][s.name]
			row := []string{s.name, fmt.Sprint(clients), milliseconds(c.p50), milliseconds(c.p99), fmt.Sprintf("%.0f", statistics.Median(c.throughput)), "", ""}
			if s.name != skipped.name {
				p50 = statistics.Median(statistics.Differences(c.p50, base.p50))
				row[5] = report.SignedMilliseconds(p50)
				row[6] = report.SignedMilliseconds(statistics.Median(statistics.Differences(c.p99, base.p99)))
			}
			table.Rows = append(table.Rows, row)
		}
		section.Targets = append(section.Targets, report.Target{
			What: fmt.Sprintf("admission with defaulting adds at p50, known layout, clients: %d", clients), Wanted: "≤ 1 ms",
			Measured: report.SignedMilliseconds(p50), Met: p50 <= float64(wantedDefaulting),
		})
	}
	section.Tables = []report.Table{table}
	for _, clients := range []int{1, targetClients} {
		section.Tables = append(section.Tables, processorTime(fmt.Sprintf("Processor time per create, clients: %d", clients), defaultingSetups, r.grid[clients]))
	}
	return section
}
