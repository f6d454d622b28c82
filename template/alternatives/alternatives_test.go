package alternatives_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template/alternatives"
)

var update = flag.Bool("update", false, "write the table into docs/overrides.md")

func decode(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// spec wraps fields of the instance.
func spec(t *testing.T, instance string) any {
	return decode(t, `{"template":{"spec":`+instance+`}}`)
}

func TestTheRequestReplacesAlternatives(t *testing.T) {
	for name, tc := range map[string]struct{ base, requested, want string }{
		"an interface": {
			`{"domain":{"devices":{"interfaces":[{"name":"default","masquerade":{},"model":"virtio"},{"name":"other","bridge":{}}]}}}`,
			`{"domain":{"devices":{"interfaces":[{"name":"default","bridge":{}}]}}}`,
			`{"domain":{"devices":{"interfaces":[{"name":"default","model":"virtio"},{"name":"other","bridge":{}}]}}}`,
		},
		"a binding plugin":    {`{"domain":{"devices":{"interfaces":[{"name":"a","masquerade":{}}]}}}`, `{"domain":{"devices":{"interfaces":[{"name":"a","binding":{"name":"passt"}}]}}}`, `{"domain":{"devices":{"interfaces":[{"name":"a"}]}}}`},
		"a network":           {`{"networks":[{"name":"a","pod":{}}]}`, `{"networks":[{"name":"a","multus":{"networkName":"lan"}}]}`, `{"networks":[{"name":"a"}]}`},
		"a volume":            {`{"volumes":[{"name":"root","containerDisk":{"image":"a"}}]}`, `{"volumes":[{"name":"root","persistentVolumeClaim":{"claimName":"b"}}]}`, `{"volumes":[{"name":"root"}]}`},
		"the same source":     {`{"volumes":[{"name":"root","containerDisk":{"image":"a"}}]}`, `{"volumes":[{"name":"root","containerDisk":{"imagePullPolicy":"Always"}}]}`, `{"volumes":[{"name":"root","containerDisk":{"image":"a"}}]}`},
		"a target":            {`{"domain":{"devices":{"disks":[{"name":"root","disk":{"bus":"virtio"},"serial":"x"}]}}}`, `{"domain":{"devices":{"disks":[{"name":"root","cdrom":{"bus":"sata"}}]}}}`, `{"domain":{"devices":{"disks":[{"name":"root","serial":"x"}]}}}`},
		"firmware":            {`{"domain":{"firmware":{"bootloader":{"efi":{}},"uuid":"a"}}}`, `{"domain":{"firmware":{"bootloader":{"bios":{}}}}}`, `{"domain":{"firmware":{"bootloader":{},"uuid":"a"}}}`},
		"a probe":             {`{"readinessProbe":{"httpGet":{"port":1},"periodSeconds":5}}`, `{"readinessProbe":{"guestAgentPing":{}}}`, `{"readinessProbe":{"periodSeconds":5}}`},
		"a clock":             {`{"domain":{"clock":{"utc":{},"timer":{"hpet":{}}}}}`, `{"domain":{"clock":{"timezone":"Europe/Berlin"}}}`, `{"domain":{"clock":{"timer":{"hpet":{}}}}}`},
		"null is not set":     {`{"networks":[{"name":"a","pod":{}}]}`, `{"networks":[{"name":"a","multus":null}]}`, `{"networks":[{"name":"a","pod":{}}]}`},
		"both by the user":    {`{"networks":[{"name":"a","pod":{}}]}`, `{"networks":[{"name":"a","pod":{},"multus":{}}]}`, `{"networks":[{"name":"a","pod":{}}]}`},
		"cloud-init as text":  {`{"volumes":[{"name":"ci","cloudInitNoCloud":{"userDataBase64":"YQ==","networkData":"b"}}]}`, `{"volumes":[{"name":"ci","cloudInitNoCloud":{"userData":"c"}}]}`, `{"volumes":[{"name":"ci","cloudInitNoCloud":{"networkData":"b"}}]}`},
		"source and password": {`{"accessCredentials":[{"userPassword":{"source":{},"propagationMethod":{}}}]}`, `{"accessCredentials":[{"userPassword":{"source":{}}}]}`, `{"accessCredentials":[{"userPassword":{"source":{},"propagationMethod":{}}}]}`},
		"another item":        {`{"networks":[{"name":"a","pod":{}}]}`, `{"networks":[{"name":"b","multus":{}}]}`, `{"networks":[{"name":"a","pod":{}}]}`},
		"another kind":        {`{"networks":[{"name":"a","pod":{}}]}`, `{"networks":"x"}`, `{"networks":[{"name":"a","pod":{}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			base, before := spec(t, tc.base), spec(t, tc.base)
			if diff := cmp.Diff(spec(t, tc.want), alternatives.Spec().Without(base, spec(t, tc.requested))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, base); diff != "" {
				t.Errorf("the base was changed:\n%s", diff)
			}
		})
	}
	top := alternatives.Spec().Without(decode(t, `{"running":true,"instancetype":{"name":"a","kind":"b"}}`), decode(t, `{"runStrategy":"Halted","instancetype":{"inferFromVolume":"root"}}`))
	if diff := cmp.Diff(decode(t, `{"instancetype":{"kind":"b"}}`), top); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnUpdateThatAddsAnAlternativeReplaces(t *testing.T) {
	for name, tc := range map[string]struct{ stored, requested, manifest, want string }{
		"one is added":                      {`[{"name":"a","pod":{}}]`, `[{"name":"a","pod":{},"multus":{}}]`, ``, `[{"name":"a","multus":{}}]`},
		"one is added, and both are meant":  {`[{"name":"a","pod":{}}]`, `[{"name":"a","pod":{},"multus":{}}]`, `[{"name":"a","pod":{},"multus":{}}]`, `[{"name":"a","pod":{},"multus":{}}]`},
		"the manifest has the new one only": {`[{"name":"a","pod":{}}]`, `[{"name":"a","pod":{},"multus":{}}]`, `[{"name":"a","multus":{}}]`, `[{"name":"a","multus":{}}]`},
		"nothing is added":                  {`[{"name":"a","pod":{},"multus":{}}]`, `[{"name":"a","pod":{},"multus":{}}]`, ``, `[{"name":"a","pod":{},"multus":{}}]`},
		"a new item":                        {`[{"name":"a","pod":{}}]`, `[{"name":"b","pod":{},"multus":{}}]`, ``, `[{"name":"b","pod":{},"multus":{}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			in := func(networks string) any {
				if networks == "" {
					return nil
				}
				return spec(t, `{"networks":`+networks+`}`)
			}
			if diff := cmp.Diff(in(tc.want), alternatives.Spec().Settle(in(tc.stored), in(tc.requested), in(tc.manifest))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnOverrideThatIsRemovedBringsTheAlternativeBack(t *testing.T) {
	for name, tc := range map[string]struct{ value, stored, base, want string }{
		"the override is gone":        {`[{"name":"a"}]`, `[{"name":"a","multus":{}}]`, `[{"name":"a","pod":{"x":1}}]`, `[{"name":"a","pod":{"x":1}}]`},
		"the template's was removed":  {`[{"name":"a"}]`, `[{"name":"a","pod":{}}]`, `[{"name":"a","pod":{}}]`, `[{"name":"a"}]`},
		"it had been removed before":  {`[{"name":"a"}]`, `[{"name":"a"}]`, `[{"name":"a","pod":{}}]`, `[{"name":"a"}]`},
		"another override":            {`[{"name":"a","resourceClaim":{}}]`, `[{"name":"a","multus":{}}]`, `[{"name":"a","pod":{}}]`, `[{"name":"a","resourceClaim":{}}]`},
		"the base does not know this": {`[{"name":"b"}]`, `[{"name":"b","multus":{}}]`, `[{"name":"a","pod":{}}]`, `[{"name":"b"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			in := func(networks string) any { return spec(t, `{"networks":`+networks+`}`) }
			if diff := cmp.Diff(in(tc.want), alternatives.Spec().Restore(in(tc.value), in(tc.stored), in(tc.base))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheTable compares the table in docs/overrides.md with the one made from KubeVirt's types: an update of KubeVirt that adds an alternative changes it.
func TestTheTable(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("| of these fields of | one counts |\n|---|---|\n")
	count := 0
	alternatives.Spec().Groups("spec", func(path string, group []string) {
		count++
		fmt.Fprintf(&rows, "| `%s` | `%s` |\n", path, strings.Join(group, "`, `"))
	})
	if count < 15 {
		t.Errorf("%d groups:\n%s", count, rows.String())
	}
	const page, begin, end = "../../docs/overrides.md", "<!-- alternatives:begin -->\n", "<!-- alternatives:end -->"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	want := before + begin + rows.String() + end + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("%s is not current, run go test ./alternatives -update in template/ (-want +got):\n%s", page, diff)
	}
}
