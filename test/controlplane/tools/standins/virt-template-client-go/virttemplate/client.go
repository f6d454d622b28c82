// Package virttemplate stands in for KubeVirt's client of templates: one that lists and watches.
package virttemplate

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"kubevirt.io/virt-template-api/core/v1beta1"
)

// Interface is a client of the API group.
type Interface interface{ TemplateV1beta1() Version }

// Version is a client of one version.
type Version interface{ RESTClient() rest.Interface }

type client struct{ rest *rest.RESTClient }

func (c client) TemplateV1beta1() Version   { return c }
func (c client) RESTClient() rest.Interface { return c.rest }

// NewForConfig returns a client.
func NewForConfig(config *rest.Config) (Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, v1beta1.GroupVersion)
	scheme.AddKnownTypes(v1beta1.GroupVersion, &v1beta1.VirtualMachineTemplate{})
	copied := rest.CopyConfig(config)
	copied.GroupVersion, copied.APIPath = &v1beta1.GroupVersion, "/apis"
	copied.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	made, err := rest.RESTClientFor(copied)
	return client{made}, err
}
