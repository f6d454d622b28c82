package schemas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/rego"
	policyschema "github.com/vmstencil/stencil/rego/schema"
)

// cluster is a fake API server, and a cache that follows it.
type cluster struct {
	*Cache
	client   *fake.FakeDynamicClient
	compiler *rego.Compiler
	version  int

	mutex sync.Mutex
	logs  []string
}

// start returns a cluster with definitions, whose cache runs until the test ends.
func start(t *testing.T, prepare func(*fake.FakeDynamicClient), first ...*unstructured.Unstructured) *cluster {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{compiler: compiler}
	var objects []runtime.Object
	for _, object := range first {
		objects = append(objects, c.numbered(object))
	}
	c.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{definitions: "CustomResourceDefinitionList"}, objects...)
	if prepare != nil {
		prepare(c.client)
	}
	log := funcr.New(func(_, args string) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.logs = append(c.logs, args)
	}, funcr.Options{})
	// What changes before a watch begins would be lost.
	var watched atomic.Int32
	c.client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := c.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		watched.Add(1)
		return true, events, err
	})
	c.Cache = newCache(Options{Logger: log, Compiler: compiler}, listing(c.client))
	fixture.Run(t, c.Start)
	if prepare == nil {
		fixture.Succeeds(t, func() error {
			if watched.Load() < int32(len(followed)) {
				return errors.New("the definitions are not watched")
			}
			return nil
		})
	}
	return c
}

// listing returns sources that list before they watch, as the fake requires.
func listing(client *fake.FakeDynamicClient) sourceOf {
	return func(selector watching.Selector, read func(*unstructured.Unstructured) reading) cache.ListerWatcher {
		return listed{watching.Reduced(client.Resource(definitions), selector, read)}
	}
}

type listed struct{ cache.ListerWatcher }

func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// numbered gives an object a resource version, which the fake does not.
func (c *cluster) numbered(object *unstructured.Unstructured) *unstructured.Unstructured {
	c.version++
	object.SetResourceVersion(fmt.Sprint(c.version))
	return object
}

func (c *cluster) update(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.client.Resource(definitions).Update(t.Context(), c.numbered(object), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// logged reports whether a line was logged, and how often.
func (c *cluster) logged(words string) (count int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, line := range c.logs {
		if strings.Contains(line, words) {
			count++
		}
	}
	return count
}

// reads reports whether a policy compiles that reads a field of domains.
func (c *cluster) reads(t *testing.T, field string) error {
	t.Helper()
	_, err := c.compiler.Compile(t.Context(), rego.Definition{Source: "package p\n\ndeny contains \"x\" if input.object.spec.template.spec.domain." + field + "\n"})
	return err
}

// definitionOf returns a definition whose v1 and v1beta1 have a schema.
func definitionOf(t *testing.T, name, openAPI string) *unstructured.Unstructured {
	t.Helper()
	return fixture.Object(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s},
spec: {versions: [{name: v1, schema: {openAPIV3Schema: %[2]s}}, {name: v1beta1, schema: {openAPIV3Schema: %[2]s}}]}}`, name, openAPI))
}

// vms returns the definition of VirtualMachines whose domain has some fields.
func vms(t *testing.T, fields ...string) *unstructured.Unstructured {
	t.Helper()
	var properties []string
	for _, field := range fields {
		properties = append(properties, field+": {type: string}")
	}
	return definitionOf(t, "virtualmachines.kubevirt.io", `{type: object, properties: {spec: {type: object, properties: {template: {type: object, properties: {spec: {type: object, properties: {
domain: {type: object, properties: {`+strings.Join(properties, ", ")+`}}}}}}}}}}`)
}

func TestPoliciesReadTheFieldsOfTheInstalledKubeVirt(t *testing.T) {
	c := start(t, nil, vms(t, "first"), definitionOf(t, "virtualmachinepreferences.instancetype.kubevirt.io", `{type: object, properties: {spec: {type: object, properties: {extra: {type: string}}}}}`))
	c.Await(t.Context())
	if err := c.reads(t, "first"); err != nil {
		t.Errorf("after Await: %v", err)
	}
	if _, err := c.compiler.Compile(t.Context(), rego.Definition{Source: "package p\n\ndeny contains \"x\" if input.preference.spec.extra\n"}); err != nil {
		t.Errorf("a preference: %v", err)
	}
	const unknown = `3:61: unknown field: input.object.spec.template.spec.domain has no "second"`
	if err := c.reads(t, "second"); err == nil || err.Error() != unknown {
		t.Errorf("a field that it does not have: %v", err)
	}
	changed := c.Changed()
	c.update(t, vms(t, "first", "second"))
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Fatal("no change is reported")
	}
	if err := c.reads(t, "second"); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if got := testutil.ToFloat64(c.metrics.added.WithLabelValues("VirtualMachine")); got != 2 {
		t.Errorf("%v fields were added", got)
	}
	if got := testutil.ToFloat64(c.metrics.added.WithLabelValues("VirtualMachinePreference")); got != 1 {
		t.Errorf("%v fields of preferences were added", got)
	}
	// The fields of the release stay, and those of the installed definition only while it has them.
	c.update(t, vms(t, "second"))
	fixture.Succeeds(t, func() error {
		if c.reads(t, "first") == nil {
			return errors.New("a field that KubeVirt does not have any more is still there")
		}
		return errors.Join(c.reads(t, "second"), c.reads(t, "cpu.cores"))
	})
}

func TestTheLastGoodSchemaStaysInUse(t *testing.T) {
	deep := strings.Repeat("{type: object, properties: {a: ", 100) + "{}" + strings.Repeat("}}", 100)
	wide := "{type: object, properties: {"
	for i := range 20_000 {
		wide += fmt.Sprintf("a%d: {}, ", i)
	}
	for name, tc := range map[string]struct{ openAPI, want string }{
		"no fields":                     {`{type: object, x-kubernetes-preserve-unknown-fields: true}`, "the schema defines no fields"},
		"a type that is a list":         {`{type: [object], properties: {}}`, "json: cannot unmarshal array"},
		"a type that does not exist":    {`{type: object, properties: {new: {type: whatever}}}`, "has a primitive type that is NOT VALID"},
		"too many fields in each other": {deep, "the schema is more than 64 fields deep"},
		"too many fields":               {wide + "}}", "the schema has more than 10000 fields"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, nil, vms(t, "first"))
			c.Await(t.Context())
			unusable := func(want float64, logged string) {
				t.Helper()
				fixture.Succeeds(t, func() error {
					if got := testutil.ToFloat64(c.metrics.unusable.WithLabelValues("VirtualMachine")); got != want || c.logged(logged) == 0 {
						return fmt.Errorf("unusable %v, want %v; %q was logged %d times", got, want, logged, c.logged(logged))
					}
					return nil
				})
			}
			c.update(t, definitionOf(t, "virtualmachines.kubevirt.io", tc.openAPI))
			unusable(1, tc.want)
			if err := c.reads(t, "first"); err != nil {
				t.Error(err)
			}
			c.update(t, vms(t, "second"))
			unusable(0, "policies can read")
			fixture.Succeeds(t, func() error { return c.reads(t, "second") })
			if count := c.logged("the last good one stays in use"); count != 1 {
				t.Errorf("logged %d times", count)
			}
		})
	}
}

func TestADefinitionThatComesAndGoes(t *testing.T) {
	c := start(t, nil)
	c.Await(t.Context())
	if err := c.reads(t, "cpu.cores"); err != nil {
		t.Errorf("without KubeVirt: %v", err)
	}
	if _, err := c.client.Resource(definitions).Create(t.Context(), c.numbered(vms(t, "first")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Succeeds(t, func() error { return c.reads(t, "first") })
	if err := c.client.Resource(definitions).Delete(t.Context(), "virtualmachines.kubevirt.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Succeeds(t, func() error {
		if c.logged("a definition of KubeVirt is gone") != 1 {
			return errors.New("it is not logged that the definition is gone")
		}
		return nil
	})
	if err := c.reads(t, "first"); err != nil {
		t.Errorf("the last good schema is not in use: %v", err)
	}
}

func TestPoliciesDoNotWaitForever(t *testing.T) {
	forbidden := func(client *fake.FakeDynamicClient) {
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
	}
	c := start(t, forbidden, vms(t, "first"))
	c.timeout = time.Millisecond
	c.Await(t.Context())
	if count := c.logged("could not be read in time"); count != 1 {
		t.Errorf("logged %d times", count)
	}
	if err := c.reads(t, "cpu.cores"); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.timeout = time.Hour
	c.Await(ended)
}

// failing is a compiler that accepts no schemas.
type failing struct{}

func (failing) UseSchemas(*policyschema.Schemas) error { return errors.New("it is busy") }

func TestACompilerThatRejectsSchemas(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{definitions: "CustomResourceDefinitionList"}, vms(t, "first"))
	c := newCache(Options{Logger: logr.Discard(), Compiler: failing{}}, listing(client))
	fixture.Run(t, c.Start)
	c.Await(t.Context())
	if got := testutil.ToFloat64(c.metrics.unusable.WithLabelValues("VirtualMachine")); got != 1 {
		t.Errorf("unusable %v", got)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := newMetrics().register(registry); err != nil {
		t.Error(err)
	}
	if err := newMetrics().register(registry); err == nil {
		t.Error("metrics were registered twice")
	}
}
