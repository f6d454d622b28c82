package definitions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// full uses every field.
const full = `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: TemplateApproval
metadata: {name: full}
spec:
  namespaces: [team-a, team-b]
  namespaceSelector:
    matchLabels: {tier: gold, example.com/size: ""}
    matchExpressions:
    - {key: example.com/zone, operator: In, values: [a, b]}
    - {key: legacy, operator: DoesNotExist}
  templates:
  - {namespace: golden, name: fedora.41, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
  - {namespace: golden, selector: {}}
  parameters:
  - {name: INSTANCETYPE, allowed: [u1.small, ""]}
  - {name: CPU, minimum: 1, maximum: 8}
  - {name: MEMORY, expression: "quantity(value).compareTo(quantity('16Gi')) <= 0", message: at most 16Gi}
  - {name: NAME, pattern: "web-[a-z]+"}
  - {name: SSH_KEY, anyValue: true}
  overrides:
  - spec.runStrategy
  - metadata.labels["example.com/cost-centre"]
  - metadata.annotations.*
  - spec.template.spec.domain.devices.interfaces[name=default].macAddress
  existingDisks:
    policy: Allow
    selector: {matchExpressions: [{key: velero.io/restore-name, operator: Exists}]}
  generatedValues: Deny
  templateLabels: Accept
  objects:
    policy: Allow
    allowed:
    - {kinds: [Secret, NetworkPolicy.networking.k8s.io], names: ["*-access", web], rights: User}
    - {kinds: [Service], rights: Template}
  subjects:
  - {kind: Group, name: team-a}
  - {kind: User, name: "ada@example.com"}
  exemptSubjects:
  - {kind: ServiceAccount, namespace: kubevirt, name: kubevirt-controller}
  enforcement: Warn
`

func TestAnApprovalIsStoredAsItIsWritten(t *testing.T) {
	must(t, full, "apply", "--server-side", "-f", "-")
	got := kubectl(t, "", "get", "tapp", "full", "-o", "yaml")
	var stored, written v1alpha1.TemplateApproval
	if err := yaml.UnmarshalStrict([]byte(got.Stdout), &stored); err != nil {
		t.Fatal(err, got.Stderr)
	}
	if err := yaml.UnmarshalStrict([]byte(full), &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.Spec, stored.Spec); diff != "" {
		t.Errorf("spec (-written +stored):\n%s", diff)
	}
}

func TestTheStatusShowsInColumns(t *testing.T) {
	must(t, strings.Replace(full, "name: full", "name: columns", 1), "apply", "-f", "-")
	status := `{"status":{"templates":2,"namespaces":3,"conforming":0,"violating":1,` +
		`"conditions":[{"type":"Ready","status":"True","reason":"Enforced","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	must(t, "", "patch", "tapp", "columns", "--subresource=status", "--type=merge", "-p", status)
	got := kubectl(t, "", "get", "tapp", "columns")
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	if len(lines) != 2 {
		t.Fatal(got.Stdout, got.Stderr)
	}
	if diff := cmp.Diff([]string{"NAME", "ENFORCEMENT", "TEMPLATES", "NAMESPACES", "CONFORMING", "VIOLATING", "READY", "AGE"}, strings.Fields(lines[0])); diff != "" {
		t.Error(diff)
	}
	values := strings.Fields(lines[1])
	if diff := cmp.Diff([]string{"columns", "Warn", "2", "3", "0", "1", "True"}, values[:len(values)-1]); diff != "" {
		t.Error(diff)
	}
}

// minimal has the required fields of an approval; the cases add to it and replace parts.
const minimal = `{"namespaces":["team-a"],"templates":[{"namespace":"golden","name":"fedora"}]%s}`

func TestWhatTheAPIServerRefusesOfAnApproval(t *testing.T) {
	with := func(more string) string { return fmt.Sprintf(minimal, ","+more) }
	many := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	for _, tc := range []struct {
		name, spec string
		want       string // in the rejection; none is expected when empty
	}{
		{name: "the least there can be", spec: fmt.Sprintf(minimal, "")},
		{name: "an empty selector says everywhere", spec: `{"namespaceSelector":{},"templates":[{"namespace":"golden","name":"fedora"}]}`},
		{name: "the most there can be", spec: `{"namespaces":` + many(256, `"team-#"`) + `,"templates":` + many(64, `{"namespace":"golden","name":"t#"}`) +
			`,"parameters":` + many(64, `{"name":"P#","allowed":["a","b"],"expression":"true"}`) +
			`,"overrides":` + many(128, `"spec.f#"`) + `,"subjects":` + many(128, `{"kind":"User","name":"u#"}`) +
			`,"namespaceSelector":{"matchExpressions":` + many(16, `{"key":"k#","operator":"In","values":["a","b"]}`) + `}}`},

		{name: "existing disks are allowed", spec: with(`"existingDisks":{"policy":"Allow"}`)},
		{name: "existing disks are denied by default", spec: with(`"existingDisks":{}`)},
		{name: "a policy for existing disks that there is not", spec: with(`"existingDisks":{"policy":"Refuse"}`), want: `spec.existingDisks.policy: Unsupported value: "Refuse"`},
		{name: "existing disks that are selected and denied", spec: with(`"existingDisks":{"selector":{}}`), want: "spec.existingDisks.selector: Invalid value"},
		{name: "a selector of existing disks without values", spec: with(`"existingDisks":{"policy":"Allow","selector":{"matchExpressions":[{"key":"a","operator":"In"}]}}`), want: "operators In and NotIn need values"},
		{name: "no objects", spec: with(`"objects":{"policy":"Deny"}`)},
		{name: "the most objects there can be", spec: with(`"objects":{"allowed":` + many(32, `{"kinds":`+many(32, `"Kind#.example.org"`)+`,"names":`+many(32, `"*-#"`)+`}`) + `}`)},
		{name: "a policy for objects that there is not", spec: with(`"objects":{"policy":"Refuse"}`), want: `spec.objects.policy: Unsupported value: "Refuse"`},
		{name: "objects that are listed and denied", spec: with(`"objects":{"policy":"Deny","allowed":[{"kinds":["Secret"]}]}`), want: "spec.objects.allowed: Invalid value"},
		{name: "objects without kinds", spec: with(`"objects":{"allowed":[{"names":["a"]}]}`), want: "spec.objects.allowed[0].kinds: Required value"},
		{name: "rights to objects that there are not", spec: with(`"objects":{"allowed":[{"kinds":["Secret"],"rights":"Lend"}]}`), want: `spec.objects.allowed[0].rights: Unsupported value: "Lend"`},
		{name: "a resource in place of a kind", spec: with(`"objects":{"allowed":[{"kinds":["secrets"]}]}`), want: "spec.objects.allowed[0].kinds[0]: Invalid value"},
		{name: "a range in place of a name", spec: with(`"objects":{"allowed":[{"kinds":["Secret"],"names":["[a-z]"]}]}`), want: "spec.objects.allowed[0].names[0]: Invalid value"},

		{name: "nowhere", spec: `{"templates":[{"namespace":"golden","name":"fedora"}]}`, want: "spec.namespaces: Required value"},
		{name: "a list of no namespaces", spec: `{"namespaces":[],"templates":[{"namespace":"golden","name":"fedora"}]}`, want: "spec.namespaces: Required value"},
		{name: "kube-system", spec: `{"namespaces":["team-a","kube-system"],"templates":[{"namespace":"golden","name":"fedora"}]}`, want: "never covered"},
		{name: "a namespace twice", spec: `{"namespaces":["a","a"],"templates":[{"namespace":"golden","name":"fedora"}]}`, want: "spec.namespaces[1]: Duplicate value"},
		{name: "a pattern in place of a namespace", spec: `{"namespaces":["team-*"],"templates":[{"namespace":"golden","name":"fedora"}]}`, want: "spec.namespaces[0]"},
		{name: "too many namespaces", spec: `{"namespaces":` + many(257, `"n#"`) + `,"templates":[{"namespace":"golden","name":"fedora"}]}`, want: "spec.namespaces: Too many"},
		{name: "no templates", spec: `{"namespaces":["team-a"],"templates":[]}`, want: "spec.templates"},
		{name: "templates left out", spec: `{"namespaces":["team-a"]}`, want: "spec.templates: Required value"},
		{name: "a template with name and selector", spec: `{"namespaces":["a"],"templates":[{"namespace":"golden","name":"x","selector":{}}]}`, want: "exactly one of name and selector"},
		{name: "a template with neither", spec: `{"namespaces":["a"],"templates":[{"namespace":"golden"}]}`, want: "exactly one of name and selector"},
		{name: "a template without namespace", spec: `{"namespaces":["a"],"templates":[{"name":"x"}]}`, want: "spec.templates[0].namespace: Required value"},
		{name: "a digest of another kind", spec: `{"namespaces":["a"],"templates":[{"namespace":"golden","name":"x","digest":"md5:00"}]}`, want: "spec.templates[0].digest"},
		{name: "a digest in capitals", spec: `{"namespaces":["a"],"templates":[{"namespace":"golden","name":"x","digest":"sha256:` + strings.Repeat("A", 64) + `"}]}`, want: "spec.templates[0].digest"},

		{name: "an operator that there is not", spec: with(`"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Is","values":["b"]}]}`), want: "operator: Unsupported value"},
		{name: "In without values", spec: with(`"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}`), want: "need values"},
		{name: "Exists with values", spec: with(`"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}`), want: "take none"},
		{name: "a value that no label has", spec: with(`"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["b c"]}]}`), want: "values[0]"},
		{name: "a label value that is too long", spec: with(`"namespaceSelector":{"matchLabels":{"a":"` + strings.Repeat("b", 64) + `"}}`), want: "a value at most 63"},

		{name: "a parameter of which nothing is said", spec: with(`"parameters":[{"name":"A"}]`), want: "at least one of anyValue, allowed"},
		{name: "a parameter that is not opened", spec: with(`"parameters":[{"name":"A","anyValue":false}]`), want: "at least one of anyValue, allowed"},
		{name: "any value and listed ones", spec: with(`"parameters":[{"name":"A","anyValue":true,"allowed":["x"]}]`), want: "anyValue must not be combined with allowed, pattern, minimum, maximum and expression"},
		{name: "any value and a bound", spec: with(`"parameters":[{"name":"A","anyValue":true,"minimum":0}]`), want: "anyValue must not be combined"},
		{name: "any value and a message", spec: with(`"parameters":[{"name":"A","anyValue":true,"message":"x"}]`), want: "message needs expression"},
		{name: "a parameter for which no value is allowed", spec: with(`"parameters":[{"name":"A","allowed":[]}]`), want: "at least one of anyValue, allowed"},
		{name: "a parameter twice", spec: with(`"parameters":[{"name":"A","minimum":1},{"name":"A","maximum":1}]`), want: "Duplicate value"},
		{name: "bounds the wrong way round", spec: with(`"parameters":[{"name":"A","minimum":2,"maximum":1}]`), want: "minimum must not be above maximum"},
		{name: "a message without an expression", spec: with(`"parameters":[{"name":"A","minimum":2,"message":"x"}]`), want: "message needs expression"},

		{name: "an override of the name", spec: with(`"overrides":["metadata.name"]`), want: "spec.overrides[0]"},
		{name: "an override of everything", spec: with(`"overrides":["*"]`), want: "spec.overrides[0]"},
		{name: "an override that only begins like spec", spec: with(`"overrides":["specs.x"]`), want: "spec.overrides[0]"},
		{name: "an override in two lines", spec: with(`"overrides":["spec.a\nspec"]`), want: "spec.overrides[0]"},

		{name: "a subject of an unknown kind", spec: with(`"subjects":[{"kind":"Robot","name":"x"}]`), want: "Unsupported value"},
		{name: "a service account without namespace", spec: with(`"exemptSubjects":[{"kind":"ServiceAccount","name":"x"}]`), want: "a ServiceAccount needs a namespace"},
		{name: "a user with a namespace", spec: with(`"exemptSubjects":[{"kind":"User","name":"x","namespace":"y"}]`), want: "takes none"},
		{name: "generated values that users choose", spec: with(`"generatedValues":"Allow"`)},
		{name: "another choice of generated values", spec: with(`"generatedValues":"Forbid"`), want: `spec.generatedValues: Unsupported value: "Forbid"`},
		{name: "labels that refer to templates", spec: with(`"templateLabels":"Accept"`)},
		{name: "another choice about labels", spec: with(`"templateLabels":"Trust"`), want: `spec.templateLabels: Unsupported value: "Trust"`},
		{name: "another enforcement", spec: with(`"enforcement":"Dryrun"`), want: "spec.enforcement: Unsupported value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"TemplateApproval","metadata":{"name":"judged"},"spec":` + tc.spec + `}`
			got := kubectl(t, object, "create", "--dry-run=server", "-f", "-")
			switch {
			case tc.want == "" && got.Code != 0:
				t.Errorf("refused: %s", got.Stderr)
			case tc.want != "" && (got.Code == 0 || !strings.Contains(got.Stderr, tc.want)):
				t.Errorf("want a refusal with %q, got %s%s", tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}
