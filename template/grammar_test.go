package template_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAValueIsRejectedIfTheDocumentCannotHoldIt(t *testing.T) {
	const (
		inYAML = ": remove it, or write ${A|yaml} as a whole value in the template"
		inJSON = ": remove it, or write ${A|json} as a whole value in the template"
		inXML  = ": remove it"
	)
	for name, tc := range map[string]struct {
		document string
		key      string // of a ConfigMap, or user data
		value    string
		lines    bool
		want     string
	}{
		"U+FFFF in a shell word":                {document: "#cloud-config\nruncmd:\n- echo ${A|sh}\n", value: "\uffff", want: "character 1 of A is U+FFFF, which YAML cannot hold" + inYAML},
		"U+FFFE in a block of text":             {document: "#cloud-config\nruncmd:\n- |\n  echo ${A|sh}\n", value: "a\ufffe", want: "character 2 of A is U+FFFE, which YAML cannot hold" + inYAML},
		"a noncharacter in a comment":           {document: "#cloud-config\n# ${A}\n", value: "\ufdd0", want: "character 1 of A is U+FDD0, which YAML cannot hold" + inYAML},
		"the last code point":                   {document: "#cloud-config\nuser: ${A}\n", value: "\U0010ffff", want: "character 1 of A is U+10FFFF, which YAML cannot hold" + inYAML},
		"a byte order mark":                     {document: "#cloud-config\nuser: ${A}\n", value: "\ufeffa", want: "character 1 of A is U+FEFF, which YAML cannot hold" + inYAML},
		"behind a line for Jinja":               {document: "## template: jinja\n#cloud-config\nuser: ${A}\n", value: "\uffff", want: "character 1 of A is U+FFFF, which YAML cannot hold" + inYAML},
		"a tab without quotes":                  {document: "#cloud-config\nruncmd:\n- echo ${A|sh}\n", value: "a\tb", want: "character 2 of A is U+0009, which YAML without quotes cannot hold" + inYAML},
		"a mapping in a shell word":             {document: "#cloud-config\nruncmd:\n- echo ${A|sh}\n", value: "a: b", want: `character 2 of A begins ": ", which YAML with the encoder sh cannot hold` + inYAML},
		"a comment in a shell word":             {document: "#cloud-config\nruncmd:\n- echo ${A|sh}\n", value: "a #b", want: `character 2 of A begins " #", which YAML with the encoder sh cannot hold` + inYAML},
		"a quote in a shell word that is alone": {document: "#cloud-config\nruncmd:\n- ${A|sh}\n", value: "it's", want: "character 3 of A is U+0027, which YAML with the encoder sh alone cannot hold" + inYAML},
		"a line break in a shell word":          {document: "#cloud-config\nruncmd:\n- |\n  echo ${A|sh}\n", value: "a\nruncmd: []", lines: true, want: "character 2 of A is U+000A, which YAML with the encoder sh cannot hold" + inYAML},
		"a double quote between double quotes":  {document: "#cloud-config\nuser: \"${A}\"\n", value: `a"`, want: "character 2 of A is U+0022, which YAML between double quotes cannot hold" + inYAML},
		"a backslash between double quotes":     {document: "#cloud-config\nuser: \"${A}\"\n", value: `\q`, want: "character 1 of A is U+005C, which YAML between double quotes cannot hold" + inYAML},
		"a quote between single quotes":         {document: "#cloud-config\nuser: '${A}'\n", value: `it's`, want: "character 3 of A is U+0027, which YAML between single quotes cannot hold" + inYAML},
		"the same in network data of a Secret":  {document: "version: 2\nethernets: {\"${A}\": {}}\n", key: "networkdata", value: `a"`, want: "character 2 of A is U+0022, which YAML between double quotes cannot hold" + inYAML},
		"a quote in a JSON string":              {document: `{"ignition": {"version": "3.0.0"}, "a": "${A}"}`, value: `","b":"`, want: "character 1 of A is U+0022, which a JSON string cannot hold" + inJSON},
		"a tab in a JSON string":                {document: `{"a": "${A}"}`, value: "a\t", want: "character 2 of A is U+0009, which a JSON string cannot hold" + inJSON},
		"a quoted quote in a JSON string":       {document: `{"a": "echo ${A|sh}"}`, value: "it's", want: "character 3 of A is U+0027, which a JSON string with the encoder sh cannot hold" + inJSON},
		"a tag in XML":                          {document: "<?xml version='1.0' encoding='utf-16'?><a>${A}</a>", key: "unattend.xml", value: "</a><b/>", want: "character 1 of A is U+003C, which the text of XML cannot hold" + inXML},
		"an ampersand in XML":                   {document: "<a>${A}</a>", key: "unattend.xml", value: "&amp;&x;", want: "character 6 of A is U+0026, which the text of XML cannot hold" + inXML},
		"a noncharacter in XML":                 {document: "<a>${A}</a>", key: "unattend.xml", value: "\uffff", want: "character 1 of A is U+FFFF, which the text of XML cannot hold" + inXML},
		"a quote in an attribute":               {document: `<a b="${A}"/>`, key: "unattend.xml", value: `" c="`, want: "character 1 of A is U+0022, which an attribute of XML cannot hold" + inXML},
		"the end of character data":             {document: "<a><![CDATA[${A}]]></a>", key: "unattend.xml", value: "]]>", want: "character 1 of A is U+005D, which character data of XML cannot hold" + inXML},
		"the end of a comment":                  {document: "<a><!-- ${A} --></a>", key: "unattend.xml", value: "-->", want: "character 1 of A is U+002D, which a comment of XML cannot hold" + inXML},

		"any character with an encoder of YAML":  {document: "#cloud-config\nuser: ${A|yaml}\n", value: "\uffff\ufeff\t'\"\\: #"},
		"any character with the encoder json":    {document: `{"a": ${A|json}}`, value: "\uffff\ufeff\t'\"\\"},
		"any character with the encoder base64":  {document: "#cloud-config\nwrite_files: [{encoding: b64, content: ${A|base64}}]\n", value: "\uffff\ufeff\t'\"\\: #"},
		"any character in a script":              {document: "#!/bin/sh\necho ${A|sh}\n", value: "\uffff\ufeff\t'\"\\: #"},
		"any character in other text":            {document: "a ${A|sh}", key: "text", value: "\uffff\ufeff\t'\"\\: #"},
		"quotes in a block of text":              {document: "#cloud-config\nruncmd:\n- |\n  echo ${A|sh}\n", value: "it's: a\t#\"b\""},
		"a list of YAML without quotes":          {document: "#cloud-config\npackages: ${A}\n", value: `[vim, "htop"]`},
		"references to characters in XML":        {document: "<a>${A}</a>", key: "unattend.xml", value: "a &amp; &lt;b> \"'"},
		"markup in character data":               {document: "<a><![CDATA[${A}]]></a>", key: "unattend.xml", value: "<b>&"},
		"a value of JSON without quotes":         {document: `{"a": ${A}}`, value: `["a"]`},
		"text of any script":                     {document: "#cloud-config\nuser: ${A}\n", value: "é😀\u00a0\u00ad"},
		"user data that the parameter is itself": {document: "${A}", value: "\uffff"},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := fmt.Sprintf(`"parameters": [{"name": "A", "sensitive": true, "multiline": %v}]`, tc.lines)
			document, err := json.Marshal(tc.document)
			if err != nil {
				t.Fatal(err)
			}
			spec := fmt.Sprintf(`{%s, "virtualMachine": {"spec": {"template": {"spec": {"volumes": [{"name": "a", "cloudInitNoCloud": {"userData": %s}}]}}}}}`, parameters, document)
			if tc.key != "" {
				spec = fmt.Sprintf(`{%s, "virtualMachine": {"metadata": {"name": "a"}}, "objects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {%q: %s}}]}`, parameters, tc.key, document)
			}
			compiled := compile(t, spec)
			_, err = compiled.Bind(map[string]string{"A": tc.value})
			var want []string
			if tc.want != "" {
				want = []string{"parameters[A]: Invalid value: " + tc.want}
			}
			if diff := cmp.Diff(want, causes(t, err)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if accepted := compiled.Accepts("A", tc.value); accepted != (tc.want == "") {
				t.Errorf("Accepts returns %v", accepted)
			}
		})
	}
}

func TestDefaultsAreRejectedIfTheDocumentCannotHoldThem(t *testing.T) {
	_, err := render(parse(t, `{parameters: [{name: A, value: "\uFFFF"}, {name: B, enum: [b, "b\tc"]}], virtualMachine: {spec: {template: {spec: {
		volumes: [{name: a, cloudInitNoCloud: {userData: "#cloud-config\nuser: ${A}\npassword: ${B}\n"}}]}}}}}`), nil)
	want := []string{
		"spec.parameters[0].value: Invalid value: character 1 of A is U+FFFF, which YAML cannot hold: remove it, or write ${A|yaml} as a whole value in the template",
		"spec.parameters[1].enum[1]: Invalid value: character 2 of B is U+0009, which YAML without quotes cannot hold: remove it, or write ${B|yaml} as a whole value in the template",
	}
	if diff := cmp.Diff(want, causes(t, err)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func TestMatchPrefersValuesThatRenderTheName(t *testing.T) {
	testMatch(t, map[string]matchCase{
		"an empty value gives the name": {
			spec:       `{secretize: true, parameters: [{name: A}, {name: B}], virtualMachine: {metadata: {name: "v${A}"}, spec: {template: {spec: {volumes: [{name: "${A}${B}", cloudInitNoCloud: {userData: "${B}"}}]}}}}}`,
			vm:         `{metadata: {name: v}, spec: {template: {spec: {volumes: [{name: xy, cloudInitNoCloud: {secretRef: {name: v-xy}}}]}}}}`,
			wantValues: map[string]string{"A": "", "B": "xy"},
		},
		"a given value does not, and the user chose the name": {
			spec: `{parameters: [{name: A}], virtualMachine: {metadata: {name: "v${A}"}, spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:   `{metadata: {name: v, annotations: {parameter.template.kubevirt.io/A: x}}, spec: {template: {spec: {hostname: x}}}}`, wantValues: map[string]string{"A": "x"},
		},
	})
}

func TestGeneratedValuesFitIntoTheDocument(t *testing.T) {
	compiled := compile(t, `{parameters: [{name: A, generate: expression, from: "[\\A]{8}"}], virtualMachine: {spec: {template: {spec: {
		volumes: [{name: a, cloudInitNoCloud: {userData: "#cloud-config\nuser: \"${A}\"\n"}}]}}}}}`)
	for range 1000 {
		binding, err := compiled.Bind(nil)
		if err != nil {
			t.Fatal(err)
		}
		if value := binding.Values()["A"]; strings.ContainsAny(value, "\"\\") {
			t.Errorf("got %q", value)
		}
	}
}
