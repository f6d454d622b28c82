package conversion

import (
	"encoding/xml"
	"strings"
)

// Namespace of the environment file (DSP0243, OVF environment).
const environmentNamespace = "http://schemas.dmtf.org/ovf/environment/1"

// environmentLabel is the label of the CD with the environment file, by which cloud-init recognizes it.
const environmentLabel = "OVF-TRANSPORT"

// cloudInitKeys are the properties of cloud-init's data source for OVF that user data can express.
var cloudInitKeys = map[string]bool{"hostname": true, "password": true, "public-keys": true}

func (s *system) isCloudInit(p *property) bool { return cloudInitKeys[p.key] }

// isOwnName reports whether cloud-init sets the property without it: a host name without a default is the name of the VirtualMachine.
func isOwnName(p *property) bool { return p.key == "hostname" && p.value == "" }

// delivery resolves DeliveryAuto.
func (s *system) delivery() Delivery {
	if s.options.Delivery != DeliveryAuto {
		return s.options.Delivery
	}
	all := s.all()
	cloudInit := false
	for i := range all {
		switch {
		case !all[i].UserConfigurable:
		case s.isCloudInit(&all[i]):
			cloudInit = true
		default:
			return DeliveryEnvironment
		}
	}
	switch {
	case cloudInit:
		return DeliveryCloudInit
	case len(all) > 0:
		return DeliveryEnvironment
	}
	return DeliveryNone
}

// deliver adds the volume by which the guest receives its properties.
func (s *system) deliver() {
	all := s.all()
	for i := range all {
		all[i].parameter = s.byProperty[all[i].key]
	}
	switch s.delivery() {
	case DeliveryEnvironment:
		if len(all) > 0 {
			s.environment(all)
		}
	case DeliveryCloudInit:
		s.cloudInit(all)
	default:
		for _, p := range all {
			s.note(ActionDropped, "property "+p.key, "properties are not delivered")
		}
	}
}

// environment adds a CD with ovf-env.xml, from a Secret of the VirtualMachine.
func (s *system) environment(all []property) {
	const name = "ovf-env"
	var b strings.Builder
	b.WriteString(xml.Header)
	b.WriteString(`<Environment xmlns="` + environmentNamespace + `" xmlns:oe="` + environmentNamespace + `" oe:id="` + attribute(s.source.ID) + "\">\n")
	b.WriteString("  <PlatformSection>\n    <Kind>KubeVirt</Kind>\n    <Version>1</Version>\n    <Vendor>KubeVirt</Vendor>\n    <Locale>en</Locale>\n  </PlatformSection>\n  <PropertySection>\n")
	for _, p := range all {
		value := attribute(p.value)
		if p.Password && p.parameter == "" && p.value != "" {
			s.note(ActionWarning, "property "+p.key, "the descriptor has a fixed password; it stands in the template, where users who may read the template can read it")
		}
		if p.parameter != "" {
			value = "${" + p.parameter + "}"
		}
		b.WriteString(`    <Property oe:key="` + attribute(p.key) + `" oe:value="` + value + "\"/>\n")
	}
	b.WriteString("  </PropertySection>\n</Environment>\n")
	s.objects = append(s.objects, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "${" + ParameterName + "}-" + name},
		"stringData": map[string]any{"ovf-env.xml": b.String()},
	})
	s.volumeNames = append(s.volumeNames, name)
	s.disks = append(s.disks, map[string]any{"name": name, "cdrom": map[string]any{"bus": BusSATA}})
	s.volumes = append(s.volumes, map[string]any{"name": name, "secret": map[string]any{"secretName": "${" + ParameterName + "}-" + name, "volumeLabel": environmentLabel}})
	s.note(ActionChanged, "properties", "a CD with ovf-env.xml and the label %s, from the Secret ${NAME}-%s that belongs to the VirtualMachine", environmentLabel, name)
}

// attribute writes text of the descriptor as an XML attribute in the language of templates.
func attribute(text string) string {
	var b strings.Builder
	// Writing to a builder does not fail.
	_ = xml.EscapeText(&b, []byte(text))
	return escape(b.String())
}

// cloudInit adds user data that sets what cloud-init would read from the properties.
func (s *system) cloudInit(all []property) {
	lines := []string{"#cloud-config"}
	for i := range all {
		p := &all[i]
		value := "${" + p.parameter + "|yaml}"
		switch {
		case isOwnName(p):
			s.note(ActionChanged, "property "+p.key, "the host name is the name of the VirtualMachine")
			continue
		case p.parameter == "":
			s.note(ActionDropped, "property "+p.key, "the user data of cloud-init has only hostname, password and public-keys that users configure")
			continue
		case p.key == "hostname":
			lines = append(lines, "hostname: "+value)
		case p.key == "password":
			lines = append(lines, "password: "+value, "chpasswd: {expire: false}", "ssh_pwauth: true")
		default:
			lines = append(lines, "ssh_authorized_keys:", "- "+value)
		}
	}
	if len(lines) == 1 {
		return
	}
	const name = "cloudinit"
	s.volumeNames = append(s.volumeNames, name)
	// The volume needs a disk; KubeVirt's cloud-init data is found on any bus.
	s.disks = append(s.disks, map[string]any{"name": name, "cdrom": map[string]any{"bus": BusSATA}})
	s.volumes = append(s.volumes, map[string]any{"name": name, "cloudInitNoCloud": map[string]any{"userData": strings.Join(lines, "\n") + "\n"}})
	s.secretize = true
	s.note(ActionChanged, "properties", "user data of cloud-init, in the Secret ${NAME}-%s that belongs to the VirtualMachine", name)
}
