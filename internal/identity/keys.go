package identity

import (
	"slices"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
)

// tracked are the annotations and labels in which controllers and tools keep state of one object. They are not copied to another object. An entry
// that ends in a slash is a prefix.
var tracked = []string{
	contract.AnnotationTemplateRef,
	contract.AnnotationParameterPrefix,
	contract.AnnotationRendered,
	contract.AnnotationOverrides,
	contract.AnnotationCreatedBy,
	contract.AnnotationBoundValues,
	contract.AnnotationProcessed,
	contract.AnnotationDefaultsApplied,
	contract.AnnotationDefaultsFailed,
	contract.LabelTemplate,
	contract.LabelTemplateNamespace,
	contract.LabelTemplateRevision,

	"kubectl.kubernetes.io/",
	"argocd.argoproj.io/",
	"meta.helm.sh/",
	"kustomize.toolkit.fluxcd.io/",
	"helm.toolkit.fluxcd.io/",

	"kubevirt.io/latest-observed-api-version",
	"kubevirt.io/storage-observed-api-version",
	"kubevirt.io/vm-generation",
	"kubevirt.io/keep-launcher-alive-after-failure",
	"kubevirt.io/nodeName",
	"objects.template.kubevirt.io/",
	"restore.kubevirt.io/",
	"snapshot.kubevirt.io/",
	"clone.kubevirt.io/",

	"k8s.v1.cni.cncf.io/network-status",
	"k8s.v1.cni.cncf.io/networks-status",
}

// writers are domains of controllers that write annotations and labels for one VM: plugins of networks, clouds, and tools for backups. Domains below
// them count, too.
var writers = []string{
	"antrea.io", "cilium.io", "harvesterhci.io", "k8s.ovn.org", "kubemacpool.io", "metallb.io", "metallb.universe.tf", "ovn.kubernetes.io", "projectcalico.org",
	"submariner.io", "whereabouts.cni.cncf.io",
	"cloudcasa.io", "kanister.io", "kasten.io", "libopenstorage.org", "trilio.io", "velero.io",
}

// settings are names of keys in those domains by which users choose something that many VMs have in common.
var settings = []string{
	"egress_rate", "ingress_rate", "ip-pool", "ip_pool", "ipv4pools", "ipv6pools", "logical_switch", "os", "security_groups",
}

func isTracked(key string) bool {
	return slices.ContainsFunc(tracked, func(entry string) bool {
		return key == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(key, entry)
	})
}

// isWritten reports whether a controller writes an annotation or label for one VM.
func isWritten(key string) bool {
	domain, name, _ := strings.Cut(key, "/")
	return !slices.Contains(settings, name) && slices.ContainsFunc(writers, func(writer string) bool { return isBelow(domain, writer) })
}

// isKubeVirts reports whether KubeVirt reads an annotation or label: then it is a setting, and may be data of the guest.
func isKubeVirts(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return isBelow(domain, "kubevirt.io")
}

func isBelow(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
