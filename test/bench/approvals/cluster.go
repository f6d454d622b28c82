package approvals

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/metrics"
	"github.com/vmstencil/stencil/test/platform"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	vms        = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	vmis       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	approvals  = schema.GroupVersionResource{Group: "stencil.kubevirt.io", Version: "v1alpha1", Resource: "templateapprovals"}
)

const (
	governed = "bench-governed"
	free     = "bench-00000"
	// controller is a user who writes the status of VMIs.
	controller = "bench-controller"
	// ran is a label of the namespaces that the last approval selects.
	ran = "bench"
)

// cluster is a running cluster, prepared for measurements.
type cluster struct {
	stencil *platform.Platform
	client  dynamic.Interface
	// controller acts as a user that the approval exempts: others do not write the status of a VMI in a governed namespace.
	controller dynamic.Interface
	options    Options
	number     atomic.Int64
}

// write is a kind of write that is measured.
type write struct {
	name string
	send load.Send
}

func (c *cluster) writes() []write {
	create := func(namespace string, modifiers ...gen.Modifier) load.Send {
		return func(ctx context.Context, _ int) error {
			vm := gen.VM("vm-"+strconv.FormatInt(c.number.Add(1), 10), modifiers...)
			_, err := c.client.Resource(vms).Namespace(namespace).Create(ctx, vm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	patch := func(resource dynamic.ResourceInterface, name, format string) load.Send {
		return func(ctx context.Context, _ int) error {
			body := fmt.Sprintf(format, c.number.Add(1))
			_, err := resource.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}
	}
	return []write{
		{"create a VM, not governed", create(free, gen.SmallSpec())},
		{"create a VM from a template, governed", create(governed, gen.FromTemplate("golden/fedora"))},
		{"write the status of a VMI, not governed", patch(c.controller.Resource(vmis).Namespace(free), "vmi", `{"status":{"nodeName":"node-%d"}}`)},
		{"write the status of a VMI, governed", patch(c.controller.Resource(vmis).Namespace(governed), "vmi", `{"status":{"nodeName":"node-%d"}}`)},
		{"change a label of a namespace", patch(c.client.Resource(namespaces), free, `{"metadata":{"labels":{"changing":"value-%d"}}}`)},
	}
}

// kinds returns the names of the writes.
func (c *cluster) kinds() (names []string) {
	for _, one := range c.writes() {
		names = append(names, one.name)
	}
	return names
}

func (c *cluster) prepare(ctx context.Context) error {
	if result, err := c.stencil.Plane.Kubectl(ctx, nil, "", "apply", "-f", c.stencil.Example("golden/00-namespace.yaml"), "-f", c.stencil.Example("golden")); err != nil || result.Code != 0 {
		return errors.Join(err, errors.New(result.Stderr))
	}
	if _, err := c.client.Resource(namespaces).Create(ctx, namespace(governed), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	err := load.Each(ctx, c.options.Namespaces, patchers, func(ctx context.Context, i int) error {
		_, err := c.client.Resource(namespaces).Create(ctx, namespace(fmt.Sprintf("bench-%05d", i)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}
	for _, in := range []string{free, governed} {
		vmi := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
			"metadata": map[string]any{"name": "vmi"}, "spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}}}
		if _, err := c.client.Resource(vmis).Namespace(in).Create(ctx, vmi, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a VirtualMachineInstance: %w", err)
		}
	}
	exempt := gen.Spec("exemptSubjects: [{kind: User, name: '" + controller + "'}]")
	if err := c.approve(ctx, "bench-governed", gen.Governs(governed), exempt); err != nil {
		return err
	}
	if err := c.awaitActive(ctx, "bench-governed"); err != nil {
		return err
	}
	return c.awaitDecided(ctx)
}

func namespace(name string) *unstructured.Unstructured {
	return gen.Namespace(name, gen.Label(ran, "yes"))
}

func (c *cluster) approve(ctx context.Context, name string, where ...gen.Modifier) error {
	object := gen.Approval(name, append(where, gen.Label(ran, "yes"), gen.Approves("golden/fedora"))...)
	if _, err := c.client.Resource(approvals).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a TemplateApproval: %w", err)
	}
	return nil
}

// addApprovals creates approvals that select no namespace that exists: half by labels, half by name.
func (c *cluster) addApprovals(ctx context.Context) error {
	err := load.Each(ctx, c.options.Approvals, patchers, func(ctx context.Context, i int) error {
		where := gen.Governs(fmt.Sprintf("other-%05d", i))
		if i%2 == 0 {
			where = gen.Spec(fmt.Sprintf("namespaceSelector: {matchLabels: {team: team-%05d}}", i))
		}
		return c.approve(ctx, fmt.Sprintf("many-%05d", i), where)
	})
	if err != nil {
		return err
	}
	for i := range c.options.Approvals {
		if err := c.awaitActive(ctx, fmt.Sprintf("many-%05d", i)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) removeApprovals(ctx context.Context) error {
	err := load.Each(ctx, c.options.Approvals, patchers, func(ctx context.Context, i int) error {
		return c.client.Resource(approvals).Delete(ctx, fmt.Sprintf("many-%05d", i), metav1.DeleteOptions{})
	})
	if err != nil {
		return fmt.Errorf("deleting approvals: %w", err)
	}
	return nil
}

// patchAll patches all namespaces as the manager does, with keys of its own.
func (c *cluster) patchAll(ctx context.Context) (time.Duration, error) {
	const patch = `{"metadata":{"labels":{"example.com/governed":"true"},"annotations":{"example.com/approvals":"1;all;;golden/fedora"}}}`
	began := time.Now()
	err := load.Each(ctx, c.options.Namespaces, patchers, func(ctx context.Context, i int) error {
		_, err := c.client.Resource(namespaces).Patch(ctx, fmt.Sprintf("bench-%05d", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("patching namespaces: %w", err)
	}
	return time.Since(began), nil
}

// activate creates an approval of all namespaces and returns how long it took to be active, and how many patches of namespaces.
func (c *cluster) activate(ctx context.Context) (time.Duration, int, error) {
	before, err := c.patches(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := c.approve(ctx, "all", gen.Spec("namespaceSelector: {matchLabels: {"+ran+": 'yes'}}")); err != nil {
		return 0, 0, err
	}
	if err := c.awaitActive(ctx, "all"); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	after, err := c.patches(ctx)
	return took, after - before, err
}

// patches returns how many patches of namespaces the API server has answered.
func (c *cluster) patches(ctx context.Context) (int, error) {
	total, err := c.requests(ctx, `resource="namespaces"`, `verb="PATCH"`)
	return int(total), err
}

// requests returns how many requests with these labels of the metric the API server has answered.
func (c *cluster) requests(ctx context.Context, labels ...string) (float64, error) {
	client, err := kubernetes.NewForConfig(c.stencil.Plane.AdminConfig())
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return metrics.Sum(string(text), "apiserver_request_total", labels...)
}

// awaitActive returns when an approval is active.
func (c *cluster) awaitActive(ctx context.Context, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		object, err := c.client.Resource(approvals).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, each := range conditions {
			if condition, _ := each.(map[string]any); condition["type"] == "Active" && condition["status"] == "True" {
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("waiting until TemplateApproval %s is active: %w", name, err)
	}
	return nil
}

// awaitDecided returns when every namespace has its label.
func (c *cluster) awaitDecided(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		left, err := c.client.Resource(namespaces).List(ctx, metav1.ListOptions{LabelSelector: "!stencil.kubevirt.io/governed", Limit: 1})
		return err == nil && len(left.Items) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting until all namespaces are decided: %w", err)
	}
	return nil
}
