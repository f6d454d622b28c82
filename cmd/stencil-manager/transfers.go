package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	program "github.com/vmstencil/stencil/internal/server"
	"github.com/vmstencil/stencil/reconcilers"
	"github.com/vmstencil/stencil/reconcilers/transfer"
)

// maximumDisks is the maximum number of disks of a package: more than the 64 that a VirtualMachine can have on its fastest bus are no use.
const maximumDisks = 64

// transferOptions of imports and exports of templates.
type transferOptions struct {
	account, keySecret   string
	image, pullPolicy    string
	pullSecrets          program.List
	cpu, memory, maxSize string
	networks             program.List
	limit, ofNamespace   int
	ingress              transfer.IngressSettings
	ingressAnnotations   string
	examineCaptures      bool
}

func (t *transferOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&t.account, "transfer-account", "",
		"Full name of the service account as which the manager imports and exports templates; it must be permitted to impersonate it. If empty, it does neither.")
	flags.StringVar(&t.keySecret, "transfer-key-secret", "stencil-transfer-key",
		"Secret in the manager's own namespace with the key from which the secrets of movers derive. The manager makes it.")
	flags.StringVar(&t.image, "transfer-image", "", "Image of stencil-mover, which moves the bytes of imports and exports.")
	flags.StringVar(&t.pullPolicy, "transfer-pull-policy", string(corev1.PullIfNotPresent), "Pull policy of that image: Always, IfNotPresent or Never.")
	flags.Var(&t.pullSecrets, "transfer-pull-secrets", "Names, separated by commas, of Secrets to pull that image with, in the namespaces of imports and exports.")
	flags.StringVar(&t.cpu, "transfer-cpu", "2", "Limit of the processor time of a mover.")
	flags.StringVar(&t.memory, "transfer-memory", "192Mi", "Limit of the memory of a mover.")
	flags.StringVar(&t.maxSize, "transfer-max-size", "4Ti", "Maximum size of all disks of a package together.")
	flags.IntVar(&t.limit, "transfer-limit", 8, "Maximum number of imports and exports in progress at a time; others wait for them.")
	flags.IntVar(&t.ofNamespace, "transfer-limit-per-namespace", 2, "Maximum number of imports and exports in progress at a time in one namespace.")
	flags.BoolVar(&t.examineCaptures, "transfer-examine-captures", true, "Examine the disks of captured templates for the condition Sealed, in copies of them.")
	flags.Var(&t.networks, "transfer-networks",
		"Private networks, separated by commas, such as 10.0.0.0/8, in which sources of imports may be. Sources with other addresses that are not public are denied.")
	flags.StringVar(&t.ingress.Domain, "transfer-ingress-domain", "",
		"Domain below which packages are downloaded and uploaded from outside of the cluster, by an Ingress of each. If empty, there are no Ingresses.")
	flags.StringVar(&t.ingress.Class, "transfer-ingress-class", "", "Class of these Ingresses. If empty, it is the default one of the cluster.")
	flags.StringVar(&t.ingress.TLSSecret, "transfer-ingress-tls-secret", "", "Secret with the certificate of these Ingresses, in the namespaces of imports and exports. If empty, the controller uses its own.")
	flags.StringVar(&t.ingressAnnotations, "transfer-ingress-annotations", "", "Annotations of these Ingresses, as a JSON object with values that are strings.")
}

// settings returns what the reconcilers need.
func (t *transferOptions) settings(namespace string) (reconcilers.Transfers, error) {
	parsed := reconcilers.Transfers{Account: t.account, KeySecret: t.keySecret}
	if t.account == "" {
		return parsed, nil
	}
	if t.image == "" {
		return parsed, errors.New("--transfer-image: must be set with --transfer-account")
	}
	quantity := func(flag, text string) (resource.Quantity, error) {
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() <= 0 {
			return q, fmt.Errorf("--%s: must be a positive quantity, not %q", flag, text)
		}
		return q, nil
	}
	cpu, err := quantity("transfer-cpu", t.cpu)
	if err != nil {
		return parsed, err
	}
	memory, err := quantity("transfer-memory", t.memory)
	if err != nil {
		return parsed, err
	}
	size, err := quantity("transfer-max-size", t.maxSize)
	if err != nil {
		return parsed, err
	}
	if t.limit < 1 {
		return parsed, fmt.Errorf("--transfer-limit: must be at least 1, not %d", t.limit)
	}
	if t.ofNamespace < 1 {
		return parsed, fmt.Errorf("--transfer-limit-per-namespace: must be at least 1, not %d", t.ofNamespace)
	}
	networks, err := prefixes("transfer-networks", t.networks)
	if err != nil {
		return parsed, err
	}
	if err := t.parseIngress(); err != nil {
		return parsed, err
	}
	parsed.Settings = transfer.Settings{
		Namespace: namespace, Image: t.image, PullPolicy: corev1.PullPolicy(t.pullPolicy), AllowedNetworks: networks, MaxDisks: maximumDisks, MaxBytes: size.Value(), Limit: t.limit, LimitPerNamespace: t.ofNamespace, Ingress: t.ingress,
		ExamineCaptures: t.examineCaptures,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory},
		},
	}
	for _, name := range t.pullSecrets {
		parsed.Settings.PullSecrets = append(parsed.Settings.PullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return parsed, nil
}

// longestDomain lets a host name with the label of a transfer, which has 43 characters at most, and a period stay within the 253 of a name.
const longestDomain = 253 - 44

// parseIngress completes the settings of Ingresses.
func (t *transferOptions) parseIngress() error {
	if t.ingress.Domain == "" {
		return nil
	}
	problems := validation.IsDNS1123Subdomain(t.ingress.Domain)
	if len(t.ingress.Domain) > longestDomain {
		problems = append(problems, fmt.Sprintf("must be no more than %d characters", longestDomain))
	}
	if len(problems) > 0 {
		return fmt.Errorf("--transfer-ingress-domain: %s", strings.Join(problems, "; "))
	}
	if t.ingressAnnotations == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(t.ingressAnnotations), &t.ingress.Annotations); err != nil {
		return fmt.Errorf("--transfer-ingress-annotations: must be a JSON object with values that are strings: %w", err)
	}
	return nil
}

// prefixes parses the networks of a flag.
func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		networks = append(networks, network)
	}
	return networks, nil
}
