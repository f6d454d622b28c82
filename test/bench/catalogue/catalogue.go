// Package catalogue fills a cluster with templates that are alike in size and kind and share no content that a cache could store once.
package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/bench/load"
)

// Namespaces is how many namespaces the templates are in.
const Namespaces = 20

const writers = 16

// Namespace is where the template of a number is.
func Namespace(number int) string { return fmt.Sprintf("catalogue-%02d", number%Namespaces) }

// Name of the template of a number.
func Name(number int) string { return fmt.Sprintf("fedora-%05d", number) }

// variant returns a template that is like the golden one in kind and size, and equal to no other variant in anything a cache could
// share: names, defaults, descriptions, labels and the cloud-init script all differ.
func variant(golden *v1beta1.VirtualMachineTemplate, number int) (*v1beta1.VirtualMachineTemplate, error) {
	made := golden.DeepCopy()
	made.ObjectMeta = metav1.ObjectMeta{
		Namespace: Namespace(number),
		Name:      Name(number),
		Labels:    map[string]string{"catalogue": fmt.Sprintf("shelf-%03d", number%500), "number": fmt.Sprint(number)},
	}
	made.Spec.Message = fmt.Sprintf("%s This is machine type %d.", made.Spec.Message, number)
	for i := range made.Spec.Parameters {
		parameter := &made.Spec.Parameters[i]
		parameter.Description = fmt.Sprintf("%s (%d)", parameter.Description, number)
		switch parameter.Name {
		case "DATA_SOURCE_NAME":
			parameter.Value = fmt.Sprintf("fedora-%05d", number)
		case "NAME":
			parameter.From = fmt.Sprintf("f%d-[a-z0-9]{16}", number)
		}
	}
	vm := string(made.Spec.VirtualMachine.Raw)
	for old, replacement := range map[string]string{
		"30Gi":            fmt.Sprintf("%dMi", 30_000+number),
		"chpasswd:":       fmt.Sprintf("hostname: host-%05d.example.com\\nchpasswd:", number),
		`"name":"disk-1"`: fmt.Sprintf(`"name":"disk-%d"`, number),
	} {
		if !strings.Contains(vm, old) {
			return nil, fmt.Errorf("the golden template no longer contains %s", old)
		}
		vm = strings.ReplaceAll(vm, old, replacement)
	}
	made.Spec.VirtualMachine.Raw = []byte(vm)
	return made, nil
}

// Create stores that many variants and returns their mean size as JSON, in bytes.
func Create(ctx context.Context, config *rest.Config, golden *v1beta1.VirtualMachineTemplate, count int) (size int64, err error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("making a client of the API server: %w", err)
	}
	for number := range Namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace(number)}}
		if _, err := core.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("creating a namespace: %w", err)
		}
	}
	client, err := Client(config)
	if err != nil {
		return 0, err
	}
	var total atomic.Int64
	err = load.Each(ctx, count, writers, func(ctx context.Context, number int) error {
		sent, err := post(ctx, client, golden, number)
		total.Add(int64(sent))
		return err
	})
	return total.Load() / int64(count), err
}

func post(ctx context.Context, client rest.Interface, golden *v1beta1.VirtualMachineTemplate, number int) (int, error) {
	made, err := variant(golden, number)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(made)
	if err != nil {
		return 0, fmt.Errorf("encoding a template: %w", err)
	}
	err = client.Post().Namespace(made.Namespace).Resource("virtualmachinetemplates").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if err != nil {
		return 0, fmt.Errorf("creating template %s/%s: %w", made.Namespace, made.Name, err)
	}
	return len(body), nil
}

// Client is one of VirtualMachineTemplates.
func Client(config *rest.Config) (rest.Interface, error) {
	types := runtime.NewScheme()
	if err := v1beta1.AddToScheme(types); err != nil {
		return nil, fmt.Errorf("registering templates: %w", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1beta1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return client, nil
}
