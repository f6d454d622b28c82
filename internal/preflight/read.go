// Package preflight reads from a cluster what package installation evaluates: stencilctl install check, and the manager while it runs.
package preflight

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/installation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// The resources that an installation is read from.
var (
	Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	Policies    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	webhooks    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	KubeVirts   = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	cdis        = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "cdis"}
)

// longestName is the length to which the chart shortens the beginning of its names, in bytes.
const longestName = 40

// Client reads objects as decoded JSON. Its errors name what was read.
type Client interface {
	// Version returns the version of the API server.
	Version(ctx context.Context) (string, error)
	// Get returns an object, or nil if there is none.
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error)
	// List visits all objects of a served resource.
	List(ctx context.Context, resource schema.GroupVersionResource, selector string, visit func(object map[string]any) error) error
}

// Extent is what is read beside KubeVirt, the definitions and the APIServices.
type Extent struct {
	// TemplateAPI of the release. If empty, its webhooks say it, or else it is Own. The policy against the deletion of the definitions is not
	// read for External, which has none.
	TemplateAPI installation.TemplateAPI
	// Webhooks are those that are called for VirtualMachines.
	Webhooks bool
	// Rest is CDI, and the numbers of templates and requests.
	Rest bool
}

// Read reads what a cluster has. release is the name of Stencil's Helm release.
func Read(ctx context.Context, client Client, release string, extent Extent) (installation.State, error) {
	s := installation.State{Objects: map[string]installation.Object{}, Templates: -1, Requests: -1, TemplateAPI: cmp.Or(extent.TemplateAPI, installation.Own)}
	var err error
	if s.APIServer, err = client.Version(ctx); err != nil {
		return s, err
	}
	get := func(resource schema.GroupVersionResource, name string) (map[string]any, error) {
		return client.Get(ctx, resource, "", name)
	}
	for resource, names := range map[schema.GroupVersionResource][]string{Definitions: installation.Definitions, APIServices: installation.APIServices} {
		for _, name := range names {
			object, err := get(resource, name)
			if err != nil {
				return s, err
			}
			if object != nil {
				metadata := machine.MapAt(object, "metadata")
				s.Objects[name] = installation.Object{
					Labels: texts(metadata, "labels"), Annotations: texts(metadata, "annotations"), Deleting: metadata["deletionTimestamp"] != nil,
				}
			}
		}
	}
	if extent.TemplateAPI != installation.External {
		policy, err := get(Policies, Guard(release))
		if err != nil {
			return s, err
		}
		s.Guarded = policy != nil
	}
	count := func(into *int) func(map[string]any) error {
		*into = 0
		return func(map[string]any) error { *into++; return nil }
	}
	list := func(resource schema.GroupVersionResource, visit func() func(map[string]any) error) error {
		if defined, err := get(Definitions, resource.GroupResource().String()); err != nil || defined == nil {
			return err
		}
		return client.List(ctx, resource, "", visit())
	}
	err = list(KubeVirts, func() func(map[string]any) error {
		return func(object map[string]any) error { s.KubeVirts = append(s.KubeVirts, KubeVirt(object)); return nil }
	})
	if err != nil {
		return s, err
	}
	if extent.Webhooks {
		err := client.List(ctx, webhooks, "", func(object map[string]any) error {
			metadata := machine.MapAt(object, "metadata")
			labels := machine.MapAt(metadata, "labels")
			name, own := machine.StringAt(metadata, "name"), machine.StringAt(labels, "app.kubernetes.io/part-of") == "stencil"
			if api := machine.StringAt(machine.MapAt(metadata, "annotations"), installation.AnnotationTemplateAPI); own && api != "" && extent.TemplateAPI == "" && machine.StringAt(labels, "app.kubernetes.io/instance") == release {
				s.TemplateAPI = installation.TemplateAPI(api)
			}
			if defaults := own && strings.HasSuffix(name, "-defaults"); defaults || !own && changesMachines(object) {
				s.Webhooks = append(s.Webhooks, installation.Webhook{Name: name, Defaults: defaults})
			}
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	if !extent.Rest {
		return s, nil
	}
	for resource, visit := range map[schema.GroupVersionResource]func() func(map[string]any) error{
		cdis: func() func(map[string]any) error {
			return func(object map[string]any) error {
				s.CDIs = append(s.CDIs, product(object, "observedVersion"))
				return nil
			}
		},
		v1beta1.GroupVersion.WithResource("virtualmachinetemplates"):        func() func(map[string]any) error { return count(&s.Templates) },
		v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests"): func() func(map[string]any) error { return count(&s.Requests) },
	} {
		if err := list(resource, visit); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Guard returns the name of the policy against the deletion of the definitions, as the chart of this release calls it without fullnameOverride and nameOverride.
func Guard(release string) string {
	if !strings.Contains(release, "stencil") {
		release += "-stencil"
	}
	return strings.TrimSuffix(release[:min(len(release), longestName)], "-") + "-definitions"
}

// changesMachines reports whether a configuration has a webhook for VirtualMachines that are created or changed.
func changesMachines(configuration map[string]any) bool {
	has := func(rule map[string]any, key string, wanted ...string) bool {
		return slices.ContainsFunc(list(rule, key), func(one string) bool { return slices.Contains(wanted, one) })
	}
	for _, webhook := range machine.MapsAt(configuration, "webhooks") {
		for _, rule := range machine.MapsAt(webhook, "rules") {
			if has(rule, "apiGroups", "kubevirt.io", "*") && has(rule, "resources", "virtualmachines", "*", "*/*") && has(rule, "operations", "CREATE", "UPDATE", "*") {
				return true
			}
		}
	}
	return false
}

func product(object map[string]any, version string) installation.Product {
	metadata, status := machine.MapAt(object, "metadata"), machine.MapAt(object, "status")
	return installation.Product{
		Namespace: machine.StringAt(metadata, "namespace"), Name: machine.StringAt(metadata, "name"),
		Version: machine.StringAt(status, version), Phase: machine.StringAt(status, "phase"),
	}
}

// KubeVirt returns what a KubeVirt object says about the template component.
func KubeVirt(object map[string]any) installation.KubeVirt {
	configuration := machine.MapAt(object, "spec", "configuration")
	developer := machine.MapAt(configuration, "developerConfiguration")
	k := installation.KubeVirt{
		Product: product(object, "observedKubeVirtVersion"), Target: machine.StringAt(machine.MapAt(object, "status"), "targetKubeVirtVersion"),
		Enabled: list(developer, "featureGates"), Disabled: list(developer, "disabledFeatureGates"),
	}
	if deploy, is := machine.MapAt(configuration, "virtTemplateDeployment")["enabled"].(bool); is {
		k.Deploy = &deploy
	}
	return k
}

func texts(object map[string]any, key string) map[string]string {
	made := map[string]string{}
	for name, value := range machine.MapAt(object, key) {
		made[name], _ = value.(string)
	}
	return made
}

func list(object map[string]any, key string) []string {
	var made []string
	items, _ := object[key].([]any)
	for _, item := range items {
		text, _ := item.(string)
		made = append(made, text)
	}
	return made
}
