package transfer

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/transfer"
)

// IngressSettings are how movers are reached from outside of the cluster.
type IngressSettings struct {
	// Domain is the one below which each mover that users connect to has a host name. If it is empty, there are no Ingresses.
	Domain string
	// Class of the Ingresses; the default one of the cluster if it is empty.
	Class string
	// TLSSecret is the name of a Secret with a certificate, in the namespace of the transfer; if it is empty, the controller uses its own.
	TLSSecret string
	// Annotations are for the controller, which must connect to movers by TLS.
	Annotations map[string]string
}

// offered returns what users need to reach a mover: the token, the Service, and the Ingress if there is a domain.
func (o owner) offered(who *identity, settings *Settings) []client.Object {
	objects := []client.Object{o.access(who), o.service()}
	if settings.Ingress.Domain != "" {
		objects = append(objects, o.ingress(&settings.Ingress))
	}
	return objects
}

// withdraw deletes what users need to reach a mover. An Ingress from before the domain was removed is left to the garbage collector.
func (s *session) withdraw(ctx context.Context) error {
	failures := []error{
		remove(ctx, s.cluster, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.owner.namespace, Name: s.owner.called(access)}}),
		remove(ctx, s.cluster, s.owner.service()),
	}
	if s.settings.Ingress.Domain != "" {
		failures = append(failures, remove(ctx, s.cluster, s.owner.ingress(&s.settings.Ingress)))
	}
	return errors.Join(failures...)
}

// access returns the Secret with which users download an export, or upload a package.
func (o owner) access(who *identity) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: o.metadata(o.called(access)), Immutable: new(true), Data: map[string][]byte{
		"token": []byte(who.downloadToken), "ca.crt": who.certificate,
	}}
}

// service returns the Service at which an export is downloaded, or the package of an import uploaded.
func (o owner) service() *corev1.Service {
	return &corev1.Service{ObjectMeta: o.metadata(o.serviceName()), Spec: corev1.ServiceSpec{
		Selector: o.labels(), Ports: []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(transfer.Port), Protocol: corev1.ProtocolTCP}},
	}}
}

// serviceName begins with a letter, as names of Services must, and has at most 63 characters.
func (o owner) serviceName() string {
	if o.kind == "VirtualMachineTemplateImport" {
		return "import-" + string(o.uid)
	}
	return "export-" + string(o.uid)
}

// serverNames are the names of the Service in the certificate of its mover, and the one outside of the cluster.
func (o owner) serverNames(settings *Settings) []string {
	names := []string{o.serviceHost(), o.serviceHost() + ".cluster.local"}
	if host := o.externalHost(&settings.Ingress); host != "" {
		names = append(names, host)
	}
	return names
}

func (o owner) serviceHost() string { return o.serviceName() + "." + o.namespace + ".svc" }

// externalHost returns the host name of a mover outside of the cluster, and an empty one if there is no domain.
func (o owner) externalHost(settings *IngressSettings) string {
	if settings.Domain == "" {
		return ""
	}
	return o.serviceName() + "." + settings.Domain
}

// externalURL returns the URL of a path of the mover outside of the cluster. It is empty if there is no Ingress, such as one of a mover from before there was
// a domain, whose certificate does not have the host name.
func (s *session) externalURL(ctx context.Context, path string) (string, error) {
	if s.settings.Ingress.Domain == "" {
		return "", nil
	}
	found, err := get(ctx, s.cluster, s.owner.namespace, s.owner.serviceName(), &networkingv1.Ingress{})
	if err != nil || !found {
		return "", err
	}
	return "https://" + s.owner.externalHost(&s.settings.Ingress) + path, nil
}

// ingress returns the Ingress that leads to the Service. Its path is empty: controllers that pass TLS through have no other, such as OpenShift's, which makes
// a Route of the Ingress.
func (o owner) ingress(settings *IngressSettings) *networkingv1.Ingress {
	host := o.externalHost(settings)
	made := &networkingv1.Ingress{ObjectMeta: o.metadata(o.serviceName()), Spec: networkingv1.IngressSpec{
		TLS: []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: settings.TLSSecret}},
		Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{PathType: new(networkingv1.PathTypeImplementationSpecific), Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: o.serviceName(), Port: networkingv1.ServiceBackendPort{Name: "https"}},
			}}},
		}}}},
	}}
	made.Annotations = maps.Clone(settings.Annotations)
	if settings.Class != "" {
		made.Spec.IngressClassName = &settings.Class
	}
	return made
}
