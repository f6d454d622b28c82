package ovf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/ovf"
)

const (
	head = `<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:vmw="http://www.vmware.com/schema/ovf" xmlns:acme="http://acme.example.com/ovf">`
	tail = `<VirtualSystem ovf:id="vm"><Info/></VirtualSystem></Envelope>`
)

func disk(attributes string) string {
	return head + "\n<DiskSection><Disk " + attributes + "/></DiskSection>" + tail
}

func system(content string) string {
	return head + "\n<VirtualSystem ovf:id=\"vm\">" + content + "</VirtualSystem></Envelope>"
}

func item(content string) string {
	return system("<VirtualHardwareSection><Item>" + content + "</Item></VirtualHardwareSection>")
}

func TestMalformedDescriptorsAreRejected(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                 {"", "OVF descriptor: contains no element"},
		"no XML":                  {"PK\x03\x04", "OVF descriptor, line 1: is not well-formed XML: illegal character code U+0003"},
		"truncated":               {head + "<References>", "OVF descriptor, line 1, Envelope/References: is not well-formed XML: unexpected EOF"},
		"an external entity":      {`<!DOCTYPE e [<!ENTITY x SYSTEM "file:///etc/passwd">]><e>&x;</e>`, "OVF descriptor, line 1: contains a document type or another declaration (<!…>), which are not accepted, nor are their entities; remove it"},
		"a billion laughs":        {"<!DOCTYPE e [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]><e>&b;</e>", "OVF descriptor, line 1: contains a document type or another declaration (<!…>), which are not accepted, nor are their entities; remove it"},
		"an undeclared entity":    {head + "&x;", "OVF descriptor, line 1, Envelope: is not well-formed XML: invalid character entity &x;"},
		"an instruction":          {`<?xml-stylesheet href="x"?><e/>`, `OVF descriptor, line 1: contains the processing instruction "xml-stylesheet"; remove it`},
		"another encoding":        {`<?xml version="1.0" encoding="KOI8-R"?><e/>`, `OVF descriptor, line 1: is not well-formed XML: opening charset "KOI8-R": the encoding "KOI8-R" is not supported; convert the descriptor to UTF-8`},
		"two roots":               {head + tail + "<x/>", "OVF descriptor, line 1: contains a second root element"},
		"text after the root":     {head + tail + "x", "OVF descriptor, line 1: contains text outside of its root element"},
		"too large":               {strings.Repeat(" ", ovf.MaxDescriptorBytes+1), "OVF descriptor: is larger than 4 MiB"},
		"too deep":                {strings.Repeat("<a>", 33), "OVF descriptor, line 1, " + strings.TrimSuffix(strings.Repeat("a/", 32), "/") + ": nests elements more than 32 levels deep"},
		"too many elements":       {"<a>" + strings.Repeat("<b/>", 50_000), "OVF descriptor, line 1, a: contains more than 50000 elements"},
		"too many attributes":     {"<a" + attributes(65) + "/>", "OVF descriptor, line 1: the element a has more than 64 attributes"},
		"an attribute twice":      {`<a x="1" x="2"/>`, "OVF descriptor, line 1: the element a has the attribute x twice"},
		"another format":          {`<domain xmlns="x"/>`, `OVF descriptor, line 1, domain: the root element is domain in namespace "x"; want Envelope in namespace http://schemas.dmtf.org/ovf/envelope/1 or http://schemas.dmtf.org/ovf/envelope/2`},
		"no system":               {head + "</Envelope>", "OVF descriptor, line 1, Envelope: contains no VirtualSystem"},
		"a system without ID":     {head + "<VirtualSystem/></Envelope>", `OVF descriptor, line 1, Envelope/VirtualSystem: id is ""; want 1 to 256 characters without control characters`},
		"two systems of an ID":    {head + `<VirtualSystemCollection ovf:id="c"><VirtualSystem ovf:id="a"/><VirtualSystem ovf:id="a"/></VirtualSystemCollection></Envelope>`, "OVF descriptor, line 1, Envelope/VirtualSystemCollection[c]/VirtualSystem[a]: the ID is not unique"},
		"too many systems":        {head + `<VirtualSystemCollection ovf:id="c">` + repeat(65, `<VirtualSystem ovf:id="%d"/>`) + `</VirtualSystemCollection></Envelope>`, "OVF descriptor, line 1, Envelope/VirtualSystemCollection[c]/VirtualSystem[64]: the envelope contains more than 64 virtual systems"},
		"too many files":          {head + "<References>" + repeat(1025, `<File ovf:id="%[1]d" ovf:href="%[1]d"/>`) + "</References>" + tail, "OVF descriptor, line 1, Envelope/References: contains more than 1024 files"},
		"too many disks":          {head + "<DiskSection>" + repeat(257, `<Disk ovf:diskId="%d" ovf:capacity="1"/>`) + "</DiskSection>" + tail, "OVF descriptor, line 1, Envelope/DiskSection: contains more than 256 disks"},
		"too many items":          {system("<VirtualHardwareSection>" + strings.Repeat("<Item><rasd:ResourceType>1</rasd:ResourceType></Item>", 1025) + "</VirtualHardwareSection>"), "OVF descriptor, line 2, Envelope/VirtualSystem[vm]/VirtualHardwareSection: contains more than 1024 items"},
		"too many properties":     {system("<ProductSection>" + repeat(513, `<Property ovf:key="%d" ovf:type="string"/>`) + "</ProductSection>"), "OVF descriptor, line 2, Envelope/VirtualSystem[vm]: has 513 properties; at most 512 are accepted"},
		"a long annotation":       {system("<AnnotationSection><Annotation>" + strings.Repeat("x", 64<<10) + "</Annotation></AnnotationSection>"), "OVF descriptor, line 2, Envelope/VirtualSystem[vm]: its annotations are longer than 64 KiB"},
		"a file without a name":   {head + "\n<References><File ovf:id=\"f\"/></References>" + tail, "OVF descriptor, line 2, Envelope/References/File[f]: the file has no href"},
		"a file twice":            {head + `<References><File ovf:id="f" ovf:href="a"/><File ovf:id="g" ovf:href="a"/></References>` + tail, `OVF descriptor, line 1, Envelope/References/File[g]: the file "a" is referred to twice`},
		"an ID of files twice":    {head + `<References><File ovf:id="f" ovf:href="a"/><File ovf:id="f" ovf:href="b"/></References>` + tail, "OVF descriptor, line 1, Envelope/References/File[f]: the ID is not unique"},
		"a negative size":         {head + `<References><File ovf:id="f" ovf:href="a" ovf:size="-1"/></References>` + tail, `OVF descriptor, line 1, Envelope/References/File[f]: size is "-1"; want an integer from 0 to 2^63-1`},
		"a size beyond 2^63-1":    {head + `<References><File ovf:id="f" ovf:href="a" ovf:size="9223372036854775808"/></References>` + tail, `OVF descriptor, line 1, Envelope/References/File[f]: size is "9223372036854775808"; want an integer from 0 to 2^63-1`},
		"chunks without a size":   {head + `<References><File ovf:id="f" ovf:href="a" ovf:chunkSize="5"/></References>` + tail, "OVF descriptor, line 1, Envelope/References/File[f]: a file with chunkSize needs a size"},
		"too many chunks":         {head + `<References><File ovf:id="f" ovf:href="a" ovf:size="10001" ovf:chunkSize="1"/></References>` + tail, "OVF descriptor, line 1, Envelope/References/File[f]: has more than 10000 chunks"},
		"another compression":     {head + `<References><File ovf:id="f" ovf:href="a" ovf:compression="zstd"/></References>` + tail, `OVF descriptor, line 1, Envelope/References/File[f]: the compression "zstd" is not supported; want gzip, xz, or none`},
		"a disk without capacity": {disk(`ovf:diskId="d"`), "OVF descriptor, line 2, Envelope/DiskSection/Disk[d]: the disk has no capacity"},
		"an overflow":             {disk(`ovf:diskId="d" ovf:capacity="9007199254740992" ovf:capacityAllocationUnits="byte * 2^10"`), "OVF descriptor, line 2, Envelope/DiskSection/Disk[d]: capacity: 9007199254740992 byte * 2^10 is more than 2^63-1 bytes"},
		"an overflowing unit":     {disk(`ovf:diskId="d" ovf:capacity="1" ovf:capacityAllocationUnits="byte * 2^64"`), `OVF descriptor, line 2, Envelope/DiskSection/Disk[d]: capacityAllocationUnits: the unit "byte * 2^64" is more than 2^64-1 bytes`},
		"an unknown unit":         {disk(`ovf:diskId="d" ovf:capacity="1" ovf:capacityAllocationUnits="sectors"`), `OVF descriptor, line 2, Envelope/DiskSection/Disk[d]: capacityAllocationUnits: the unit "sectors" is not supported; use a unit such as byte or byte * 2^30`},
		"an unknown file":         {disk(`ovf:diskId="d" ovf:capacity="1" ovf:fileRef="f"`), `OVF descriptor, line 2, Envelope/DiskSection/Disk[d]: fileRef is "f", which is not the ID of a file`},
		"an unknown parent":       {disk(`ovf:diskId="d" ovf:capacity="1" ovf:parentRef="p"`), `OVF descriptor, line 2, Envelope/DiskSection/Disk[d]: parentRef is "p", which is not the ID of a disk`},
		"an unknown property":     {disk(`ovf:diskId="d" ovf:capacity="${size}"`), `OVF descriptor, Envelope/DiskSection/Disk[d]: the capacity refers to the property "size", which does not exist`},
		"a property of text": {head + `<DiskSection><Disk ovf:diskId="d" ovf:capacity="${size}"/></DiskSection><VirtualSystem ovf:id="vm"><ProductSection><Property ovf:key="size" ovf:type="string" ovf:value="big"/></ProductSection></VirtualSystem></Envelope>`,
			`OVF descriptor, Envelope/DiskSection/Disk[d]: the capacity refers to the property "size", whose default "big" is not an integer`},
		"an item of no type":      {item("<rasd:InstanceID>7</rasd:InstanceID>"), `OVF descriptor, line 2, Envelope/VirtualSystem[vm]/VirtualHardwareSection/Item: the item "7" has no resource type`},
		"an item of another type": {item("<rasd:ResourceType>disk</rasd:ResourceType>"), `OVF descriptor, line 2, Envelope/VirtualSystem[vm]/VirtualHardwareSection/Item/ResourceType: the resource type is "disk"; want an integer from 0 to 65535`},
		"a quantity of text":      {item("<rasd:VirtualQuantity>-4</rasd:VirtualQuantity>"), `OVF descriptor, line 2, Envelope/VirtualSystem[vm]/VirtualHardwareSection/Item/VirtualQuantity: is "-4"; want an integer from 0 to 2^64-1`},
		"an item of no disk":      {item("<rasd:InstanceID>7</rasd:InstanceID><rasd:ResourceType>17</rasd:ResourceType><rasd:HostResource>ovf:/disk/d</rasd:HostResource>"), `OVF descriptor, line 2, Envelope/VirtualSystem[vm]: the item "7" refers to disk "d", which does not exist`},
		"an item of no file":      {item("<rasd:InstanceID>7</rasd:InstanceID><rasd:ResourceType>15</rasd:ResourceType><rasd:HostResource>/file/f</rasd:HostResource>"), `OVF descriptor, line 2, Envelope/VirtualSystem[vm]: the item "7" refers to file "f", which does not exist`},
		"a property twice":        {system(`<ProductSection><Property ovf:key="a"/><Property ovf:key="a"/></ProductSection>`), `OVF descriptor, line 2, Envelope/VirtualSystem[vm]: the property "a" is declared twice`},
		"a configuration twice":   {head + `<DeploymentOptionSection><Configuration ovf:id="a"/><Configuration ovf:id="a"/></DeploymentOptionSection>` + tail, "OVF descriptor, line 1, Envelope/DeploymentOptionSection/Configuration[a]: the ID is not unique"},
		"required sections": {head + `<acme:ClusterSection/><EncryptionSection/><VirtualSystem ovf:id="vm"><acme:GpuSection ovf:required="true"/><acme:FanSection ovf:required="false"/></VirtualSystem></Envelope>`,
			`OVF descriptor: these sections are required and not supported: Envelope/ClusterSection (http://acme.example.com/ovf), Envelope/EncryptionSection, Envelope/VirtualSystem[vm]/GpuSection (http://acme.example.com/ovf); export without them, or set ovf:required="false" on those that the virtual system runs without`},
	} {
		t.Run(name, func(t *testing.T) {
			envelope, err := ovf.Decode(strings.NewReader(tc.text))
			if err == nil {
				t.Fatalf("accepted: %+v", envelope)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func attributes(n int) string { return repeat(n, ` a%d="1"`) }

// repeat returns n copies of a format, with their numbers.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestOptionalContentIsReported(t *testing.T) {
	envelope, err := ovf.Decode(strings.NewReader(head + `
<References><acme:Blob/></References>
<PlacementSection ovf:required="false"/>
<Strings ovf:fileRef="texts"/>
<VirtualSystem ovf:id="vm">
<acme:FanSection ovf:required="false" acme:speed="9"><acme:Blade>2</acme:Blade></acme:FanSection>
<ProductSection><Property ovf:key="a" ovf:type="date"/></ProductSection>
<VirtualHardwareSection/><VirtualHardwareSection/>
</VirtualSystem></Envelope>`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ovf.Warning{
		{Line: 4, Path: "Envelope/Strings", Message: "texts in a file of their own are not read"},
		{Line: 2, Path: "Envelope/References/Blob", Message: "is ignored; References contain files"},
		{Line: 3, Path: "Envelope/PlacementSection", Message: "the section is not supported and is ignored; it is not required"},
		{Line: 7, Path: "Envelope/VirtualSystem[vm]/ProductSection/Property[a]", Message: `the type "date" is unknown; the value is text`},
		{Line: 8, Path: "Envelope/VirtualSystem[vm]/VirtualHardwareSection", Message: "is an alternative to the first VirtualHardwareSection and is ignored"},
	}, envelope.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	fan := envelope.Systems[0].Extensions[0]
	if fan.Local != "FanSection" || fan.Attribute("speed") != "9" || fan.ChildText("Blade") != "2" {
		t.Errorf("extension %+v", fan)
	}
}

func TestWhatOldExportersWrite(t *testing.T) {
	for name, text := range map[string]string{
		"a license of all systems":          head + `<EulaSection><License>Be nice.</License></EulaSection>` + tail,
		"texts of a namespace of their own": head + `<ovfstr:Strings xmlns:ovfstr="http://schemas.dmtf.org/ovf/strings/1"><ovfstr:Msg ovf:msgid="l">Be nice.</ovfstr:Msg></ovfstr:Strings><VirtualSystem ovf:id="vm"><EulaSection><License ovf:msgid="l"/></EulaSection></VirtualSystem></Envelope>`,
		"no default namespace":              `<Envelope xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"><VirtualSystem ovf:id="vm"><EulaSection><License>Be nice.</License></EulaSection></VirtualSystem></Envelope>`,
		"masks of processors":               head + `<VirtualSystem ovf:id="vm"><EulaSection><License>Be nice.</License></EulaSection><vmw:CpuCompatibilitySection><Info/></vmw:CpuCompatibilitySection></VirtualSystem></Envelope>`,
	} {
		envelope, err := ovf.Decode(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]string{"Be nice."}, envelope.Systems[0].Licenses); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWarningsAreLimited(t *testing.T) {
	envelope, err := ovf.Decode(strings.NewReader(head + "<References>" + strings.Repeat("<acme:Blob/>", 300) + "</References>" + tail))
	if err != nil || len(envelope.Warnings) != ovf.MaxWarnings {
		t.Errorf("%d warnings, %v", len(envelope.Warnings), err)
	}
}

func TestUnits(t *testing.T) {
	for unit, want := range map[string]int64{
		"": 3, "byte": 3, "Bytes": 3, "byte * 2^10": 3 << 10, "byte*2^20": 3 << 20, "byte * 2^30": 3 << 30, "byte*1024*1024": 3 << 20, "byte * 10^9": 3e9, "byte * 2^0": 3,
		"KiloBytes": 3 << 10, "MegaBytes": 3 << 20, "MB": 3 << 20, "GigaBytes": 3 << 30, "GB": 3 << 30, "TeraBytes": 3 << 40, " byte * 1024 ^ 2 ": 3 << 20,
	} {
		if got, err := ovf.Bytes(3, unit); err != nil || got != want {
			t.Errorf("3 %q is %d, %v; want %d", unit, got, err, want)
		}
	}
	for _, unit := range []string{"bit", "hertz * 10^6", "byte / 2", "byte * 0", "byte * -1", "byte * 2^-1", "byte *", "* 2", "byte * 2^2^2", "byte * 2^300", "byte*1*1*1*1*1*1*1*1", "count"} {
		if got, err := ovf.Bytes(3, unit); err == nil {
			t.Errorf("3 %q is accepted as %d", unit, got)
		}
	}
	if got, err := ovf.Bytes(1<<63-1, "byte"); err != nil || got != 1<<63-1 {
		t.Errorf("the largest size is %d, %v", got, err)
	}
	if _, err := ovf.Bytes(1<<63, "byte"); err == nil {
		t.Error("2^63 bytes are accepted")
	}
}

func TestItemsOfAConfigurationAreSelected(t *testing.T) {
	hardware := decodeFile(t, "testdata/vmware-13-appliance.ovf").Systems[0].Hardware
	for configuration, want := range map[string]string{
		"small": "processor 2, memory 4096 byte * 2^20",
		"large": "processor 8, memory 16 byte*1024*1024*1024",
		"":      "memory 4096 byte * 2^20",
		"other": "memory 4096 byte * 2^20",
	} {
		var got []string
		for _, item := range hardware.Select(configuration) {
			switch item.Type {
			case ovf.ResourceProcessor:
				got = append(got, fmt.Sprintf("processor %d", item.Quantity))
			case ovf.ResourceMemory:
				got = append(got, fmt.Sprintf("memory %d %s", item.Quantity, item.Units))
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("configuration %q (-want +got):\n%s", configuration, diff)
		}
	}
}

func TestAnInvalidEnvelopeIsNotWritten(t *testing.T) {
	var b strings.Builder
	err := ovf.Encode(&b, &ovf.Envelope{Systems: []ovf.System{{ID: "a"}}, Disks: []ovf.Disk{{ID: "d", FileRef: "f", Populated: -1}}})
	const want = `encoding the OVF descriptor: the envelope is not valid: OVF descriptor, line 7, Envelope/DiskSection/Disk[d]: fileRef is "f", which is not the ID of a file`
	if err == nil || err.Error() != want || b.Len() > 0 {
		t.Errorf("got %v and %q", err, b.String())
	}
}

// TestTextsOfManyPartsAreReadInLinearTime reads a text that comments split into very many parts. With quadratic time it would take minutes.
func TestTextsOfManyPartsAreReadInLinearTime(t *testing.T) {
	parts := (ovf.MaxDescriptorBytes - len(head) - len(tail) - 100) / 8
	envelope, err := ovf.Decode(strings.NewReader(system("<Name>" + strings.Repeat("a<!---->", parts) + "</Name>")))
	if err != nil || len(envelope.Systems[0].Name) != parts {
		t.Error(err)
	}
}
