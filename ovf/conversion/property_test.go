package conversion_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/template"
)

// TestRandomDescriptors imports descriptors with random properties and devices. Each is rejected with an error of this package, or its template is
// accepted by the template engine and renders with the values of its parameters that a random user gives: the defaults, or values that are accepted.
func TestRandomDescriptors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	imported := 0
	for n := range 3000 {
		text := randomDescriptor(random)
		envelope, err := ovf.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%d: %v in\n%s", n, err, text)
		}
		plan, err := conversion.Import(envelope, conversion.Options{
			Namespace: "golden", Configuration: choose(random, "", "small", "large"), DiskBus: choose(random, "", "virtio"),
			Delivery: choose(random, conversion.DeliveryAuto, conversion.DeliveryEnvironment, conversion.DeliveryCloudInit, conversion.DeliveryNone),
		})
		if err != nil {
			continue
		}
		imported++
		object := plan.Systems[0].Template
		compiled, err := template.Compile(object, template.WithRandom(ones{}))
		if err != nil {
			t.Fatalf("%d: %v in\n%s", n, err, text)
		}
		given := map[string]string{}
		for _, p := range object.Spec.Parameters {
			for _, value := range []string{"yes", "lan", "vm-1", "12345678", "1", "a & b", strings.Repeat("x", 20), strings.Repeat("x", 300), strings.Repeat("x", 1000)} {
				if p.Value == "" && p.Generate == "" && p.Required && compiled.Accepts(p.Name, value) {
					given[p.Name] = value
				}
			}
		}
		binding, err := compiled.Bind(given)
		if err != nil {
			t.Fatalf("%d: binding %v: %v in\n%s", n, given, err, text)
		}
		rendered, err := compiled.Render(binding)
		if err != nil {
			t.Fatalf("%d: rendering %v: %v in\n%s", n, given, err, text)
		}
		for _, raw := range objects(t, rendered) {
			if _, environment, found := bytes.Cut(raw, []byte(`<?xml`)); found {
				checkXML(t, string(environment))
			}
		}
	}
	if imported < 1000 {
		t.Errorf("only %d descriptors were imported", imported)
	}
}

// checkXML checks that an environment file, as text in JSON, is well-formed.
func checkXML(t *testing.T, text string) {
	t.Helper()
	text, _, _ = strings.Cut(text, `"}`)
	document := strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\\`, `\`).Replace("<?xml" + text)
	if err := xml.Unmarshal([]byte(document), new(struct{ XMLName xml.Name })); err != nil {
		t.Errorf("%v in\n%s", err, document)
	}
}

func choose[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

func randomDescriptor(random *rand.Rand) string {
	var properties, items strings.Builder
	escape := func(text string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(text))
		return b.String()
	}
	value := func() string {
		return choose(random, "", "x", "true", "FALSE", "0", "-1", "255", "256", "1e3", "99999999999999999999", `<&">'`, "${NAME}", "$${X}", "a\tb", "a\nb", "é", strings.Repeat("long", 50))
	}
	for i := range random.IntN(6) {
		key := choose(random, "hostname", "password", "public-keys", "user-data", "Ünï", "${NAME}", "a.b", fmt.Sprintf("p%d", i))
		kind := choose(random, "string", "boolean", "password", "int", "uint8", "sint8", "uint16", "sint32", "uint64", "sint64", "real32", "date", "")
		fmt.Fprintf(&properties, `<ProductSection ovf:class="c%d"><Property ovf:key="%s" ovf:type="%s" ovf:userConfigurable="%t" ovf:password="%t" ovf:qualifiers="%s"`,
			random.IntN(2)*i, escape(key), kind, random.IntN(4) > 0, random.IntN(4) == 0, escape(randomQualifiers(random)))
		if random.IntN(2) == 0 {
			fmt.Fprintf(&properties, ` ovf:value="%s"`, escape(value()))
		}
		fmt.Fprintf(&properties, `><Label>%s</Label><Value ovf:configuration="small" ovf:value="%s"/></Property></ProductSection>`, escape(value()), escape(value()))
	}
	for i := range random.IntN(8) {
		items.WriteString(item(10+i, choose(random, 1, 3, 5, 6, 10, 10, 14, 15, 17, 17, 20, 23, 24, 31, 35, 40000), "ResourceSubType", escape(choose(random, "", "lsilogic", "virtio", "AHCI", "E1000", "VmxNet3", "${X}")),
			"HostResource", choose(random, "", "ovf:/disk/d", "ovf:/file/f", "/disk/d"), "Connection", escape(choose(random, "", "a", "b", `"${X}"`, "Ünï")), "Parent", fmt.Sprint(10+random.IntN(8)),
			"VirtualQuantity", choose(random, "", "1", "2", "7")))
	}
	sections := properties.String()
	if random.IntN(3) == 0 {
		sections += "<EulaSection><License>" + escape(value()) + "</License></EulaSection>"
	}
	return envelope(fmt.Sprintf(`<Name>%s</Name><OperatingSystemSection ovf:id="%d" vmw:osType="%s"/>`, escape(value()), random.IntN(130), choose(random, "", "ubuntu64Guest", "windows11_64Guest", "arm-debian-64Guest"))+sections, memory+items.String())
}

func randomQualifiers(random *rand.Rand) string {
	var all []string
	for range random.IntN(4) {
		n := choose(random, -1, 0, 1, 8, 20, 200, 300, 1000, 1001, 1<<40)
		all = append(all, choose(random, fmt.Sprintf("MinLen(%d)", n), fmt.Sprintf("MaxLen(%d)", n), fmt.Sprintf("MinValue(%d)", n), fmt.Sprintf("MaxValue(%d)", n),
			`ValueMap{"a","b","a"}`, `ValueMap{"1","2"}`, `ValueMap{"<",""}`, "ValueMap{}", "Ip", "MinLen(x)", "}{", `ValueMap{"a`))
	}
	return strings.Join(all, choose(random, " ", ",", ", "))
}
