// Package installation decides whether Stencil can be installed, or stay, beside what else a cluster has: KubeVirt with a template component of its
// own, CDI, and definitions with other owners. It is pure: commands and controllers read the State.
//
// KubeVirt's virt-operator installs the definitions of template.kubevirt.io itself while its feature gate Template is enabled, which it is by default
// from version 1.9 on. It finds its definitions by the label app.kubernetes.io/managed-by=virt-operator, creates those that it does not find, and stops its whole
// rollout if one exists. When the component is switched off, it deletes the definitions with its label, and all templates with them.
package installation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Definitions are the names of the CustomResourceDefinitions that KubeVirt's template component has as well.
var Definitions = []string{"virtualmachinetemplaterequests.template.kubevirt.io", "virtualmachinetemplates.template.kubevirt.io"}

// APIServices are the names of the APIServices that it has as well.
var APIServices = []string{"v1alpha1.subresources.template.kubevirt.io", "v1beta1.subresources.template.kubevirt.io"}

const (
	// AnnotationTemplateAPI is External on the configuration of the render webhook of a release without definitions of its own.
	AnnotationTemplateAPI = "stencil.kubevirt.io/template-api"

	// LabelManagedBy is the label by which owners of objects are found.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ByOperator is its value for objects of virt-operator.
	ByOperator = "virt-operator"
	// ByHelm is its value for objects of a Helm release.
	ByHelm = "Helm"
	// AnnotationRelease is the name of the Helm release that an object belongs to.
	AnnotationRelease = "meta.helm.sh/release-name"
	// AnnotationReleaseNamespace is the namespace of that release.
	AnnotationReleaseNamespace = "meta.helm.sh/release-namespace"

	// gate is KubeVirt's feature gate of the component, on by default from byDefault on; virtTemplateDeployment exists from configurable on.
	gate = "Template"
)

var (
	byDefault    = version.MustParseGeneric("1.9.0")
	configurable = version.MustParseGeneric("1.8.0")
	// oldestAPIServer is the oldest supported API server: ValidatingAdmissionPolicies are generally available since.
	oldestAPIServer = version.MustParseGeneric("1.30.0")
)

// TemplateAPI is the component that serves the API of templates: the chart's value templateAPI.
type TemplateAPI string

// Values of TemplateAPI.
const (
	// Own is Stencil.
	Own TemplateAPI = "Own"
	// External is KubeVirt's own template component.
	External TemplateAPI = "External"
)

// Known reports whether it is one of these values.
func (a TemplateAPI) Known() bool { return a == Own || a == External }

// State is what a cluster has.
type State struct {
	// TemplateAPI of the installed release, or of the one to be installed.
	TemplateAPI TemplateAPI
	// APIServer is the version of the API server.
	APIServer string
	KubeVirts []KubeVirt
	CDIs      []Product
	// Objects of Definitions and APIServices that exist, by name.
	Objects map[string]Object
	// Guarded reports whether Stencil's policy denies the deletion of Definitions.
	Guarded bool
	// Webhooks are the configurations of mutating webhooks that are called for VirtualMachines.
	Webhooks []Webhook
	// Templates and Requests are the numbers of objects of the definitions; -1 if they are not known.
	Templates, Requests int
}

// Product is an installed operator's product.
type Product struct{ Namespace, Name, Version, Phase string }

// KubeVirt is a KubeVirt object.
type KubeVirt struct {
	Product
	// Target is the version that is being installed.
	Target string
	// Enabled and Disabled are feature gates, and Deploy is spec.configuration.virtTemplateDeployment.enabled, nil if it is not set.
	Enabled, Disabled []string
	Deploy            *bool
}

// Webhook is a configuration of mutating webhooks.
type Webhook struct {
	Name string
	// Defaults reports whether it is Stencil's, which fills in defaults.
	Defaults bool
}

// Object is an object that exists.
type Object struct {
	Labels, Annotations map[string]string
	Deleting            bool
}

// owner returns who owns an object, in words, and the Helm release NAMESPACE/NAME if it is one.
func (o Object) owner() (who, release string) {
	switch managed := o.Labels[LabelManagedBy]; {
	case managed == ByOperator:
		return "KubeVirt's virt-operator", ""
	case o.Annotations[AnnotationRelease] != "":
		release = o.Annotations[AnnotationReleaseNamespace] + "/" + o.Annotations[AnnotationRelease]
		return "Helm release " + release, release
	case managed != "" && managed != ByHelm:
		return managed, ""
	}
	return "no known owner", ""
}

// Level is how serious a Finding is.
type Level string

// Levels of findings. A Problem has to be solved before Stencil is installed or KubeVirt is upgraded.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is one result: what was found, and what to do about it, if anything.
type Finding struct {
	Level Level `json:"level"`
	// Subject is what it is about.
	Subject string `json:"subject"`
	Found   string `json:"found"`
	Action  string `json:"action,omitempty"`
}

// Check returns the findings about a cluster. release, NAMESPACE/NAME, is the Helm release of Stencil that is or is to be installed.
func Check(s State, release string) []Finding {
	findings := []Finding{apiServer(s.APIServer)}
	component := false
	for _, k := range s.KubeVirts {
		on, why := k.Component()
		component = component || on
		if s.TemplateAPI == External {
			findings = append(findings, k.external(on, why))
		} else {
			findings = append(findings, k.finding(on, why))
		}
	}
	if len(s.KubeVirts) == 0 {
		findings = append(findings, Finding{Warning, "KubeVirt", "not installed", "install it: VirtualMachines are its objects"})
	}
	for _, c := range s.CDIs {
		findings = append(findings, Finding{OK, "CDI", fmt.Sprintf("%s in %s", cmp.Or(c.Version, "of an unknown version"), cmp.Or(c.Phase, "an unknown phase")), ""})
	}
	if len(s.CDIs) == 0 {
		findings = append(findings, Finding{Warning, "CDI", "not installed", "install it for disks that are imported or cloned, captures and golden images"})
	}
	for _, name := range slices.Concat(Definitions, APIServices) {
		one, is := s.Objects[name]
		switch {
		case is && s.TemplateAPI == External:
			findings = append(findings, s.externalObject(name, one))
		case is:
			findings = append(findings, s.object(name, one, release, component))
		}
	}
	if (component || s.TemplateAPI == External) && !slices.ContainsFunc(Definitions, func(name string) bool { _, is := s.Objects[name]; return is }) {
		findings = append(findings, s.undefined(component))
	}
	return append(findings, s.late()...)
}

// undefined returns the finding about definitions that KubeVirt is to make, and has not made.
func (s State) undefined(component bool) Finding {
	f := Finding{Problem, "definitions", "KubeVirt's template component is on, and its definitions do not exist yet", "wait until KubeVirt has made them"}
	switch {
	case !component:
		f.Found, f.Action = "there are none, and Stencil brings none with templateAPI External", "switch KubeVirt's template component on, or set templateAPI to Own"
	case s.TemplateAPI != External:
		f.Action += ", or switch the component off: " + off(s.KubeVirts)
	}
	return f
}

// late returns the findings about webhooks that change VirtualMachines after Stencil has filled in their defaults. The API server calls configurations in the order of their
// names. It calls Stencil's once more if a later one has changed the VirtualMachine, and does not if that one then changes it again.
func (s State) late() []Finding {
	own := slices.IndexFunc(s.Webhooks, func(w Webhook) bool { return w.Defaults })
	if own < 0 {
		return nil
	}
	var findings []Finding
	for _, w := range s.Webhooks {
		if name := s.Webhooks[own].Name; w.Name > name {
			findings = append(findings, Finding{
				Warning, "MutatingWebhookConfiguration " + w.Name, "may change VirtualMachines after Stencil has filled in their defaults, because its name sorts behind " + name,
				"give it a name that sorts before " + name + ": what it adds last has no defaults",
			})
		}
	}
	return findings
}

func apiServer(text string) Finding {
	found, err := version.ParseGeneric(text)
	switch {
	case err != nil:
		return Finding{Warning, "API server", fmt.Sprintf("has the version %q, which cannot be read", text), ""}
	case found.LessThan(oldestAPIServer):
		return Finding{Problem, "API server", text, "upgrade it to 1.30 or later, which has ValidatingAdmissionPolicies and matchConditions of webhooks"}
	}
	return Finding{OK, "API server", text, ""}
}

// Component reports whether a KubeVirt has its template component on, now or after the rollout that is going on, and why.
func (k KubeVirt) Component() (on bool, why string) {
	if k.Deploy != nil && !*k.Deploy {
		return false, "spec.configuration.virtTemplateDeployment.enabled is false"
	}
	if slices.Contains(k.Disabled, gate) {
		return false, "its feature gate Template is disabled"
	}
	if slices.Contains(k.Enabled, gate) {
		return true, "its feature gate Template is enabled"
	}
	for _, text := range []string{k.Target, k.Version} {
		if found, err := version.ParseGeneric(text); err == nil && !found.WithPreRelease("").LessThan(byDefault) {
			return true, "its feature gate Template is on by default from 1.9 on"
		}
	}
	return false, "its feature gate Template is off"
}

// state returns a KubeVirt and its template component, in words.
func (k KubeVirt) state(on bool, why string) string {
	text := fmt.Sprintf("%s/%s, %s, %s", k.Namespace, k.Name, cmp.Or(k.Version, "of an unknown version"), cmp.Or(k.Phase, "in an unknown phase"))
	if k.Target != "" && k.Target != k.Version {
		text += ", becomes " + k.Target
	}
	if on {
		return text + "; its template component is on: " + why
	}
	return text + "; its template component is off: " + why
}

// external returns the finding about a KubeVirt whose template component Stencil relies on.
func (k KubeVirt) external(on bool, why string) Finding {
	f := Finding{OK, "KubeVirt", k.state(on, why), ""}
	if !on {
		f.Level, f.Action = Problem, "virt-operator deletes the definitions with all templates, and Stencil brings none: "+k.on()
	}
	return f
}

// on returns how the component of a KubeVirt is switched on.
func (k KubeVirt) on() string {
	const gates = "spec.configuration.developerConfiguration."
	switch {
	case k.Deploy != nil && !*k.Deploy:
		return command(k, true)
	case slices.Contains(k.Disabled, gate):
		return "remove Template from its " + gates + "disabledFeatureGates"
	}
	return "add Template to its " + gates + "featureGates"
}

// command returns the command that switches the component of a KubeVirt.
func command(k KubeVirt, on bool) string {
	return fmt.Sprintf(`kubectl patch kubevirt %s --namespace=%s --type=merge -p '{"spec": {"configuration": {"virtTemplateDeployment": {"enabled": %t}}}}'`, k.Name, k.Namespace, on)
}

func (k KubeVirt) finding(on bool, why string) Finding {
	f := Finding{OK, "KubeVirt", k.state(on, why), ""}
	if on {
		return f
	}
	if found, err := version.ParseGeneric(k.Version); err == nil && found.LessThan(byDefault) && k.Deploy == nil && !slices.Contains(k.Disabled, gate) {
		f.Level, f.Action = Warning, "before an upgrade to 1.9 or later, which switches it on: "+off([]KubeVirt{k})
	}
	return f
}

// off returns the command that switches the component of KubeVirts off.
func off(all []KubeVirt) string {
	var commands []string
	for _, k := range all {
		if found, err := version.ParseGeneric(k.Version); err == nil && found.LessThan(configurable) {
			commands = append(commands, "upgrade to 1.8 first, which has spec.configuration.virtTemplateDeployment; then")
		}
		commands = append(commands, command(k, false))
	}
	return strings.Join(commands, " ")
}

// subject returns what a finding about a definition or an APIService is about.
func subject(name string) (kind string, definition bool) {
	if slices.Contains(Definitions, name) {
		return "CustomResourceDefinition " + name, true
	}
	return "APIService " + name, false
}

// externalObject returns the finding about a definition or an APIService that KubeVirt is to own.
func (s State) externalObject(name string, o Object) Finding {
	kind, _ := subject(name)
	who, _ := o.owner()
	f := Finding{OK, kind, "belongs to " + who, ""}
	switch {
	case o.Deleting:
		f.Level, f.Found, f.Action = Problem, "is being deleted, and belongs to "+who, "wait until it is gone, and KubeVirt has made it again"
	case o.Labels[LabelManagedBy] != ByOperator:
		f.Level, f.Action = Problem, "with templateAPI External it belongs to KubeVirt: stencilctl install release gives it back with all templates, or set templateAPI to Own"
	}
	return f
}

// object returns the finding about a definition or an APIService that exists.
func (s State) object(name string, o Object, release string, component bool) Finding {
	kind, definition := subject(name)
	who, of := o.owner()
	f := Finding{OK, kind, "belongs to " + who, ""}
	switch {
	case o.Deleting:
		return Finding{Problem, kind, "is being deleted, and belongs to " + who, "wait until it is gone"}
	case of != "" && of == release && component:
		f.Level, f.Action = Problem, "KubeVirt's rollout stops at it with AlreadyExists: "+off(s.KubeVirts)
		if !definition {
			f.Action = "KubeVirt takes it over: " + off(s.KubeVirts)
		}
	case of != "" && of == release:
	case of != "":
		f.Level, f.Action = Problem, fmt.Sprintf("install Stencil as this release, or add --take-ownership to helm if %s is no longer needed", of)
	case o.Labels[LabelManagedBy] == ByOperator && component:
		f.Level, f.Action = Problem, "Helm does not overwrite it. "+s.replace(release)
	case o.Labels[LabelManagedBy] == ByOperator && definition && s.Guarded:
		f.Level, f.Action = Problem, "its component is off, and Stencil's policy keeps virt-operator from deleting it, so that KubeVirt does not settle: "+
			fmt.Sprintf("kubectl label crd %s %s=%s --overwrite", name, LabelManagedBy, ByHelm)
	case o.Labels[LabelManagedBy] == ByOperator:
		f.Level, f.Action = Problem, "its component is off, so that virt-operator deletes it: wait until it is gone"
	default:
		f.Level, f.Action = Problem, "Helm does not overwrite what it has not made: add --take-ownership to helm upgrade --install, if nothing else keeps it"
	}
	return f
}

// replace returns how definitions of virt-operator become those of a release.
func (s State) replace(release string) string {
	command := "stencilctl install takeover --release " + release
	switch {
	case s.Templates == 0 && s.Requests == 0:
		return "There are no templates, so that nothing is lost: " + off(s.KubeVirts) + ", which deletes it, and install Stencil then"
	case s.Templates < 0 || s.Requests < 0:
		return "Switching KubeVirt's template component off deletes it with all templates: " + command + " moves it with them"
	}
	return fmt.Sprintf("Switching KubeVirt's template component off deletes it, with %d templates and %d requests: %s moves it with them", s.Templates, s.Requests, command)
}
