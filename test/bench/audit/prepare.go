package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

const (
	// label is a label of the namespaces that the approval selects.
	label        = "bench"
	approvalName = "bench"
	namespaces   = 20
	writers      = 8
)

func namespaceOf(number int) string { return fmt.Sprintf("bench-%02d", number%namespaces) }

// prepare stores template, VMs and approval, and installs the chart after them: no manager runs that could evaluate them.
func prepare(ctx context.Context, plane *controlplane.Plane, options Options) (manager.Options, error) {
	if err := plane.InstallVirtualizationCRDs(ctx); err != nil {
		return manager.Options{}, err
	}
	definitions, err := controlplane.ReadCRDs(options.Definitions)
	if err != nil {
		return manager.Options{}, err
	}
	if err := plane.InstallCRDs(ctx, definitions...); err != nil {
		return manager.Options{}, err
	}
	config := rest.CopyConfig(plane.AdminConfig())
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return manager.Options{}, fmt.Errorf("making a client of the API server: %w", err)
	}
	if err := store(ctx, client, options); err != nil {
		return manager.Options{}, err
	}
	return install.Beside(ctx, plane, map[string]any{"crds": map[string]any{"enabled": false}})
}

func store(ctx context.Context, client kubernetes.Interface, options Options) error {
	names := []string{options.Golden.Namespace}
	for number := range namespaces {
		names = append(names, namespaceOf(number))
	}
	for i, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if i > 0 {
			namespace.Labels = map[string]string{label: "yes"}
		}
		if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a namespace: %w", err)
		}
	}
	post := func(ctx context.Context, path string, object []byte) error {
		return client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(object).Do(ctx).Error()
	}
	golden, err := json.Marshal(options.Golden)
	if err != nil {
		return fmt.Errorf("encoding the template: %w", err)
	}
	if err := post(ctx, "/apis/template.kubevirt.io/v1beta1/namespaces/"+options.Golden.Namespace+"/virtualmachinetemplates", golden); err != nil {
		return fmt.Errorf("creating the template: %w", err)
	}
	rule, err := json.Marshal(v1alpha1.TemplateApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TemplateApproval"},
		ObjectMeta: metav1.ObjectMeta{Name: approvalName},
		Spec:       rules(options.Golden),
	})
	if err != nil {
		return fmt.Errorf("encoding the approval: %w", err)
	}
	if err := post(ctx, "/apis/stencil.kubevirt.io/v1alpha1/templateapprovals", rule); err != nil {
		return fmt.Errorf("creating the approval: %w", err)
	}
	compiled, err := template.Compile(options.Golden)
	if err != nil {
		return fmt.Errorf("compiling the template: %w", err)
	}
	return load.Each(ctx, options.Machines, writers, func(ctx context.Context, number int) error {
		namespace := namespaceOf(number)
		vm, err := stored(options.Golden, compiled, namespace, "m"+strconv.Itoa(number))
		if err != nil {
			return err
		}
		if err := post(ctx, "/apis/kubevirt.io/v1/namespaces/"+namespace+"/virtualmachines", vm); err != nil {
			return fmt.Errorf("creating VM %d: %w", number, err)
		}
		return nil
	})
}

// remove deletes the approval.
func remove(ctx context.Context, plane *controlplane.Plane) error {
	result, err := plane.Kubectl(ctx, nil, "", "delete", "templateapproval", approvalName)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("deleting the approval: %s", result.Stderr)
	}
	return err
}
