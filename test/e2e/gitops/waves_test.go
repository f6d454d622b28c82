package gitops_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/harness"
)

// TestArgoCDCreatesATemplateBeforeItsMachine syncs applications with a template and a VM from it. Within a wave, Argo CD sorts kinds that it does not
// know by name, so the names here put the VM first, as the manifests do.
func TestArgoCDCreatesATemplateBeforeItsMachine(t *testing.T) {
	const vm, template = "a-shop-1", "shop"
	chart, err := stencil.Plane.Helm(t.Context(), "template", "release", stencil.Example("together/chart"))
	if err != nil || chart.Code != 0 {
		t.Fatal(err, chart.Stderr)
	}
	folder := stencil.Example("together/kustomization/")
	plain := string(testfile.Read(t, folder+"/vm.yaml")) + "---\n" + string(testfile.Read(t, folder+"/template.yaml"))
	annotated := strings.Replace(plain, "  name: shop\n", "  name: shop\n  annotations:\n    argocd.argoproj.io/sync-wave: \"-1\"\n", 1)

	for what, manifest := range map[string]string{"manifests, the template in an earlier wave": annotated, "the example for Helm, whose template is a hook": chart.Stdout} {
		for _, way := range [][]string{nil, {"-server-side-apply"}} {
			t.Run(strings.Join(append([]string{what}, way...), ", "), func(t *testing.T) {
				removeTogether(t, vm, template)
				first := syncTogether(t, manifest, vm, way...)
				var order []string
				for _, each := range first.Operations {
					order = append(order, each.Status+" "+each.Name)
				}
				if diff := cmp.Diff([]string{"Synced " + template, "Synced " + vm}, order); diff != "" {
					t.Fatalf("operations (-want +got):\n%s%+v", diff, first.Operations)
				}
				uid := func() string {
					return harness.Must(t, stencil.Plane, nil, "", "--namespace="+free, "get", "vmt", template, "-o", "jsonpath={.metadata.uid}").Stdout
				}
				before := uid()
				for _, got := range []application{first, syncTogether(t, manifest, vm, way...)} {
					if out := got.outOfSync(""); len(out) > 0 {
						t.Errorf("out of sync: %v\n%s", out, got.differences(clientSide))
					}
					if diff := cmp.Diff(map[string]string{vm: "Healthy", template: "Healthy"}, got.health("")); diff != "" {
						t.Errorf("health (-want +got):\n%s", diff)
					}
				}
				if after := uid(); after != before {
					t.Errorf("a second sync has replaced the template %s by %s", before, after)
				}
				if cores := get(t, free, vm, "{.spec.template.spec.domain.cpu.cores}"); cores != "2" {
					t.Errorf("the VM has %s CPUs", cores)
				}
			})
		}
	}
	t.Run("in one wave, the VM is denied with the way out", func(t *testing.T) {
		removeTogether(t, vm, template)
		got := syncTogether(t, plain, vm)
		for _, each := range got.Operations {
			if each.Name == vm && each.Status == "SyncFailed" && strings.Contains(each.Message, `argocd.argoproj.io/sync-wave "-1" for Argo CD`) {
				return
			}
		}
		t.Errorf("%+v", got.Operations)
	})
}

// syncTogether syncs an application with the manifests of an example, whose VM gets another name.
func syncTogether(t *testing.T, manifest, vm string, arguments ...string) (got application) {
	t.Helper()
	manifest = strings.ReplaceAll(manifest, "shop-1", vm)
	if err := run(t, argoCD, free, manifest, &got, append(arguments, "-sync", "-application=together",
		"-health="+stencil.Example("argocd/health.yaml"), "-health=testdata/argocd.yaml")...); err != nil {
		t.Fatal(err)
	}
	return got
}

// removeTogether deletes what such an application creates, now and after the test.
func removeTogether(t *testing.T, vm, template string) {
	t.Helper()
	remove := func() {
		harness.Must(t, stencil.Plane, nil, "", "--namespace="+free, "delete", "--ignore-not-found", "vm/"+vm, "vmt/"+template)
	}
	remove()
	t.Cleanup(remove)
}
