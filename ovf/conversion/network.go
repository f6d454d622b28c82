package conversion

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
)

// patternNetwork matches what NAME and NAMESPACE/NAME of a NetworkAttachmentDefinition consist of. It is short, because the patterns of a template have a
// limit; KubeVirt checks the rest.
const patternNetwork = `[a-z0-9][-./a-z0-9]*`

// macAddress matches MAC addresses with colons, with the hyphens of Hyper-V, and without separators, as XenCenter writes them.
var macAddress = regexp.MustCompile(`^([0-9A-Fa-f]{2}[:-]?){5}[0-9A-Fa-f]{2}$`)

// adapters converts network adapters. The networks that they are connected to become the network of pods, a given one, or parameters.
func (s *system) adapters() {
	pod := ""
	for name, target := range s.options.Networks {
		if target == PodNetwork {
			pod = name
		}
	}
	parameters := map[string]string{}
	podUsed := false
	for i := range s.items {
		item := &s.items[i]
		if item.Type != ovf.ResourceEthernet {
			continue
		}
		network := ""
		if len(item.Connections) > 0 {
			network = item.Connections[0]
		}
		target, mapped := s.options.Networks[network]
		if !mapped && pod == "" && !podUsed {
			pod, target = network, PodNetwork
		}
		name := networkName(len(s.networks))
		adapter := map[string]any{"name": name, "model": s.model(item)}
		switch {
		case target == PodNetwork && !podUsed:
			podUsed = true
			adapter["masquerade"] = map[string]any{}
			s.networks = append(s.networks, map[string]any{"name": name, "pod": map[string]any{}})
			s.note(ActionChanged, "network "+network, "the network of pods (masquerade), for %s", title(item))
		default:
			if target == "" || target == PodNetwork {
				target = s.network(network, parameters)
			}
			adapter["bridge"] = map[string]any{}
			s.networks = append(s.networks, map[string]any{"name": name, "multus": map[string]any{"networkName": target}})
			s.note(action(target), "network "+network, "NetworkAttachmentDefinition %s (bridge), for %s", target, title(item))
		}
		s.interfaces = append(s.interfaces, adapter)
		if macAddress.MatchString(item.Address) {
			s.note(ActionDropped, title(item), "its MAC address; each VirtualMachine gets one of its own")
		}
	}
}

func action(target string) Action {
	if strings.HasPrefix(target, "${") {
		return ActionParameter
	}
	return ActionChanged
}

// networkName returns the name of a network in the VirtualMachine.
func networkName(number int) string {
	if number == 0 {
		return "default"
	}
	return fmt.Sprintf("net%d", number)
}

// network returns a reference to the parameter of a network, which it declares once.
func (s *system) network(name string, parameters map[string]string) string {
	if reference, found := parameters[name]; found {
		return reference
	}
	description := "NetworkAttachmentDefinition for the network " + name
	if i := slices.IndexFunc(s.envelope.Networks, func(n ovf.Network) bool { return n.Name == name }); i >= 0 && s.envelope.Networks[i].Description != "" {
		description += " (" + s.envelope.Networks[i].Description + ")"
	}
	parameters[name] = "${" + s.declare(v1beta1.Parameter{
		Name: parameterName("NETWORK_" + name), DisplayName: "Network " + name, Description: description + ": NAME or NAMESPACE/NAME", Required: true, Pattern: patternNetwork,
	}) + "}"
	return parameters[name]
}

// modelNames are the models of KubeVirt by their names in descriptors. oVirt has numbers: https://github.com/oVirt/ovirt-engine, enumeration
// VmInterfaceType.
var modelNames = map[string]string{
	"e1000": "e1000", "e1000e": "e1000e", "igb": "igb", "ne2k_pci": "ne2k_pci", "rtl8139": "rtl8139", "0": "rtl8139", "1": "rtl8139", "2": "e1000", "3": "virtio",
}

// model chooses the model of an adapter: the first one of the subtype that KubeVirt has, because a subtype can list several. Linux has drivers of
// virtio everywhere; other guests may have none.
func (s *system) model(item *ovf.Item) string {
	for _, name := range strings.Fields(strings.ToLower(item.SubType)) {
		switch {
		case strings.Contains(name, "virtio"):
			return "virtio"
		case strings.HasPrefix(name, "pcnet"):
			return "pcnet"
		case modelNames[name] != "":
			return modelNames[name]
		}
	}
	model := "e1000e"
	if s.os.family == familyLinux {
		model = "virtio"
	}
	s.note(ActionChanged, title(item), "KubeVirt has no model %s; it is %s", orNone(item.SubType), model)
	return model
}
