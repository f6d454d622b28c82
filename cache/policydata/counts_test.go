package policydata

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// instancetypes are fake sizes of instance types, by what a reference names.
type instancetypes struct {
	mutex   sync.Mutex
	synced  bool
	sizes   map[string]sizing.Size
	written await.Signal
}

func (i *instancetypes) set(name string, size sizing.Size) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.sizes == nil {
		i.sizes = map[string]sizing.Size{}
	}
	i.synced, i.sizes[name] = true, size
	i.written.Send()
}

func (i *instancetypes) Synced() bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.synced
}

func (i *instancetypes) Written() <-chan struct{} { return i.written.Changed() }

func (i *instancetypes) Size(r sizing.Reference) (sizing.Size, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if size, found := i.sizes[r.String()]; found {
		return size, nil
	}
	return sizing.Size{}, errors.New("it does not exist")
}

// serving is an API server that serves VirtualMachines.
type serving struct {
	discovery.ServerResourcesInterface
}

func (serving) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "virtualmachines"}}}, nil
}

// machineOf returns a VirtualMachine as the watch delivers it.
func machineOf(t testing.TB, namespace, name, text string) *watching.Object[vm] {
	o := fixture.Object(t, text)
	o.SetNamespace(namespace)
	o.SetName(name)
	return &watching.Object[vm]{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Value: reduce(o)}
}

const (
	gpu   = `{metadata: {labels: {gpu: a100}}, spec: {template: {spec: {domain: {cpu: {cores: 2}, memory: {guest: 1Ki}}}}}}`
	plain = `{spec: {template: {spec: {domain: {resources: {requests: {cpu: 1500m, memory: 2Ki}}}}}}}`
	large = `{metadata: {labels: {gpu: a100}}, spec: {instancetype: {name: u1.large}}}`
	own   = `{metadata: {labels: {gpu: h100}}, spec: {instancetype: {kind: virtualmachineinstancetype, name: own}}, status: {instancetypeRef: {controllerRevisionRef: {name: own-1}}}}`
)

func counted(selector string) rego.Reference {
	return rego.Reference{Name: "x", VirtualMachines: &rego.VirtualMachines{Selector: selector}}
}

// valueFor returns the value of a reference for an object as JSON, or the reason why there is none.
func valueFor(c *Cache, reference rego.Reference, of rego.ObjectKey) string {
	bound := c.Bind([]rego.Reference{reference})[0]
	if bound.Source == nil {
		return bound.Missing
	}
	value, err := bound.Source.Value(of)
	if err != nil {
		return err.Error()
	}
	return string(value.JSON())
}

func numbersOf(count, cpus, memory, unknown int) string {
	return fmt.Sprintf(`{"count":%d,"cpus":%d,"memory":%d,"unknown":%d}`, count, cpus, memory, unknown)
}

func TestVirtualMachinesAreReadOncePoliciesNeedThem(t *testing.T) {
	source, sizes := fakecache.NewFakeControllerSource(), &instancetypes{}
	c := newCache(Options{Logger: logr.Discard(), Namespace: "stencil", Sizes: sizes}, sources{
		configMaps: fakecache.NewFakeControllerSource(), virtualMachines: source, quotas: fakecache.NewFakeControllerSource(), served: serving{},
	})
	source.Add(machineOf(t, "a", "one", gpu))
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	reference := counted("gpu")
	if c.Ready([]rego.Reference{reference}) || !c.Ready([]rego.Reference{{Name: "x", ConfigMap: "a", Key: "b"}}) {
		t.Error("VirtualMachines are ready that no policy needs, or ConfigMaps are not")
	}
	const unread = "the VirtualMachines have not been read yet; the log of the manager has the reason"
	web := rego.ObjectKey{Kind: "VirtualMachine", Namespace: "a", Name: "web"}
	if got := valueFor(c, reference, web); got != unread {
		t.Errorf("got %q, want %q", got, unread)
	}
	if c.vms.index.Synced() {
		t.Error("VirtualMachines are read before the sizes of instance types")
	}
	changed := c.Changed()
	sizes.set("VirtualMachineClusterInstancetype u1.large", sizing.Size{CPUs: 8, Memory: 1 << 20})
	<-changed
	if !c.Ready([]rego.Reference{reference}) {
		t.Error("VirtualMachines are not ready")
	}
	if got, want := valueFor(c, reference, web), numbersOf(1, 2, 1024, 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := valueFor(c, rego.Reference{Name: "q", ResourceQuota: "q"}, web); got != "the ResourceQuotas have not been read yet; the log of the manager has the reason" {
		t.Errorf("got %q", got)
	}
}

func TestNumbersOfVirtualMachines(t *testing.T) {
	sizes := &instancetypes{}
	sizes.set("VirtualMachineClusterInstancetype u1.large", sizing.Size{CPUs: 8, Memory: 1 << 20})
	c := newCache(Options{Logger: logr.Discard(), Sizes: sizes}, sources{})
	all := []any{
		machineOf(t, "a", "gpu-1", gpu), machineOf(t, "a", "gpu-2", gpu), machineOf(t, "a", "plain", plain), machineOf(t, "a", "large", large),
		machineOf(t, "a", "own", own), machineOf(t, "b", "gpu-1", gpu),
		machineOf(t, "c", "none", `{spec: {template: {spec: {domain: {}}}}}`), machineOf(t, "c", "invalid", `{spec: {template: {spec: {domain: {memory: {guest: lots}}}}}}`),
		machineOf(t, "c", "inferred", `{spec: {instancetype: {inferFromVolume: root}}}`),
	}
	if err := c.vms.index.Replace(all, ""); err != nil {
		t.Fatal(err)
	}
	check := func(selector, kind, namespace, name, want string) {
		t.Helper()
		if got := valueFor(c, counted(selector), rego.ObjectKey{Kind: kind, Namespace: namespace, Name: name}); got != want {
			t.Errorf("%q for %s %s/%s: got %s, want %s", selector, kind, namespace, name, got, want)
		}
	}
	const kind = "VirtualMachine"
	check("", kind, "a", "new", numbersOf(5, 2+2+2+8, 1024+1024+2048+1<<20, 1))
	check("", kind, "a", "", numbersOf(5, 14, 4096+1<<20, 1))
	check("gpu", kind, "a", "new", numbersOf(4, 12, 2048+1<<20, 1))
	check("gpu=a100", kind, "a", "new", numbersOf(3, 12, 2048+1<<20, 0))
	check("gpu in (h100,x),!other", kind, "a", "new", numbersOf(1, 0, 0, 1))
	check("other", kind, "a", "new", numbersOf(0, 0, 0, 0))
	// The object itself is left out, also the instance of a VirtualMachine; an object of another kind is no VirtualMachine.
	check("gpu=a100", kind, "a", "gpu-1", numbersOf(2, 10, 1024+1<<20, 0))
	check("gpu=a100", kind, "a", "plain", numbersOf(3, 12, 2048+1<<20, 0))
	check("gpu=a100", "VirtualMachineInstance", "a", "large", numbersOf(2, 4, 2048, 0))
	check("gpu=a100", "VirtualMachineTemplate", "a", "large", numbersOf(3, 12, 2048+1<<20, 0))
	check("gpu=a100", "VirtualMachinePool", "a", "large", numbersOf(3, 12, 2048+1<<20, 0))
	check("", kind, "b", "new", numbersOf(1, 2, 1024, 0))
	check("", kind, "c", "new", numbersOf(3, 1, 0, 2))
	check("", kind, "empty", "new", numbersOf(0, 0, 0, 0))
	check("", kind, "", "new", "the object has no namespace")
	check("a b", kind, "a", "new", "reading the selector of VirtualMachines: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt")

	// The revision of an instance type arrives, then its VirtualMachine goes.
	sizes.set("VirtualMachineInstancetype a/own", sizing.Size{CPUs: 3, Memory: 7})
	check("gpu in (h100,x)", kind, "a", "new", numbersOf(1, 3, 7, 0))
	if err := c.vms.index.Delete(machineOf(t, "a", "own", own)); err != nil {
		t.Fatal(err)
	}
	check("gpu in (h100,x)", kind, "a", "new", numbersOf(0, 0, 0, 0))
	if err := c.vms.index.Add(machineOf(t, "a", "gpu-3", gpu)); err != nil {
		t.Fatal(err)
	}
	check("gpu=a100", kind, "a", "new", numbersOf(4, 14, 3072+1<<20, 0))
	check("gpu=a100", kind, "b", "new", numbersOf(1, 2, 1024, 0))
	if before, after := c.Bind([]rego.Reference{counted("gpu")})[0], c.Bind([]rego.Reference{counted("gpu")})[0]; !before.Equal(after) {
		t.Error("the bindings of one selector differ, so that every change of a ConfigMap publishes the policies again")
	}

	// KubeVirt is removed.
	c.vms.index.Fail(errors.New("not served"))
	check("", kind, "a", "new", numbersOf(0, 0, 0, 0))
}

// A write that changes nothing that is counted, such as a status, has nothing counted again.
func TestStatusesChangeNothing(t *testing.T) {
	c := newCache(Options{Logger: logr.Discard(), Sizes: &instancetypes{}}, sources{})
	written := machineOf(t, "a", "one", `{metadata: {labels: {a: b, c: d}}, spec: {instancetype: {name: x}}, status: {ready: false}}`)
	if err := c.vms.index.Replace([]any{written}, ""); err != nil {
		t.Fatal(err)
	}
	before := c.vms.version("a")
	for _, text := range []string{
		`{metadata: {labels: {c: d, a: b}}, spec: {instancetype: {name: x}}, status: {ready: true}}`,
		`{metadata: {labels: {a: b, c: d}, annotations: {x: y}}, spec: {instancetype: {name: x}}}`,
	} {
		if err := c.vms.index.Update(machineOf(t, "a", "one", text)); err != nil {
			t.Fatal(err)
		}
	}
	if c.vms.version("a") != before {
		t.Error("the namespace is counted again")
	}
	for _, text := range []string{
		`{metadata: {labels: {a: b, c: e}}, spec: {instancetype: {name: x}}}`,
		`{metadata: {labels: {a: b, c: e}}, spec: {instancetype: {name: x, revisionName: x-1}}}`,
		`{metadata: {labels: {a: b, c: e}}, spec: {template: {spec: {domain: {cpu: {cores: 2}}}}}}`,
	} {
		before = c.vms.version("a")
		if err := c.vms.index.Update(machineOf(t, "a", "one", text)); err != nil {
			t.Fatal(err)
		}
		if c.vms.version("a") == before {
			t.Errorf("a change to %s is not counted", text)
		}
	}
}

func TestResourceQuotas(t *testing.T) {
	source := fakecache.NewFakeControllerSource()
	quota := func(used string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "team"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.memory": resource.MustParse("16Gi"), "pods": resource.MustParse("10")}},
			Status:     corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"requests.memory": resource.MustParse(used)}},
		}
	}
	source.Add(quota("1500Mi"))
	c := newCache(Options{Logger: logr.Discard(), Sizes: &instancetypes{}}, sources{configMaps: fakecache.NewFakeControllerSource(), quotas: source})
	fixture.Run(t, c.Start)
	team := rego.Reference{Name: "x", ResourceQuota: "team"}
	c.Bind([]rego.Reference{team})
	fixture.Eventually(t, func() bool { return c.Ready([]rego.Reference{team}) })
	of := rego.ObjectKey{Kind: "VirtualMachine", Namespace: "a", Name: "web"}
	if got, want := valueFor(c, team, of), `{"hard":{"pods":"10","requests.memory":"16Gi"},"used":{"requests.memory":"1500Mi"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	const none = `{"hard":{},"used":{}}`
	if got := valueFor(c, rego.Reference{Name: "x", ResourceQuota: "other"}, of); got != none {
		t.Errorf("a quota that does not exist: %s", got)
	}
	if got := valueFor(c, team, rego.ObjectKey{Kind: "VirtualMachine", Namespace: "b"}); got != none {
		t.Errorf("a namespace without the quota: %s", got)
	}
	if got := valueFor(c, team, rego.ObjectKey{Kind: "VirtualMachine"}); got != "the object has no namespace" {
		t.Errorf("an object without a namespace: %s", got)
	}
	source.Modify(quota("2Gi"))
	fixture.Eventually(t, func() bool {
		return valueFor(c, team, of) == `{"hard":{"pods":"10","requests.memory":"16Gi"},"used":{"requests.memory":"2Gi"}}`
	})
	if before, after := c.Bind([]rego.Reference{team})[0], c.Bind([]rego.Reference{team})[0]; !before.Equal(after) {
		t.Error("the bindings of one quota differ")
	}
}

// VirtualMachines change while policies are evaluated: no numbers are inconsistent.
func TestCountsWhileVirtualMachinesChange(t *testing.T) {
	sizes := &instancetypes{}
	sizes.set("VirtualMachineClusterInstancetype u1.large", sizing.Size{CPUs: 2, Memory: 2})
	c := newCache(Options{Logger: logr.Discard(), Sizes: sizes}, sources{})
	if err := c.vms.index.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	made := make([]*watching.Object[vm], 20)
	for i := range made {
		made[i] = machineOf(t, "a", fmt.Sprint("vm-", i), large)
	}
	var changing, reading sync.WaitGroup
	done := make(chan struct{})
	changing.Go(func() {
		for i := range 2000 {
			one := made[i%len(made)]
			if i/len(made)%2 == 0 {
				_ = c.vms.index.Add(one)
			} else {
				_ = c.vms.index.Delete(one)
			}
			if i%50 == 0 {
				sizes.set("VirtualMachineClusterInstancetype u1.large", sizing.Size{CPUs: 2, Memory: 2})
			}
		}
	})
	for i := range 4 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				source := c.Bind([]rego.Reference{counted("gpu")})[0].Source.(*counts)
				if sum := source.others(rego.ObjectKey{Kind: "VirtualMachine", Namespace: "a", Name: fmt.Sprint("vm-", i)}); sum.count < 0 || sum.count > 20 || sum.CPUs != 2*sum.count || sum.unknown != 0 {
					t.Errorf("inconsistent: %+v", sum)
					return
				}
			}
		})
	}
	changing.Wait()
	close(done)
	reading.Wait()
	if got, want := valueFor(c, counted("gpu"), rego.ObjectKey{Namespace: "a"}), numbersOf(0, 0, 0, 0); got != want {
		t.Errorf("in the end: %s, want %s", got, want)
	}
}

func TestObjects(t *testing.T) {
	object := func(namespace, name, text string) *unstructured.Unstructured {
		o := fixture.Object(t, text)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	o := NewObjects(
		[]*unstructured.Unstructured{object("a", "one", gpu), object("a", "two", large), object("a", "three", own)},
		[]*unstructured.Unstructured{object("", "u1.large", `{kind: VirtualMachineClusterInstancetype, spec: {cpu: {guest: 8}, memory: {guest: 1Gi}}}`), object("b", "own", `{kind: VirtualMachineInstancetype, spec: {cpu: {guest: 1}}}`)},
		[]*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "team"}}})
	source, err := o.Bind(counted("gpu"))
	if err != nil {
		t.Fatal(err)
	}
	value, err := source.Value(rego.ObjectKey{Kind: "VirtualMachine", Namespace: "a", Name: "one"})
	if want := numbersOf(2, 8, 1<<30, 1); err != nil || string(value.JSON()) != want {
		t.Errorf("got %s, %v; want %s", value.JSON(), err, want)
	}
	if _, err := o.Bind(rego.Reference{Name: "x", ResourceQuota: "team"}); err != nil {
		t.Error(err)
	}
	if _, err := o.Bind(rego.Reference{Name: "x", ResourceQuota: "other"}); err == nil || err.Error() != "has ResourceQuota other" {
		t.Errorf("got %v", err)
	}
	if _, err := NewObjects(nil, nil, nil).Bind(counted("")); err == nil || err.Error() != "has VirtualMachines" {
		t.Errorf("got %v", err)
	}
}

// many returns VirtualMachines with five labels and an instance type each.
func many(number, namespaces int) []any {
	all := make([]any, number)
	for i := range all {
		namespace := fmt.Sprint("team-", i%namespaces)
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"instancetype": map[string]any{"name": "u1.large"}}}}
		o.SetLabels(map[string]string{
			"gpu": "a100", "app": fmt.Sprint("app-", i%1000), "team": namespace, "vm.kubevirt.io/template": "fedora", "vm.kubevirt.io/template.namespace": "golden",
		})
		all[i] = &watching.Object[vm]{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("vm-", i)}, Value: reduce(o)}
	}
	return all
}

// BenchmarkCounts measures an evaluation's share: without a change in the namespace, and after one.
func BenchmarkCounts(b *testing.B) {
	for _, vms := range []int{100, 1000, 20_000} {
		sizes := &instancetypes{}
		sizes.set("VirtualMachineClusterInstancetype u1.large", sizing.Size{CPUs: 2, Memory: 2})
		c := newCache(Options{Logger: logr.Discard(), Sizes: sizes}, sources{})
		if err := c.vms.index.Replace(many(vms, 1), ""); err != nil {
			b.Fatal(err)
		}
		source, of := c.Bind([]rego.Reference{counted("gpu")})[0].Source, rego.ObjectKey{Kind: "VirtualMachine", Namespace: "team-0", Name: "vm-0"}
		measure := func(changed bool) func(*testing.B) {
			return func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if changed {
						c.vms.versions["team-0"]++
					}
					if _, err := source.Value(of); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(fmt.Sprintf("vms=%d/unchanged", vms), measure(false))
		b.Run(fmt.Sprintf("vms=%d/changed", vms), measure(true))
	}
}

// 20 000 VirtualMachines with five labels and an instance type each take less than 20 MiB, and another 5 MiB for each selector.
func TestMemoryOfManyVirtualMachines(t *testing.T) {
	sizes := &instancetypes{}
	sizes.set("VirtualMachineClusterInstancetype u1.large", sizing.Size{CPUs: 2, Memory: 2})
	c := newCache(Options{Logger: logr.Discard(), Sizes: sizes}, sources{})
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before := heap()
	if err := c.vms.index.Replace(many(20_000, 100), ""); err != nil {
		t.Fatal(err)
	}
	read := heap()
	source := c.Bind([]rego.Reference{counted("gpu")})[0].Source.(*counts)
	for i := range 100 {
		source.others(rego.ObjectKey{Namespace: fmt.Sprint("team-", i)})
	}
	counted := heap()
	t.Logf("20 000 VirtualMachines take %.1f MiB, and %.1f MiB for a selector", read-before, counted-read)
	if read-before > 20 || counted-read > 5 {
		t.Errorf("20 000 VirtualMachines take %.1f MiB, and %.1f MiB for a selector", read-before, counted-read)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(source)
}
