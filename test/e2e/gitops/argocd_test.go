package gitops_test

import (
	"encoding/json"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// application is what the program prints that acts as Argo CD.
type application struct {
	Operations []struct{ Kind, Name, Status, Message string }
	Resources  []struct {
		Kind, Name, Health, Message string
		Comparisons                 map[string]struct {
			Sync       string
			Difference json.RawMessage
		}
	}
}

func TestArgoCD(t *testing.T) {
	for _, namespace := range []string{free, vault} {
		for way, arguments := range map[string][]string{"client": nil, "server": {"-server-side-apply"}} {
			t.Run(namespace+", "+way, func(t *testing.T) {
				vms := virtualMachines(namespace, "argo-"+way)
				manifest := gen.Manifest(vms...)
				var got application
				if err := run(t, argoCD, namespace, manifest, &got, append(arguments, "-sync")...); err != nil {
					t.Fatal(err)
				}
				synced(t, namespace, vms)
				for i := range 2 {
					got = application{}
					if err := run(t, argoCD, namespace, manifest, &got, append(arguments, "-sync")...); err != nil {
						t.Fatal(err)
					}
					text, _ := json.MarshalIndent(got, "", " ")
					t.Logf("%d %s", i, text)
				}
			})
		}
	}
}

func TestFlux(t *testing.T) {
	for _, namespace := range []string{free, vault} {
		t.Run(namespace, func(t *testing.T) {
			vms := virtualMachines(namespace, "flux")
			manifest := gen.Manifest(vms...)
			for i := range 3 {
				var got any
				if err := run(t, flux, namespace, manifest, &got, "-apply"); err != nil {
					t.Fatal(err)
				}
				text, _ := json.MarshalIndent(got, "", " ")
				t.Logf("%d %s", i, text)
				synced(t, namespace, vms)
			}
		})
	}
}
