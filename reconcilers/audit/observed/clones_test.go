package observed

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/fixture"
)

// cloning returns a VirtualMachine with disks that are cloned from DataSources.
func cloning(t *testing.T, name string, from ...string) *watching.Object[Object] {
	t.Helper()
	disks := ""
	for i, dataSource := range from {
		disks += fmt.Sprintf("{metadata: {name: disk-%d}, spec: {sourceRef: {kind: DataSource, name: %s, namespace: golden}, storage: {}}}, ", i, dataSource)
	}
	object := fixture.Object(t, `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team, name: `+name+`, uid: of-`+name+`},
		spec: {dataVolumeTemplates: [`+disks+`], template: {spec: {volumes: [{name: root, dataVolume: {name: disk-0}}]}}}}`)
	made := &watching.Object[Object]{Value: reducer(reduceVM).reduced(object)}
	made.Namespace, made.Name = "team", name
	return made
}

func TestClones(t *testing.T) {
	w := newWatch()
	changed := map[string]int{}
	w.Listen(func(dataSource types.NamespacedName) { changed[dataSource.String()]++ })
	clones := func(names ...string) string {
		of := map[types.NamespacedName]bool{}
		for _, name := range names {
			of[types.NamespacedName{Namespace: "golden", Name: name}] = true
		}
		number, known := w.Clones(of)
		return fmt.Sprintf("%d %t", number, known)
	}
	equal := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	equal(clones("fedora"), "0 false")
	list := []any{cloning(t, "a", "fedora"), cloning(t, "b", "fedora", "fedora-stable", "fedora"), cloning(t, "c", "debian"), cloning(t, "d")}
	if err := w.vms.Replace(list, ""); err != nil {
		t.Fatal(err)
	}
	equal(clones("fedora", "fedora-stable"), "2 true")
	equal(clones("fedora-stable"), "1 true")
	equal(clones("windows"), "0 true")
	equal(fmt.Sprint(changed), "map[golden/debian:1 golden/fedora:2 golden/fedora-stable:1]")
	for _, write := range []func() error{
		func() error { return w.vms.Add(cloning(t, "a", "debian")) },
		func() error { return w.vms.Add(cloning(t, "c", "debian")) },
		func() error { return w.vms.Delete(cloning(t, "b")) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	equal(clones("fedora", "fedora-stable"), "0 true")
	equal(clones("debian"), "2 true")
	equal(fmt.Sprint(len(w.clones.numbers)), "1")
	w.vms.FailIfNotServed(apierrors.NewNotFound(schema.GroupResource{Resource: "virtualmachines"}, ""))
	equal(clones("debian"), "0 false")
	equal(fmt.Sprint(len(w.clones.numbers)), "0")
}
