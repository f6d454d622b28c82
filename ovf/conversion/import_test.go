package conversion_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
)

// envelope returns a descriptor of one system with this content, in addition to a processor, memory and the items.
func envelope(sections, items string) string {
	return `<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:vmw="http://www.vmware.com/schema/ovf">
<References><File ovf:id="f" ovf:href="f.vmdk"/></References>
<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1073741825"/><Disk ovf:diskId="delta" ovf:capacity="1" ovf:parentRef="d"/><Disk ovf:diskId="huge" ovf:capacity="9223372036854775807"/><Disk ovf:diskId="none" ovf:capacity="0"/></DiskSection>
<NetworkSection><Network ovf:name="a"/><Network ovf:name="b"/></NetworkSection>
<DeploymentOptionSection><Configuration ovf:id="small"/><Configuration ovf:id="large"/></DeploymentOptionSection>
<VirtualSystem ovf:id="vm">` + sections + `<VirtualHardwareSection>
<Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>6</rasd:VirtualQuantity></Item>
` + items + `</VirtualHardwareSection></VirtualSystem></Envelope>`
}

// item returns an item with fields, which are names and values in turn.
func item(id, kind int, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<Item><rasd:InstanceID>%d</rasd:InstanceID><rasd:ResourceType>%d</rasd:ResourceType>", id, kind)
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&b, "<rasd:%[1]s>%[2]s</rasd:%[1]s>", fields[i], fields[i+1])
	}
	return b.String() + "</Item>"
}

var memory = item(2, 4, "AllocationUnits", "MegaBytes", "VirtualQuantity", "512")

func nic(id int, network, model string) string {
	return item(id, 10, "Connection", network, "ResourceSubType", model)
}

func disk(id int, disk string) string { return item(id, 17, "HostResource", "ovf:/disk/"+disk) }

func importText(t testing.TB, text string, options conversion.Options) *conversion.SystemPlan {
	t.Helper()
	plan, err := conversion.Import(decode(t, text), options)
	if err != nil {
		t.Fatal(err)
	}
	compile(t, plan.Systems[0].Template)
	return &plan.Systems[0]
}

func TestWhatCannotBeImported(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		options conversion.Options
		want    string
	}{
		"no memory":                 {text: envelope("", ""), want: `converting the virtual system vm: it declares no memory in configuration "small": choose another one, or name an instance type, which has it (--instancetype, spec.instancetype)`},
		"little memory":             {text: envelope("", item(2, 4, "VirtualQuantity", "512", "AllocationUnits", "byte")), want: `converting the virtual system vm: it has 512 bytes of memory; want at least 1 MiB`},
		"too much memory":           {text: envelope("", item(2, 4, "VirtualQuantity", "9007199254740992", "AllocationUnits", "KB")), want: "converting the virtual system vm: the item memory 2 (line 8): 9007199254740992 KB is more than 2^63-1 bytes"},
		"memory of two items":       {text: envelope("", item(2, 4, "VirtualQuantity", "9223372036854775807")+item(3, 4, "VirtualQuantity", "1")), want: "converting the virtual system vm: it has more than 2^63-1 bytes of memory"},
		"memory in hertz":           {text: envelope("", item(2, 4, "VirtualQuantity", "5", "AllocationUnits", "hertz")), want: `converting the virtual system vm: the item memory 2 (line 8): the unit "hertz" is not supported; use a unit such as byte or byte * 2^30`},
		"too many processors":       {text: envelope("", item(3, 3, "VirtualQuantity", "18446744073709551615")), want: "converting the virtual system vm: it has more than 2^32-1 processors"},
		"a difference":              {text: envelope("", memory+disk(3, "delta")), want: "converting the virtual system vm: the disk delta is a difference to d; export it as a whole"},
		"a huge disk":               {text: envelope("", memory+disk(3, "huge")), want: "converting the virtual system vm: the disk huge has 9223372036854775807 bytes; want at most 2^62"},
		"an empty disk of no size":  {text: envelope("", memory+disk(3, "none")), want: "converting the virtual system vm: the disk none is empty and has no capacity"},
		"very many properties":      {text: envelope("<ProductSection>"+properties(256, `ovf:userConfigurable="true"`)+"</ProductSection>", memory), want: "converting the virtual system vm: it needs 257 parameters, and a template has at most 256; choose another delivery of its properties"},
		"a large annotation":        {text: envelope(`<ProductSection><Property ovf:key="a" ovf:value="`+strings.Repeat("x", 600<<10)+`"/></ProductSection>`, memory), want: "converting the virtual system vm: its template has 601 KiB, and at most 512 are accepted"},
		"an unknown option":         {text: envelope("", memory), options: conversion.Options{Configuration: "huge"}, want: `converting the OVF: there is no deployment option "huge"; the package has ["small" "large"]`},
		"an unknown network":        {text: envelope("", memory), options: conversion.Options{Networks: map[string]string{"c": "lan"}}, want: `converting the OVF: there is no network "c"; the package has ["a" "b"]`},
		"two networks of pods":      {text: envelope("", memory), options: conversion.Options{Networks: map[string]string{"a": "pod", "b": "pod"}}, want: "converting the OVF: KubeVirt has one network of pods, and several networks are mapped to it"},
		"a network that is no name": {text: envelope("", memory), options: conversion.Options{Networks: map[string]string{"a": "${NAME}"}}, want: `converting the OVF: the network "a" is mapped to "${NAME}"; want pod, NAME or NAMESPACE/NAME`},
		"a class that is no name":   {text: envelope("", memory), options: conversion.Options{StorageClass: "Fast!"}, want: `converting the OVF: the storage class "Fast!" is not the name of an object; want lower case letters, digits, hyphens and dots`},
		"a size that is no name":    {text: envelope("", memory), options: conversion.Options{Instancetype: "Large One"}, want: `converting the OVF: the instance type "Large One" is not the name of an object; want lower case letters, digits, hyphens and dots`},
		"an unknown bus":            {text: envelope("", memory), options: conversion.Options{DiskBus: "ide"}, want: `converting the OVF: there is no bus "ide"; want sata, scsi or virtio`},
		"an unknown delivery":       {text: envelope("", memory), options: conversion.Options{Delivery: "Mail"}, want: `converting the OVF: there is no delivery "Mail"; want Environment, CloudInit or None`},
		"a template of no package":  {text: envelope("", memory), options: conversion.Options{Template: []byte("{}")}, want: "converting the OVF: the package carries no template, but one is given"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := conversion.Import(decode(t, tc.text), tc.options)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func properties(n int, attributes string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<Property ovf:key="p%d" ovf:type="string" %s/>`, i, attributes)
	}
	return b.String()
}

// vm returns the spec.template.spec of the VirtualMachine that a plan's template renders.
func guest(t testing.TB, plan *conversion.SystemPlan) map[string]any {
	t.Helper()
	rendered := render(t, plan.Template, values(plan.Template)).Object()
	spec := rendered["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	return spec
}

func TestAdaptersAndNetworks(t *testing.T) {
	for name, tc := range map[string]struct {
		items   string
		options conversion.Options
		want    string
	}{
		"without adapters":  {"", conversion.Options{}, `null null`},
		"one":               {nic(3, "a", "E1000"), conversion.Options{}, `[{"masquerade":{},"model":"e1000","name":"default"}] [{"name":"default","pod":{}}]`},
		"without a network": {item(3, 10), conversion.Options{}, `[{"masquerade":{},"model":"e1000e","name":"default"}] [{"name":"default","pod":{}}]`},
		"two of a network":  {nic(3, "a", "E1000e") + nic(4, "a", "PCNet32"), conversion.Options{}, `[{"masquerade":{},"model":"e1000e","name":"default"},{"bridge":{},"model":"pcnet","name":"net1"}] [{"name":"default","pod":{}},{"multus":{"networkName":"shop/lan"},"name":"net1"}]`},
		"the second is the network of pods": {nic(3, "a", "virtio") + nic(4, "b", "virtio"), conversion.Options{Networks: map[string]string{"b": conversion.PodNetwork}},
			`[{"bridge":{},"model":"virtio","name":"default"},{"masquerade":{},"model":"virtio","name":"net1"}] [{"multus":{"networkName":"shop/lan"},"name":"default"},{"name":"net1","pod":{}}]`},
		"given networks": {nic(3, "a", "virtio") + nic(4, "b", "virtio"), conversion.Options{Networks: map[string]string{"a": "net/x", "b": "y"}},
			`[{"bridge":{},"model":"virtio","name":"default"},{"bridge":{},"model":"virtio","name":"net1"}] [{"multus":{"networkName":"net/x"},"name":"default"},{"multus":{"networkName":"y"},"name":"net1"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			plan := importText(t, envelope("", memory+tc.items), tc.options)
			spec := guest(t, plan)
			devices := spec["domain"].(map[string]any)["devices"].(map[string]any)
			got, err := json.Marshal([]any{devices["interfaces"], spec["networks"]})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("["+strings.Replace(tc.want, " ", ",", 1)+"]", string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if raw := string(plan.Template.Spec.VirtualMachine.Raw); strings.Contains(raw, "null") {
				t.Errorf("an empty list is null: %s", raw)
			}
			if off := devices["autoattachPodInterface"] == false; off != (tc.items == "") {
				t.Errorf("autoattachPodInterface: %v", devices["autoattachPodInterface"])
			}
		})
	}
}

// TestProcessorsWithoutAQuantity declares sockets of four cores, and not how many.
func TestProcessorsWithoutAQuantity(t *testing.T) {
	text := strings.Replace(envelope("", memory), "<rasd:VirtualQuantity>6</rasd:VirtualQuantity>", "<vmw:CoresPerSocket>4</vmw:CoresPerSocket>", 1)
	domain := guest(t, importText(t, text, conversion.Options{}))["domain"].(map[string]any)
	if got, _ := json.Marshal(domain["cpu"]); string(got) != `{"cores":1,"sockets":1}` {
		t.Errorf("processors %s", got)
	}
}

func TestMemoryOfNoUnit(t *testing.T) {
	for amount, want := range map[string]string{"512": "512Mi", "1073741824": "1Gi"} {
		plan := importText(t, envelope("", item(2, 4, "VirtualQuantity", amount)), conversion.Options{})
		if got := guest(t, plan)["domain"].(map[string]any)["memory"].(map[string]any)["guest"]; got != want {
			t.Errorf("%s is %v, want %s", amount, got, want)
		}
	}
}

func TestProcessors(t *testing.T) {
	for cores, want := range map[int]string{0: `{"cores":1,"sockets":6}`, 1: `{"cores":1,"sockets":6}`, 2: `{"cores":2,"sockets":3}`, 4: `{"cores":1,"sockets":6}`, 6: `{"cores":6,"sockets":1}`, 12: `{"cores":1,"sockets":6}`} {
		text := strings.Replace(envelope("", memory), "<rasd:VirtualQuantity>6", fmt.Sprintf("<vmw:CoresPerSocket>%d</vmw:CoresPerSocket><rasd:VirtualQuantity>6", cores), 1)
		plan := importText(t, text, conversion.Options{})
		got, err := json.Marshal(guest(t, plan)["domain"].(map[string]any)["cpu"])
		if err != nil || string(got) != want {
			t.Errorf("%d cores for each socket: %s, want %s", cores, got, want)
		}
	}
}

func TestBusesOfDisks(t *testing.T) {
	for name, tc := range map[string]struct {
		controller, bus, want string
	}{
		"IDE":                          {item(3, 5), "", "sata"},
		"SATA":                         {item(3, 20, "ResourceSubType", "AHCI"), "", "sata"},
		"NVMe":                         {item(3, 20, "ResourceSubType", "vmware.nvme.controller"), "", "sata"},
		"LSI":                          {item(3, 6, "ResourceSubType", "lsilogic"), "", "sata"},
		"virtio-scsi":                  {item(3, 6, "ResourceSubType", "VirtioSCSI"), "", "scsi"},
		"none":                         {"", "", "sata"},
		"IDE, but virtio is requested": {item(3, 5), "virtio", "virtio"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := importText(t, envelope("", memory+tc.controller+item(4, 17, "HostResource", "/disk/d", "Parent", "3")), conversion.Options{DiskBus: tc.bus, StorageClass: "fast"})
			disks := guest(t, plan)["domain"].(map[string]any)["devices"].(map[string]any)["disks"].([]any)
			if got := disks[0].(map[string]any)["disk"].(map[string]any)["bus"]; got != tc.want {
				t.Errorf("the bus is %v", got)
			}
			if text := string(plan.Template.Spec.VirtualMachine.Raw); !strings.Contains(text, `"storage":"1025Mi"`) || !strings.Contains(text, `"storageClassName":"fast"`) {
				t.Errorf("the disk has not the size, rounded up to MiB, and the class: %s", text)
			}
		})
	}
}

// TestTextOfDescriptorsStaysText checks that no text of a descriptor becomes a placeholder, XML or a key.
func TestTextOfDescriptorsStaysText(t *testing.T) {
	const hostile = `${NAME} ${{NAME}} $${NAME} &lt;/Property&gt; &quot;&apos; &amp;amp; é`
	text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&").Replace(hostile)
	plan := importText(t, envelope(`<Name>`+hostile+`</Name><AnnotationSection><Annotation>`+hostile+`</Annotation></AnnotationSection><EulaSection><License>`+hostile+`</License></EulaSection>
<ProductSection ovf:class="`+hostile+`"><Property ovf:key="fixed" ovf:type="string" ovf:value="`+hostile+`"/><Property ovf:key="user" ovf:type="string" ovf:userConfigurable="true" ovf:value="`+hostile+`"><Label>`+hostile+`</Label></Property></ProductSection>`,
		memory+nic(3, hostile, hostile)+nic(4, "b"+hostile, "x")), conversion.Options{Networks: nil})
	rendered := render(t, plan.Template, values(plan.Template))
	var secrets []struct{ StringData map[string]string }
	if err := json.Unmarshal(rendered.Objects(), &secrets); err != nil {
		t.Fatal(err)
	}
	var environment struct {
		Property []struct {
			Key   string `xml:"key,attr"`
			Value string `xml:"value,attr"`
		} `xml:"PropertySection>Property"`
	}
	if err := xml.Unmarshal([]byte(secrets[0].StringData["ovf-env.xml"]), &environment); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range environment.Property {
		got[p.Key] = p.Value
	}
	if diff := cmp.Diff(map[string]string{text + ".fixed": text, text + ".user": ""}, got); diff != "" {
		t.Errorf("the environment (-want +got):\n%s", diff)
	}
	if _, err := compile(t, plan.Template).Bind(map[string]string{"NAME": "a", "ACCEPT_EULA": "yes", "NETWORK_B_NAME_NAME_NAME_PROPERTY_AMP": "lan", parameterOf(t, plan, "USER"): `"/><Property oe:key="x`}); err == nil {
		t.Error("a value that ends the attribute is accepted")
	}
}

func parameterOf(t *testing.T, plan *conversion.SystemPlan, suffix string) string {
	t.Helper()
	for _, p := range plan.Template.Spec.Parameters {
		if strings.HasSuffix(p.Name, suffix) {
			return p.Name
		}
	}
	t.Fatalf("no parameter ends in %s", suffix)
	return ""
}

func TestPropertiesBecomeParameters(t *testing.T) {
	one := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		attributes string
		want       v1beta1.Parameter
	}{
		"text":                     {`ovf:type="string" ovf:value="x"`, v1beta1.Parameter{Value: "x", Pattern: `[^<&"']*`}},
		"a length":                 {`ovf:type="string" ovf:qualifiers="MinLen(2),MaxLen(9)"`, v1beta1.Parameter{Pattern: `[^<&"']{2,9}`, Required: true}},
		"a least length":           {`ovf:type="string" ovf:qualifiers="MinLen(2)"`, v1beta1.Parameter{Pattern: `[^<&"']{2,}`, Required: true}},
		"a length beyond RE2":      {`ovf:type="string" ovf:qualifiers="MaxLen(65535)"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"a contradictory length":   {`ovf:type="string" ovf:qualifiers="MinLen(5) MaxLen(1)"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"values":                   {`ovf:type="string" ovf:qualifiers='ValueMap{"a b","c,d", e}' ovf:value="c,d"`, v1beta1.Parameter{Enum: []string{"a b", "c,d", "e"}, Value: "c,d"}},
		"values, and none":         {`ovf:type="string" ovf:qualifiers='ValueMap{"","UTC","Europe/Berlin"}' ovf:value="UTC"`, v1beta1.Parameter{Enum: []string{"UTC", "Europe/Berlin"}, Value: "UTC"}},
		"only the empty value":     {`ovf:type="string" ovf:qualifiers='ValueMap{""}'`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"one":                      {`ovf:type="boolean" ovf:value="1"`, v1beta1.Parameter{Type: "bool", Value: "true"}},
		"two lines":                {`ovf:type="string" ovf:value="a&#10;b"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"a default of no value":    {`ovf:type="string" ovf:qualifiers='ValueMap{"a"}' ovf:value="b"`, v1beta1.Parameter{Enum: []string{"a"}}},
		"values of XML":            {`ovf:type="string" ovf:qualifiers='ValueMap{"a&amp;b"}'`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"an apostrophe":            {`ovf:type="string" ovf:value="it's"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"values in apostrophes":    {`ovf:type="string" ovf:qualifiers="ValueMap{'a b','c'}" ovf:value="c"`, v1beta1.Parameter{Enum: []string{"a b", "c"}, Value: "c"}},
		"a next line":              {`ovf:type="string" ovf:value="a&#x85;b"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"a byte order mark":        {`ovf:type="string" ovf:value="a&#xfeff;b"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"values of two lines":      {`ovf:type="string" ovf:qualifiers="ValueMap{&quot;a&#10;b&quot;}"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"a default of XML":         {`ovf:type="string" ovf:value="a&lt;b"`, v1beta1.Parameter{Pattern: `[^<&"']*`}},
		"true":                     {`ovf:type="boolean" ovf:value="True"`, v1beta1.Parameter{Type: "bool", Value: "true"}},
		"neither true nor false":   {`ovf:type="boolean" ovf:value="maybe"`, v1beta1.Parameter{Type: "bool", Value: "false"}},
		"a small integer":          {`ovf:type="uint8" ovf:value="255"`, v1beta1.Parameter{Type: "int", Minimum: one(0), Maximum: one(255), Value: "255"}},
		"a signed integer":         {`ovf:type="sint16"`, v1beta1.Parameter{Type: "int", Minimum: one(-32768), Maximum: one(32767)}},
		"a large integer":          {`ovf:type="uint64"`, v1beta1.Parameter{Type: "int", Minimum: one(0)}},
		"a large signed integer":   {`ovf:type="sint64"`, v1beta1.Parameter{Type: "int"}},
		"VMware's integer":         {`ovf:type="int" ovf:qualifiers="MinValue(1) MaxValue(9)" ovf:value="10"`, v1beta1.Parameter{Type: "int", Minimum: one(1), Maximum: one(9)}},
		"integers":                 {`ovf:type="uint8" ovf:qualifiers='ValueMap{"1","2"}' ovf:value="2"`, v1beta1.Parameter{Type: "int", Minimum: one(0), Maximum: one(255), Enum: []string{"1", "2"}, Value: "2"}},
		"an empty range":           {`ovf:type="uint8" ovf:qualifiers="MinValue(9) MaxValue(1)"`, v1beta1.Parameter{Type: "int"}},
		"integers beyond the type": {`ovf:type="uint8" ovf:qualifiers='ValueMap{"01","2","2","300"}'`, v1beta1.Parameter{Type: "int", Minimum: one(0), Maximum: one(255), Enum: []string{"2"}}},
		"a password of a number":   {`ovf:type="real32" ovf:password="true"`, v1beta1.Parameter{Pattern: `-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`, Sensitive: true}},
		"a very long password":     {`ovf:type="password" ovf:qualifiers="MinLen(300)"`, v1beta1.Parameter{Pattern: `[^<&"']{300,}`, Required: true, Sensitive: true}},
		"a number":                 {`ovf:type="real32" ovf:value="-1.5e3"`, v1beta1.Parameter{Pattern: `-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`, Value: "-1.5e3"}},
		"a password":               {`ovf:type="string" ovf:password="true" ovf:value="secret"`, v1beta1.Parameter{Pattern: `[^<&"']*`, Sensitive: true, Generate: "expression", From: "[a-zA-Z0-9]{20}"}},
		"a short password":         {`ovf:type="password" ovf:qualifiers="MaxLen(8)"`, v1beta1.Parameter{Pattern: `[^<&"']{0,8}`, Sensitive: true, Generate: "expression", From: "[a-zA-Z0-9]{8}"}},
		"a long password":          {`ovf:type="password" ovf:qualifiers="MinLen(30)"`, v1beta1.Parameter{Pattern: `[^<&"']{30,}`, Required: true, Sensitive: true, Generate: "expression", From: "[a-zA-Z0-9]{30}"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := importText(t, envelope(`<ProductSection><Property ovf:key="p-1" ovf:userConfigurable="true" `+tc.attributes+`/></ProductSection>`, memory), conversion.Options{})
			tc.want.Name = "P_1"
			if diff := cmp.Diff(tc.want, plan.Template.Spec.Parameters[1]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			given := values(plan.Template)
			if strings.Contains(tc.want.Pattern, "300") {
				given["P_1"] = strings.Repeat("x", 300)
			}
			render(t, plan.Template, given)
		})
	}
}

// TestLargestPatterns imports as many networks as parameters fit, and the longest text.
func TestLargestPatterns(t *testing.T) {
	items := memory
	for i := range 254 {
		items += nic(10+i, fmt.Sprintf("n%d", i), "virtio")
	}
	plan := importText(t, envelope(`<ProductSection><Property ovf:key="a" ovf:type="string" ovf:userConfigurable="true" ovf:qualifiers="MaxLen(1000)"/><Property ovf:key="b" ovf:type="string" ovf:userConfigurable="true" ovf:qualifiers="MaxLen(1)"/></ProductSection>`, items), conversion.Options{})
	if n := len(plan.Template.Spec.Parameters); n != 256 {
		t.Errorf("%d parameters", n)
	}
	if pattern := plan.Template.Spec.Parameters[2].Pattern; pattern != `[^<&"']*` {
		t.Errorf("the pattern of b is %s", pattern)
	}
}

func TestDeliveriesOfProperties(t *testing.T) {
	sections := `<ProductSection><Property ovf:key="hostname" ovf:type="string" ovf:userConfigurable="true"/><Property ovf:key="password" ovf:type="string" ovf:password="true" ovf:userConfigurable="true"/><Property ovf:key="other" ovf:type="string" ovf:userConfigurable="true"/><Property ovf:key="fixed" ovf:password="true" ovf:value="1"/></ProductSection>`
	for delivery, want := range map[conversion.Delivery]struct {
		parameters []string
		volume     string
		notes      []string
	}{
		conversion.DeliveryAuto: {[]string{"NAME", "HOSTNAME", "PASSWORD", "OTHER"}, "ovf-env", []string{
			"warning: property fixed: the descriptor has a fixed password; it stands in the template, where users who may read the template can read it"}},
		conversion.DeliveryCloudInit: {[]string{"NAME", "PASSWORD"}, "cloudinit", []string{
			"changed: property hostname: the host name is the name of the VirtualMachine",
			"dropped: property other: the user data of cloud-init has only hostname, password and public-keys that users configure"}},
		conversion.DeliveryNone: {[]string{"NAME"}, "", []string{"dropped: property other: properties are not delivered"}},
	} {
		t.Run(string(delivery), func(t *testing.T) {
			plan := importText(t, envelope(sections, memory), conversion.Options{Delivery: delivery})
			var names []string
			for _, p := range plan.Template.Spec.Parameters {
				names = append(names, p.Name)
			}
			if diff := cmp.Diff(want.parameters, names); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			volumes, _ := guest(t, plan)["volumes"].([]any)
			if (len(volumes) > 0) != (want.volume != "") || len(volumes) > 0 && volumes[0].(map[string]any)["name"] != want.volume {
				t.Errorf("volumes %v", volumes)
			}
			for _, note := range want.notes {
				if !slices.ContainsFunc(plan.Notes, func(n conversion.Note) bool { return n.String() == note }) {
					t.Errorf("no note %q in %q", note, plan.Notes)
				}
			}
		})
	}
}

func TestPreferences(t *testing.T) {
	for _, tc := range []struct {
		section, want string
	}{
		{`<OperatingSystemSection ovf:id="94"/>`, "ubuntu"}, {`<OperatingSystemSection ovf:id="80"/>`, "linux"}, {`<OperatingSystemSection ovf:id="103"/>`, ""}, {`<OperatingSystemSection ovf:id="7"/>`, ""},
		{`<OperatingSystemSection ovf:id="1" vmw:osType="rhel8_64Guest"/>`, "rhel.8"}, {`<OperatingSystemSection ovf:id="80" vmw:osType="rhel9_64Guest"/>`, "rhel.9"}, {`<OperatingSystemSection ovf:id="80" vmw:osType="rhel10_64Guest"/>`, "rhel.10"},
		{`<OperatingSystemSection ovf:id="80" vmw:osType="rhel6_64Guest"/>`, "linux"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="centos9_64Guest"/>`, "centos.stream9"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="debian12_64Guest"/>`, "debian"},
		{`<OperatingSystemSection ovf:id="1" vmw:osType="sles15_64Guest"/>`, "sles"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="opensuse64Guest"/>`, "opensuse.leap"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="oracleLinux8_64Guest"/>`, "oraclelinux"},
		{`<OperatingSystemSection ovf:id="1" vmw:osType="windows9_64Guest"/>`, "windows.10"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="windows11_64Guest"/>`, "windows.11"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="windows9Server64Guest"/>`, "windows.2k16"},
		{`<OperatingSystemSection ovf:id="1" vmw:osType="windows2019srv_64Guest"/>`, "windows.2k19"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="windows2019srvNext_64Guest"/>`, "windows.2k22"}, {`<OperatingSystemSection ovf:id="1" vmw:osType="windows2022srvNext_64Guest"/>`, "windows.2k25"},
		{`<OperatingSystemSection ovf:id="1" vmw:osType="winXPProGuest"/>`, ""}, {`<OperatingSystemSection ovf:id="1" vmw:osType="arm-ubuntu-64Guest"/>`, "ubuntu"}, {`<OperatingSystemSection ovf:id="94" vmw:osType="other3xLinux64Guest"/>`, "linux"},
		{`<OperatingSystemSection ovf:id="1"><Description>Microsoft Windows Server 2019 (64-bit)</Description></OperatingSystemSection>`, "windows.2k19"}, {`<OperatingSystemSection ovf:id="1"><Description>Red Hat Enterprise Linux 9</Description></OperatingSystemSection>`, "rhel.9"},
		{`<OperatingSystemSection ovf:id="1"><Description>FreeBSD</Description></OperatingSystemSection>`, ""}, {`<OperatingSystemSection ovf:id="1"><Description>Darwin</Description></OperatingSystemSection>`, ""}, {"", ""},
	} {
		plan := importText(t, envelope(tc.section, memory), conversion.Options{})
		var vm struct {
			Spec struct{ Preference struct{ Name string } }
		}
		if err := json.Unmarshal(plan.Template.Spec.VirtualMachine.Raw, &vm); err != nil {
			t.Fatal(err)
		}
		if got := vm.Spec.Preference.Name; got != tc.want {
			t.Errorf("%s has the preference %q, want %q", tc.section, got, tc.want)
		}
		if strings.Contains(tc.section, "arm-") != strings.Contains(string(plan.Template.Spec.VirtualMachine.Raw), `"architecture":"arm64"`) {
			t.Errorf("%s: wrong architecture", tc.section)
		}
	}
	none, own := "", "mine"
	for _, name := range []*string{&none, &own} {
		plan := importText(t, envelope(`<OperatingSystemSection ovf:id="94"/>`, memory), conversion.Options{Preference: name})
		if got := strings.Contains(string(plan.Template.Spec.VirtualMachine.Raw), `"preference":{"name":"`+own+`"}`); got != (*name == own) {
			t.Errorf("preference %q: %s", *name, plan.Template.Spec.VirtualMachine.Raw)
		}
	}
}

func TestAnInstanceTypeHasTheSizes(t *testing.T) {
	processors := item(3, 3, "VirtualQuantity", "4")
	plan := importText(t, envelope("", memory+processors), conversion.Options{Instancetype: "u1.medium"})
	spec := render(t, plan.Template, values(plan.Template)).Object()["spec"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"name": "u1.medium"}, spec["instancetype"]); diff != "" {
		t.Errorf("instance type (-want +got):\n%s", diff)
	}
	domain := guest(t, plan)["domain"].(map[string]any)
	if domain["cpu"] != nil || domain["memory"] != nil || domain["firmware"] == nil {
		t.Errorf("domain %v", domain)
	}
	for _, want := range []string{
		"changed: processors: 10 sockets with 1 cores in the package; VirtualMachines have those of the instance type u1.medium",
		"changed: memory: 512Mi in the package; VirtualMachines have that of the instance type u1.medium",
		"changed: sizes: instance type u1.medium, as requested; VirtualMachines cannot be created in a cluster without it",
	} {
		if !slices.ContainsFunc(plan.Notes, func(n conversion.Note) bool { return n.String() == want }) {
			t.Errorf("no note %q in %q", want, plan.Notes)
		}
	}
	// The descriptor needs no sizes then.
	importText(t, envelope("", ""), conversion.Options{Instancetype: "u1.medium"})
}

func TestNamesOfTemplates(t *testing.T) {
	const file = "../testdata/collection.ovf"
	for options, want := range map[string][]string{"": {"front", "back"}, "shop": {"shop-front", "shop-back"}} {
		plan, err := conversion.Import(decodeFile(t, file), conversion.Options{Name: options})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, system := range plan.Systems {
			got = append(got, system.Template.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", options, diff)
		}
	}
	plan, err := conversion.Import(&ovf.Envelope{Systems: []ovf.System{same("Ä b"), same("B!"), same("…")}}, conversion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := plan.Systems[0].Template.Name, plan.Systems[1].Template.Name, plan.Systems[2].Template.Name; a != "b" || b != "b-2" || c != "vm" {
		t.Errorf("%s, %s and %s", a, b, c)
	}
}

func same(name string) ovf.System {
	return ovf.System{ID: name, Hardware: ovf.Hardware{Items: []ovf.Item{{InstanceID: "1", Type: ovf.ResourceMemory, Units: "GB", Quantity: 1}}}}
}

// TestConfigurationsChooseSizes imports the appliance in its other configuration.
func TestConfigurationsChooseSizes(t *testing.T) {
	plan, err := conversion.Import(decodeFile(t, "../testdata/vmware-13-appliance.ovf"), conversion.Options{Configuration: "small"})
	if err != nil {
		t.Fatal(err)
	}
	system := &plan.Systems[0]
	domain := guest(t, system)["domain"].(map[string]any)
	if got, _ := json.Marshal([]any{domain["cpu"], domain["memory"]}); string(got) != `[{"cores":1,"sockets":2},{"guest":"4Gi"}]` {
		t.Errorf("sizes %s", got)
	}
	for _, p := range system.Template.Spec.Parameters {
		if p.Name == "VAMI_MODE_GATEWAY" && p.Value != "passive" {
			t.Errorf("the default of the configuration is %q", p.Value)
		}
	}
}
