package policywebhook

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/exemption"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// nameSuffix is the suffix of the names of entries: create.virtualmachine.policies.stencil.kubevirt.io.
const nameSuffix = ".policies." + v1alpha1.GroupName

// kindInstance represents the other kinds that run VMs. Policies about VirtualMachines receive objects of these kinds as the equivalent
// VirtualMachine, see machine.View.
const kindInstance v1alpha1.PolicyKind = machine.KindInstance

// Entry identifies a webhook of the configuration by the kind and the operation of its requests.
type Entry struct {
	Kind      v1alpha1.PolicyKind
	Operation v1alpha1.PolicyOperation
	// Templated is for VirtualMachines that refer to a template, in namespaces that the comparing webhook excludes.
	Templated bool
}

// name returns the name of the entry.
func (d Entry) name() string {
	kind := string(d.Kind)
	if d.Templated {
		kind = "templated" + kind
	}
	return strings.ToLower(string(d.Operation)+"."+kind) + nameSuffix
}

// resources are the rules for each kind, as in the chart's own webhooks.
var resources = map[v1alpha1.PolicyKind][]admissionregistrationv1.Rule{
	v1alpha1.PolicyKindVirtualMachine:                {rule("kubevirt.io", "virtualmachines", "v1", "v1alpha3")},
	v1alpha1.PolicyKindVirtualMachineTemplate:        {rule("template.kubevirt.io", "virtualmachinetemplates", "v1alpha1", "v1beta1")},
	v1alpha1.PolicyKindVirtualMachineTemplateRequest: {rule("template.kubevirt.io", "virtualmachinetemplaterequests", "v1alpha1", "v1beta1")},
	v1alpha1.PolicyKindVirtualMachineTemplateImport:  {rule("template.kubevirt.io", "virtualmachinetemplateimports", "v1beta1")},
	v1alpha1.PolicyKindVirtualMachineTemplateExport:  {rule("template.kubevirt.io", "virtualmachinetemplateexports", "v1beta1")},
	kindInstance: {
		rule("kubevirt.io", "virtualmachineinstances", "v1", "v1alpha3"),
		rule("kubevirt.io", "virtualmachineinstancereplicasets", "v1", "v1alpha3"),
		rule("pool.kubevirt.io", "virtualmachinepools", "v1alpha1", "v1beta1"),
	},
}

func rule(group, resource string, versions ...string) admissionregistrationv1.Rule {
	return admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: versions, Resources: []string{resource}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
	}
}

// entriesOf returns the entries for the requests that a policy evaluates. excluded is whether the comparing webhook excludes namespaces: then
// VirtualMachines from templates have a separate entry, except for their deletion.
func entriesOf(match *v1alpha1.PolicyMatch, excluded bool) []Entry {
	var entries []Entry
	for _, kind := range match.Kinds {
		for _, operation := range match.Operations {
			stored := kind == v1alpha1.PolicyKindVirtualMachine && operation != v1alpha1.PolicyOperationDelete
			if !stored || len(match.Templates) == 0 {
				entries = append(entries, Entry{Kind: kind, Operation: operation})
			}
			// These come from no template.
			if stored && len(match.Templates) == 0 {
				entries = append(entries, Entry{Kind: kindInstance, Operation: operation})
			}
			if stored && excluded {
				entries = append(entries, Entry{Kind: kind, Operation: operation, Templated: true})
			}
		}
	}
	return entries
}

// comparing is the webhook of the chart that compares VirtualMachines with their templates, and evaluates policies.
const comparing = "virtualmachine.validate.template.kubevirt.io"

// excludedBy returns a requirement that selects the namespaces that the comparing webhook excludes; nil if it excludes none.
func excludedBy(reference *admissionregistrationv1.ValidatingWebhookConfiguration) *metav1.LabelSelectorRequirement {
	for _, webhook := range reference.Webhooks {
		if webhook.Name != comparing || webhook.NamespaceSelector == nil {
			continue
		}
		for _, requirement := range webhook.NamespaceSelector.MatchExpressions {
			if requirement.Key == v1alpha1.LabelGoverned && requirement.Operator == metav1.LabelSelectorOpNotIn {
				return &metav1.LabelSelectorRequirement{Key: requirement.Key, Operator: metav1.LabelSelectorOpIn, Values: requirement.Values}
			}
		}
	}
	return nil
}

// Settings are common to all entries.
type Settings struct {
	// URL is the address of the webhooks, without their path. If it is empty, Service is used.
	URL string
	// Service is the Service in front of the managers.
	Service admissionregistrationv1.ServiceReference
	// TimeoutSeconds is the timeout of a webhook call, in seconds.
	TimeoutSeconds int32
	// Exempt are the exempt users: their updates and deletions are not sent.
	Exempt exemption.Names
}

// path is the path of the webhook that evaluates policies.
const path = "/validate-policies"

func (s *Settings) clientConfig(caBundle []byte) admissionregistrationv1.WebhookClientConfig {
	if s.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(strings.TrimSuffix(s.URL, "/") + path), CABundle: caBundle}
	}
	service := s.Service
	service.Path = ptr.To(path)
	if service.Port == nil {
		service.Port = ptr.To[int32](443)
	}
	return admissionregistrationv1.WebhookClientConfig{Service: &service, CABundle: caBundle}
}

// need holds the requirements of the policies for one entry.
type need struct {
	entry Entry
	// closed is set if a request that cannot be evaluated is denied.
	closed bool
	// namespaces and objects are the selectors of the policies if these are equal; otherwise nil.
	namespaces, objects *v1alpha1.LabelSelector
}

// needs returns the requirements of the policies for each entry, sorted by the name of the entry.
func needs(policies []*v1alpha1.VirtualMachinePolicySpec, excluded bool) []need {
	found := map[Entry]*need{}
	for _, policy := range policies {
		for _, entry := range entriesOf(&policy.Match, excluded) {
			if found[entry] == nil {
				found[entry] = &need{entry: entry, namespaces: policy.Match.NamespaceSelector, objects: policy.Match.ObjectSelector}
			}
			if entry.Kind == kindInstance {
				// Policies evaluate the labels of a pool's VMs, not those of the pool.
				found[entry].objects = nil
			}
			found[entry].add(policy)
		}
	}
	list := make([]need, 0, len(found))
	for _, each := range found {
		list = append(list, *each)
	}
	slices.SortFunc(list, func(a, b need) int { return cmp.Compare(a.entry.name(), b.entry.name()) })
	return list
}

func (n *need) add(policy *v1alpha1.VirtualMachinePolicySpec) {
	if policy.Enforcement == v1alpha1.EnforcementDeny && policy.FailureMode == v1alpha1.FailureModeDeny {
		n.closed = true
	}
	if !equality.Semantic.DeepEqual(n.namespaces, policy.Match.NamespaceSelector) {
		n.namespaces = nil
	}
	if !equality.Semantic.DeepEqual(n.objects, policy.Match.ObjectSelector) {
		n.objects = nil
	}
}

// desired returns the entries that policies need, with the API server's defaults. excluded selects the namespaces that the comparing webhook
// excludes, and caBundle returns the caBundle of an entry.
func desired(
	policies []*v1alpha1.VirtualMachinePolicySpec, s *Settings, excluded *metav1.LabelSelectorRequirement, caBundle func(entry string) []byte,
) []admissionregistrationv1.ValidatingWebhook {
	list := []admissionregistrationv1.ValidatingWebhook{}
	for _, each := range needs(policies, excluded != nil) {
		failure := admissionregistrationv1.Ignore
		if each.closed {
			failure = admissionregistrationv1.Fail
		}
		name := each.entry.name()
		namespaces := selector(each.namespaces)
		if each.entry.Templated {
			namespaces.MatchExpressions = append(namespaces.MatchExpressions, *excluded)
		}
		list = append(list, admissionregistrationv1.ValidatingWebhook{
			Name:                    name,
			ClientConfig:            s.clientConfig(caBundle(name)),
			Rules:                   rules(each.entry),
			FailurePolicy:           &failure,
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			NamespaceSelector:       namespaces,
			ObjectSelector:          selector(each.objects),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To(s.TimeoutSeconds),
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         conditions(each.entry, s.Exempt),
		})
	}
	return list
}

func rules(entry Entry) []admissionregistrationv1.RuleWithOperations {
	var list []admissionregistrationv1.RuleWithOperations
	for _, rule := range resources[entry.Kind] {
		list = append(list, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(entry.Operation)},
			Rule:       rule,
		})
	}
	return list
}

// selector converts a label selector; nil becomes a selector of everything.
func selector(from *v1alpha1.LabelSelector) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if from == nil {
		return selector
	}
	selector.MatchLabels = from.MatchLabels
	for _, each := range from.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: each.Key, Operator: each.Operator, Values: each.Values,
		})
	}
	return selector
}

// different returns the names of the entries that differ, including missing and additional ones. caBundles are not compared: other
// components write them.
func different(live, desired []admissionregistrationv1.ValidatingWebhook) []string {
	names := map[string]bool{}
	by := func(list []admissionregistrationv1.ValidatingWebhook) map[string]*admissionregistrationv1.ValidatingWebhook {
		found := map[string]*admissionregistrationv1.ValidatingWebhook{}
		for i := range list {
			one := list[i].DeepCopy()
			one.ClientConfig.CABundle = nil
			found[one.Name] = one
			names[one.Name] = true
		}
		return found
	}
	has, wants := by(live), by(desired)
	var list []string
	for name := range names {
		if !equality.Semantic.DeepEqual(has[name], wants[name]) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
