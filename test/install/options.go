package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/manager"
)

const (
	// Release is the name of the release when Options name no other.
	Release = "stencil"
	// Namespace is where the release lives when Options name no other.
	Namespace = "stencil-system"
)

// Options configure an installation. Only ManagerURL is required.
type Options struct {
	// ManagerURL is the https URL, without a path, at which the API server reaches a stencil-manager outside the cluster. When it is empty, Values
	// decide; with the chart's defaults, webhooks call a Service without endpoints.
	ManagerURL string
	// APIServerAddress is the host:port at which the API server reaches a stencil-apiserver outside the cluster. When it is empty there is none,
	// unless Values enable it: an APIService without a server breaks discovery.
	APIServerAddress string
	// Release is the name of the release, Release when empty.
	Release string
	// Namespace of the release, Namespace when empty. It is created when it does not exist.
	Namespace string
	// Values are laid over the chart's own and over what ManagerURL implies.
	Values map[string]any
	// ValuesFiles are paths of further values, laid over Values in their order.
	ValuesFiles []string
	// Chart is the path of the chart, a folder or a package, or its address in a registry. Default: that of this checkout.
	Chart string
	// ForceConflicts takes fields that another writer has set, as after a takeover.
	ForceConflicts bool
}

func (o Options) withDefaults() Options {
	if o.Release == "" {
		o.Release = Release
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	return o
}

// exemptUsers of the chart's values.
var exemptUsers = []string{
	"kubevirt-apiserver", "kubevirt-controller", "kubevirt-handler", "kubevirt-operator", "kubevirt-synchronization-controller", "cdi-sa",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller",
}

// writableKeys are the writableInstanceKeys of the chart's values.
var writableKeys = []string{
	"kubectl.kubernetes.io/last-applied-configuration", "kubectl.kubernetes.io/restartedAt", "velero.io/", "k10.kasten.io/",
	"descheduler.alpha.kubernetes.io/evict", "descheduler.alpha.kubernetes.io/prefer-no-eviction", "descheduler.alpha.kubernetes.io/request-evict-only",
	"prometheus.io/", "monitoring.coreos.com/", "istio.io/dataplane-mode", "istio.io/use-waypoint", "app.kubernetes.io/",
}

func texts(list []any) []string {
	var all []string
	for _, each := range list {
		all = append(all, fmt.Sprint(each))
	}
	return all
}

// ManagerArgs returns the flags that make a stencil-manager serve this release with a certificate authority of its own: those
// that the chart gives the manager in the cluster and that name objects of the release.
func (o Options) ManagerArgs() []string {
	o = o.withDefaults()
	prefix := o.prefix()
	exempt := exemptUsers
	readiness, _ := o.Values["readiness"].(map[string]any)
	if readiness["dryRun"] == true {
		exempt = append(slices.Clone(exempt), "system:serviceaccount:"+o.Namespace+":"+prefix+"-manager")
	}
	resources := o.objectResources()
	objectAccount := "system:serviceaccount:" + o.Namespace + ":" + prefix + "-objects"
	if len(resources) > 0 {
		exempt = append(slices.Clone(exempt), objectAccount)
	}
	arguments := []string{
		"--leader-election-namespace=" + o.Namespace,
		"--certificate-source=authority",
		"--certificate-authority-namespace=" + o.Namespace,
		"--certificate-authority-secret=" + prefix + "-webhook-ca",
		"--leader-election-id=" + prefix + "-manager",
		"--protected-objects=" + prefix + "-protected-objects",
		"--policy-library=" + prefix + "-policy-library",
		"--release=" + o.Namespace + "/" + o.Release,
		"--exempt-users=" + strings.Join(exempt, ","),
		"--exempt-binding=" + prefix + "-exempt-users",
		"--writable-instance-keys=" + strings.Join(writableKeys, ","),
		"--webhook-configurations=mutating/a-" + prefix + "-render,validating/" + prefix + "-validate,validating/" + prefix + "-policies",
		"--policy-webhooks=" + prefix + "-policies",
		"--policy-webhooks-trust=" + prefix + "-validate",
		"--policy-webhooks-address=" + cmp.Or(o.ManagerURL, o.Namespace+"/"+prefix+"-webhook"),
	}
	if disks, _ := o.Values["diskAccess"].(map[string]any); disks["mode"] != "None" {
		arguments = append(arguments, "--disk-account=system:serviceaccount:"+o.Namespace+":"+prefix+"-disks")
	}
	if sources, _ := o.Values["policySources"].(map[string]any); sources["enabled"] == true {
		arguments = append(arguments, "--policy-source-account=system:serviceaccount:"+o.Namespace+":"+prefix+"-policy-sources")
		if networks, _ := sources["allowedNetworks"].([]any); len(networks) > 0 {
			arguments = append(arguments, "--policy-source-networks="+strings.Join(texts(networks), ","))
		}
	}
	if networks, _ := o.Values["clusterNetworks"].([]any); len(networks) > 0 {
		arguments = append(arguments, "--cluster-networks="+strings.Join(texts(networks), ","))
	}
	if revisions, _ := o.Values["revisions"].(map[string]any); revisions["write"] == true {
		arguments = append(arguments, "--revision-account=system:serviceaccount:"+o.Namespace+":"+prefix+"-revisions")
	}
	if transfers, _ := o.Values["transfers"].(map[string]any); transfers["enabled"] == true {
		image, _ := transfers["image"].(map[string]any)
		arguments = append(arguments, "--transfer-account=system:serviceaccount:"+o.Namespace+":"+prefix+"-transfers", "--transfer-key-secret="+prefix+"-transfer-key",
			fmt.Sprintf("--transfer-image=ghcr.io/vmstencil/stencil-mover:%v", image["tag"]))
		if limit := transfers["limit"]; limit != nil {
			arguments = append(arguments, fmt.Sprintf("--transfer-limit=%v", limit))
		}
		if limit := transfers["limitPerNamespace"]; limit != nil {
			arguments = append(arguments, fmt.Sprintf("--transfer-limit-per-namespace=%v", limit))
		}
		if ingress, _ := transfers["ingress"].(map[string]any); ingress["domain"] != nil {
			annotations, _ := json.Marshal(ingress["annotations"])
			arguments = append(arguments, fmt.Sprintf("--transfer-ingress-domain=%v", ingress["domain"]), "--transfer-ingress-annotations="+string(annotations))
		}
		if examine := transfers["examineCaptures"]; examine != nil {
			arguments = append(arguments, fmt.Sprintf("--transfer-examine-captures=%v", examine))
		}
		if networks, _ := transfers["allowedNetworks"].([]any); len(networks) > 0 {
			arguments = append(arguments, "--transfer-networks="+strings.Join(texts(networks), ","))
		}
	}
	arguments = append(arguments, "--image-account=system:serviceaccount:"+o.Namespace+":"+prefix+"-images")
	images, _ := o.Values["goldenImages"].(map[string]any)
	for key, flag := range map[string]string{"namespaces": "--image-namespaces=", "allowedNetworks": "--image-networks="} {
		if listed, _ := images[key].([]any); len(listed) > 0 {
			arguments = append(arguments, flag+strings.Join(texts(listed), ","))
		}
	}
	if len(resources) > 0 {
		arguments = append(arguments, "--object-account="+objectAccount, "--object-resources="+strings.Join(resources, ","), "--object-keys-secret="+prefix+"-object-keys")
		values, _ := o.Values["objects"].(map[string]any)
		if lent, found := values["lentResources"].([]any); found {
			arguments = append(arguments, "--lent-object-resources="+strings.Join(texts(lent), ","))
		}
	}
	if requests, _ := o.Values["requests"].(map[string]any); requests["instancetype"] != nil {
		arguments = append(arguments, fmt.Sprintf("--capture-instancetype=%v", requests["instancetype"]))
	}
	if o.Values["templateAPI"] == "External" {
		arguments = append(arguments, "--template-api=External")
	}
	entryPoints, _ := o.Values["entryPoints"].(map[string]any)
	var open []string
	for _, name := range slices.Sorted(maps.Keys(entryPoints)) {
		if entryPoints[name] == "Open" {
			open = append(open, name)
		}
	}
	if len(open) > 0 {
		arguments = append(arguments, "--open-entry-points="+strings.Join(open, ","))
	}
	if readiness["dryRun"] == true {
		arguments = append(arguments, "--readiness-dry-run")
	}
	if kinds, found := readiness["populators"].([]any); found {
		var populators []string
		for _, each := range kinds {
			kind, _ := each.(map[string]any)
			populators = append(populators, fmt.Sprintf("%s.%s.%s/%s", kind["kind"], kind["version"], kind["apiGroup"], kind["resource"]))
		}
		arguments = append(arguments, "--populators="+strings.Join(populators, ","))
	}
	const configurations = "--webhook-configurations="
	also := func(configuration string) {
		i := slices.IndexFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, configurations) })
		arguments[i] += ",mutating/zz-" + prefix + configuration
	}
	if defaulting, _ := o.Values["defaulting"].(map[string]any); defaulting["enabled"] == true {
		also("-defaults")
	}
	if o.APIServerAddress != "" {
		also("-preview")
		arguments = append(arguments, "--api-services="+apiServices, "--apiserver-user="+o.apiServerName())
	}
	return append(arguments, o.certificateNames()...)
}

// certificateNames returns the flag by which the certificate of a manager is valid at ManagerURL.
func (o Options) certificateNames() []string {
	address, err := url.Parse(o.ManagerURL)
	if err != nil || address.Hostname() == "" {
		return nil
	}
	return []string{"--certificate-dns-names=" + address.Hostname()}
}

// ManagerUser returns a user with the permissions of the manager's ServiceAccount. It authenticates by a client certificate instead of a token, which
// makes no difference to RBAC, and does not expire.
func (o Options) ManagerUser(plane *controlplane.Plane) (*controlplane.User, error) {
	o = o.withDefaults()
	name := "system:serviceaccount:" + o.Namespace + ":" + o.prefix() + "-manager"
	return plane.User(name, "system:serviceaccounts", "system:serviceaccounts:"+o.Namespace)
}

// OutsideArgs returns the flags by which the arguments of the chart's pod become those of a manager at ManagerURL.
func (o Options) OutsideArgs() []string {
	return append(o.certificateNames(), "--policy-webhooks-address="+o.ManagerURL)
}

// Manager returns the options of a stencil-manager that serves this release as ManagerUser.
func (o Options) Manager(plane *controlplane.Plane) (manager.Options, error) {
	o = o.withDefaults()
	user, err := o.ManagerUser(plane)
	if err != nil {
		return manager.Options{}, err
	}
	return manager.Options{Kubeconfig: user.Kubeconfig, Namespace: o.Namespace, Args: o.ManagerArgs()}, nil
}

// apiServices are the APIServices of the chart, as flags name them.
const apiServices = "apiservice/v1beta1.subresources.template.kubevirt.io,apiservice/v1alpha1.subresources.template.kubevirt.io"

// APIServerArgs returns the flags that make a stencil-apiserver serve this release, those that the chart gives it in the cluster.
func (o Options) APIServerArgs() []string {
	o = o.withDefaults()
	prefix := o.prefix()
	service := prefix + "-apiserver." + o.Namespace + ".svc"
	return []string{
		"--user=" + o.apiServerName(),
		"--certificate-source=authority",
		"--certificate-authority-namespace=" + o.Namespace,
		"--certificate-authority-secret=" + prefix + "-webhook-ca",
		"--certificate-dns-names=" + service + "," + service + ".cluster.local",
		"--api-services=" + apiServices,
		"--object-resources=" + strings.Join(o.objectResources(), ","),
	}
}

// objectResources are the resources of objects that are created with VirtualMachines.
func (o Options) objectResources() []string {
	values, _ := o.Values["objects"].(map[string]any)
	if listed, found := values["resources"].([]any); found {
		return texts(listed)
	}
	return []string{"secrets", "configmaps", "services"}
}

// APIServerUser returns a user with the rights of stencil-apiserver's ServiceAccount, by a client certificate as ManagerUser.
func (o Options) APIServerUser(plane *controlplane.Plane) (*controlplane.User, error) {
	o = o.withDefaults()
	return plane.User(o.apiServerName(), "system:serviceaccounts", "system:serviceaccounts:"+o.Namespace)
}

func (o Options) apiServerName() string {
	o = o.withDefaults()
	return "system:serviceaccount:" + o.Namespace + ":" + o.prefix() + "-apiserver"
}

// prefix is what the names of the release's objects begin with (stencil.fullname in the chart).
func (o Options) prefix() string {
	if strings.Contains(o.Release, chartName) {
		return o.Release
	}
	return o.Release + "-" + chartName
}
