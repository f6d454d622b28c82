package identity

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// maximumText is the maximum length of a text that is decoded, in bytes: far more than KubeVirt accepts.
const maximumText = 256 << 10

// eachDocument visits cloud-init's texts in volumes, in plain text.
func (i *Identity) eachDocument(guest map[string]any, visit func(path, text string, network bool)) {
	for n, volume := range machine.MapsAt(guest, "volumes") {
		for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			from := machine.MapAt(volume, source)
			for _, key := range []string{"userData", "networkData"} {
				path := fmt.Sprintf("%s.volumes[%d].%s.%s", guestPath, n, source, key)
				if text := machine.StringAt(from, key); text != "" {
					visit(path, text, key == "networkData")
				}
				if decoded, err := base64.StdEncoding.DecodeString(machine.StringAt(from, key+"Base64")); err == nil && len(decoded) > 0 {
					visit(path+"Base64", string(decoded), key == "networkData")
				}
			}
		}
	}
}

// documents reports the identity of the VM in data for the guest.
func (i *Identity) documents(guest map[string]any) {
	i.eachDocument(guest, func(path, text string, network bool) {
		if network {
			for _, found := range staticAddresses(text) {
				i.kept(path, found.path+": a static address")
			}
		} else {
			config := decoded(text)
			for _, key := range []string{"hostname", "fqdn"} {
				if config != nil && config[key] != nil {
					i.kept(path, key)
				}
			}
			if i.isNamed(text) && config["hostname"] == nil && config["fqdn"] == nil {
				i.kept(path, "the name of the VM")
			}
			if own := i.holds(text); own != "" {
				i.kept(path, own)
			}
		}
		if network && len(macs(text)) > 0 {
			i.kept(path, aMAC)
		}
	})
}

// decoded returns a YAML document that is a mapping; nil for any other text.
func decoded(text string) map[string]any {
	var document map[string]any
	if len(text) > maximumText || yaml.Unmarshal([]byte(text), &document) != nil {
		return nil
	}
	return document
}

// address is a static address in network data.
type address struct{ path, value string }

// staticAddresses returns the static addresses in network data of version 1 or 2. Addresses of gateways, routes and name servers are left out.
func staticAddresses(text string) []address {
	var found []address
	var walk func(value any, path string)
	walk = func(value any, path string) {
		switch value := value.(type) {
		case []any:
			for n, item := range value {
				walk(item, fmt.Sprintf("%s[%d]", path, n))
			}
		case map[string]any:
			if value["type"] == "nameserver" {
				return
			}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				switch key {
				case "nameservers", "routes":
				case "address", "addresses":
					if text := fmt.Sprint(value[key]); len(ips(text)) > 0 {
						found = append(found, address{strings.TrimPrefix(path+"."+key, "."), text})
					}
				default:
					walk(value[key], path+"."+key)
				}
			}
		}
	}
	walk(any(decoded(text)), "")
	return found
}
