package rego

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// badPolicies are invalid sources, with all problems that are reported for them.
var badPolicies = map[string]struct {
	source string
	want   string
}{
	"v0 syntax": {
		"package p\n\ndeny[msg] {\n\tmsg := \"no\"\n}\n",
		"3:1: `if` keyword is required before rule body; this is Rego v0, and policies are Rego v1\n" +
			"3:1: `contains` keyword is required for partial set rules; this is Rego v0, and policies are Rego v1",
	},
	"no text at all":    {" \n", "the policy is empty"},
	"only a comment":    {"# nothing\n", "the policy is empty"},
	"no package":        {"deny contains \"x\" if true\n", "1:1: package expected"},
	"not UTF-8":         {"package p\xff\n", "the policy is not valid UTF-8"},
	"a syntax error":    {"package p\n\ndeny contains \"x\" if {\n\tinput.object.\n}\n", "5:1: unexpected whitespace token: expected identifier"},
	"a missing bracket": {"package p\n\ndeny contains \"x\" if {\n\ttrue\n", "5:1: unexpected eof token"},
	"too many bytes": {
		"package p\n" + strings.Repeat("#", MaxSourceBytes),
		"the policy has 65546 bytes; at most 65536 are allowed",
	},
	"brackets nested too deeply": {
		"package p\nx := " + strings.Repeat("[", 65) + strings.Repeat("]", 65),
		"2:70: brackets are nested more than 64 deep",
	},
	"minuses nested too deeply": {
		"package p\nx := " + strings.Repeat("-", 65) + "1",
		"2:70: brackets are nested more than 64 deep",
	},
	"comprehensions nested too deeply": {
		"package p\ndeny contains \"x\" if {\n\tx := [a | a := [b | b := [c | c := [d | d := [e | e := [f | f := 1]]]]]]\n\tcount(x) > 1\n}\n",
		"3:58: comprehensions are nested more than 5 deep",
	},
	"no entry rule": {
		"package p\n\ndenies contains \"x\" if true\n",
		"1:1: the policy has neither a rule deny nor a rule warn",
	},
	"an entry rule of Gatekeeper": {
		"package p\n\nviolation contains {\"msg\": \"x\"} if true\n",
		"1:1: the policy has neither a rule deny nor a rule warn; what Gatekeeper calls violation is called deny here",
	},
	"an entry that is a complete rule": {
		"package p\n\ndeny if true\n",
		"3:1: deny must be a set of messages; write: deny contains message if { … }",
	},
	"an entry that is a value": {
		"package p\n\nwarn := [\"x\"]\n",
		"3:1: warn must be a set of messages; write: warn contains message if { … }",
	},
	"an entry that is an object": {
		"package p\n\ndeny.x contains \"x\" if true\n",
		"3:1: deny must be a set of messages; write: deny contains message if { … }",
	},
	"an entry that is a function": {
		"package p\n\ndeny(x) := x\n",
		"3:1: deny is a function; write: deny contains message if { … }",
	},
	"an entry with a default": {
		"package p\n\ndefault deny := false\n",
		"3:1: deny must not have a default: it is empty when nothing is found",
	},
	"an unknown field": {
		"package p\n\ndeny contains \"x\" if {\n\tinput.object.spec.template.spec.domain.cpu.coress > 1\n}\n",
		"4:45: unknown field: input.object.spec.template.spec.domain.cpu has no \"coress\"; did you mean cores?",
	},
	"an unknown field of a variable": {
		"package p\n\ndeny contains \"x\" if {\n\tsome disk in input.object.spec.template.spec.domain.devices.disks\n\tdisk.dedicatedIOThreads\n}\n",
		"5:7: unknown field: disk has no \"dedicatedIOThreads\"; did you mean dedicatedIOThread?",
	},
	"unknown fields in several places": {
		"package p\n\ndeny contains \"x\" if input.objct\n\nwarn contains \"y\" if input.request.usr\n",
		"3:28: unknown field: input has no \"objct\"; did you mean object?\n" +
			"5:36: unknown field: input.request has no \"usr\"",
	},
	"an unknown field of the instance type": {
		"package p\n\ndeny contains \"x\" if input.instancetype.spec.cpu.cores > 2\n",
		"3:50: unknown field: input.instancetype.spec.cpu has no \"cores\"",
	},
	"a field of a text": {
		"package p\n\ndeny contains \"x\" if input.object.metadata.name.first\n",
		"3:49: input.object.metadata.name has no fields: it is a string",
	},
	"a comparison that is never true": {
		"package p\n\ndeny contains \"x\" if input.object.spec.running == \"yes\"\n",
		"3:22: match error: boolean and string are never equal",
	},
	"a wrong argument": {
		"package p\n\ndeny contains \"x\" if startswith(input.object.spec.template.spec.domain.cpu.cores, \"1\")\n",
		"3:22: startswith: invalid argument(s): have (number, string), want (string, string)",
	},
	"a misspelt document": {
		"package p\n\ndeny contains \"x\" if data.parametres.max > 1\n",
		"3:22: data.parametres.max does not exist: a policy sees its own package, data.parameters and data.lib",
	},
	"an import of a document that is not there": {
		"package p\n\nimport data.inventory\n\ndeny contains \"x\" if inventory.x\n",
		"3:8: data.inventory does not exist: a policy sees its own package, data.parameters and data.lib\n" +
			"5:22: data.inventory.x does not exist: a policy sees its own package, data.parameters and data.lib",
	},
	"all of data": {
		"package p\n\ndeny contains \"x\" if {\n\tsome name\n\tdata[name]\n}\n",
		"5:2: data does not exist: a policy sees its own package, data.parameters and data.lib",
	},
	"a helper that is not there": {
		"package p\n\nimport data.lib\n\ndeny contains \"x\" if count(lib.imags) > 1\n",
		"5:28: data.lib has no imags; did you mean image?",
	},
	"helpers without their import": {
		"package p\n\ndeny contains \"x\" if lib.quantity(\"1\") > 1\n\nwarn contains lib.cores\n",
		"3:22: undefined function lib.quantity; write import data.lib",
	},
	"a value of helpers without their import": {
		"package p\n\nwarn contains \"x\" if lib.cores > 1\n",
		"3:22: var lib is unsafe; write import data.lib",
	},
	"a helper of helpers": {
		"package p\n\ndeny contains \"x\" if data.lib.network_name(\"x\")\n",
		"3:22: data.lib has no network_name; did you mean networks?",
	},
	"all helpers": {
		"package p\n\ndeny contains \"x\" if {\n\tsome name\n\tdata.lib[name]\n}\n",
		"5:2: name one helper: data.lib.NAME",
	},
	"a rule of its own that is not there": {
		"package p.q\n\nallowed := 1\n\ndeny contains \"x\" if data.p.q.alowed\n",
		"5:22: the policy has no rule alowed; did you mean allowed?",
	},
	"a package that is taken": {
		"package lib.mine\n\ndeny contains \"x\" if true\n",
		"1:1: package lib.mine is taken; call the package something else",
	},
	"input replaced": {
		"package p\n\nallowed if input.object\n\ndeny contains \"x\" if not allowed with input as {}\n",
		"5:34: with is for tests; a policy cannot replace its input",
	},
	"a call of the network": {
		"package p\n\ndeny contains \"x\" if http.send({\"method\": \"get\", \"url\": \"http://x\"}).status_code == 200\n",
		"3:22: http.send is not available to policies",
	},
	"a call of the clock": {
		"package p\n\ndeny contains \"x\" if time.now_ns() > 1\n",
		"3:22: time.now_ns is not available to policies",
	},
	"a call that does not exist": {
		"package p\n\ndeny contains \"x\" if sprint(\"x\")\n",
		"3:22: undefined function sprint",
	},
	"a variable without value": {
		"package p\n\ndeny contains message if true\n",
		"3:15: var message is unsafe",
	},
	"an unused variable": {
		"package p\n\ndeny contains \"x\" if {\n\tcores := 1\n\ttrue\n}\n",
		"4:2: assigned var cores unused",
	},
	"a recursive rule": {
		"package p\n\nf(x) := f(x)\n\ndeny contains \"x\" if f(1)\n",
		"3:1: rule f is recursive: f -> f",
	},
	"an unknown severity": {
		"# METADATA\n# title: T\n# custom:\n#   severity: severe\npackage p\n\ndeny contains \"x\" if true\n",
		"1:1: custom.severity is severe; it can be low, medium, high or critical",
	},
	"schemas in annotations": {
		"package p\n\n# METADATA\n# schemas:\n#   - input: schema.x\ndeny contains \"x\" if true\n",
		"3:1: schemas are not supported in policies: input has KubeVirt's types, and parametersSchema describes the parameters",
	},
	"several mistakes of different kinds": {
		"package p\n\ndeny contains \"x\" if data.foo\n\ndefault warn := 1\n\ndeny contains \"y\" if input.x\n",
		"3:22: data.foo does not exist: a policy sees its own package, data.parameters and data.lib\n" +
			"5:1: warn must not have a default: it is empty when nothing is found\n" +
			"7:28: unknown field: input has no \"x\"",
	},
	"a new version of the language": {
		"package p\n\nimport rego.v2\n\ndeny contains \"x\" if true\n",
		"3:8: invalid import, `rego.v2` is not supported by current capabilities",
	},
}

func TestBadPoliciesAreRefusedWithTheirPlaces(t *testing.T) {
	for name, tc := range badPolicies {
		t.Run(name, func(t *testing.T) {
			policy, err := testCompiler.Compile(context.Background(), Definition{Name: "bad", Source: tc.source})
			var rejected *CompileError
			if !errors.As(err, &rejected) {
				t.Fatalf("got %v, %v", policy, err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			lines := strings.Split(tc.source, "\n")
			for _, problem := range rejected.Problems {
				if problem.Row > 0 && problem.Row <= len(lines) && problem.Line != shorten(lines[problem.Row-1], 200) {
					t.Errorf("row %d is %q", problem.Row, problem.Line)
				}
				if problem.Code == "" {
					t.Errorf("%v has no code", problem)
				}
			}
		})
	}
}

var goodPolicies = map[string]string{
	"the import of Rego v1":                "package p\n\nimport rego.v1\n\ndeny contains \"x\" if input.object.spec.running\n",
	"an import of a part of input":         "package p\n\nimport input.object.spec.template.spec as spec\n\ndeny contains \"x\" if spec.domain.cpu.cores > 1\n",
	"its own package by name":              "package p.q\n\nallowed := 1\n\ndeny contains \"x\" if data.p.q.allowed == 2\n",
	"its own package by import":            "package p.q\n\nimport data.p.q\n\nallowed := 1\n\ndeny contains \"x\" if q.allowed == 2\n",
	"a package called policy":              "package policy\n\nallowed := 1\n\ndeny contains \"x\" if data.policy.allowed == 2\n",
	"parameters that are not described":    "package p\n\nimport data.parameters\n\ndeny contains \"x\" if parameters.a.b[_] == 2\n",
	"free keys of labels":                  "package p\n\ndeny contains \"x\" if input.object.metadata.labels[\"a.b/c\"] == \"x\"\n",
	"free metadata of the running machine": "package p\n\ndeny contains \"x\" if input.object.spec.template.metadata.annotations[\"a\"] == \"x\"\n",
	"quantities as numbers and texts":      "package p\n\ndeny contains \"x\" if {\n\tinput.object.spec.template.spec.domain.memory.guest == 1\n\tinput.object.spec.template.spec.domain.memory.guest == \"1\"\n}\n",
	"print, which does nothing":            "package p\n\ndeny contains \"x\" if print(input.object)\n",
	"comprehensions five deep":             "package p\ndeny contains \"x\" if {\n\tx := [a | a := [b | b := [c | c := [d | d := [e | e := 1]]]]]\n\tcount(x) > 1\n}\n",
	"template strings":                     "package p\n\ndeny contains $\"{input.object.metadata.name} is refused\" if true\n",
	"only warnings":                        "package p\n\nwarn contains \"x\" if true\n",
	"rules named like functions of OPA":    "package p\n\nconcat := 1\n\ndeny contains \"x\" if concat == 2\n",
	"the time of the request":              "package p\n\ndeny contains \"x\" if time.parse_rfc3339_ns(input.request.time) > 1\n",
	"brackets in texts and in comments":    "package p\n\n# " + strings.Repeat("[", 100) + "\ndeny contains \"" + strings.Repeat("[", 100) + "\\\"\" if regex.match(`" + strings.Repeat("[", 100) + "`, \"\")\n",
	"a deep reference":                     "package p\n\ndeny contains \"x\" if input.template.parameters[_].sensitive\n",
}

func TestGoodPoliciesAreCompiled(t *testing.T) { compileEach(t, goodPolicies) }

// compileEach requires that sources compile, which are given by the names of the cases.
func compileEach(t *testing.T, sources map[string]string) {
	t.Helper()
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			if got := problemsIn(Definition{Name: "good", Source: source}); got != "" {
				t.Error(got)
			}
		})
	}
}

// problemsIn returns the error of a policy that does not compile.
func problemsIn(d Definition) string {
	if _, err := testCompiler.Compile(context.Background(), d); err != nil {
		return err.Error()
	}
	return ""
}

func TestAPolicyIsTypedByTheKindsItIsAbout(t *testing.T) {
	const (
		ofTemplate = "package p\n\ndeny contains \"x\" if input.object.spec.message == \"\"\n"
		ofRequest  = "package p\n\ndeny contains \"x\" if input.object.spec.virtualMachineRef.name == \"\"\n"
		ofVM       = "package p\n\ndeny contains \"x\" if input.object.spec.runStrategy == \"\"\n"
	)
	for name, tc := range map[string]struct {
		kinds  []string
		source string
		want   string
	}{
		"a machine by default":                 {nil, ofVM, ""},
		"not a template by default":            {nil, ofTemplate, "3:40: unknown field: input.object.spec has no \"message\""},
		"a template":                           {[]string{KindVirtualMachineTemplate}, ofTemplate, ""},
		"not a machine":                        {[]string{KindVirtualMachineTemplate}, ofVM, "3:40: unknown field: input.object.spec has no \"runStrategy\""},
		"a request":                            {[]string{KindVirtualMachineTemplateRequest}, ofRequest, ""},
		"both, reading the first":              {[]string{KindVirtualMachine, KindVirtualMachineTemplate}, ofVM, ""},
		"both, reading the second":             {[]string{KindVirtualMachineTemplate, KindVirtualMachine}, ofTemplate, ""},
		"a kind that policies cannot be about": {[]string{"Pod"}, ofVM, `match.kinds: policies cannot be about "Pod"; they can be about VirtualMachine, VirtualMachineTemplate, VirtualMachineTemplateRequest, VirtualMachineTemplateImport, VirtualMachineTemplateExport`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemsIn(Definition{Name: "kinds", Source: tc.source, Kinds: tc.kinds}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   Metadata
	}{
		"nothing is said": {"package p\n\nwarn contains \"x\" if true\n", Metadata{Severity: SeverityMedium}},
		"everything is said": {
			"# METADATA\n# title: No hosts\n# description: |\n#   Hosts are\n#   not for machines.\n# custom:\n#   severity: critical\npackage p\n\nwarn contains \"x\" if true\n",
			Metadata{Title: "No hosts", Description: "Hosts are\nnot for machines.", Severity: SeverityCritical},
		},
		"what a rule says is not of the policy": {
			"package p\n\n# METADATA\n# title: A rule\n# custom:\n#   severity: low\nwarn contains \"x\" if true\n",
			Metadata{Severity: SeverityMedium},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := mustCompile(t, Definition{Source: tc.source})
			if diff := cmp.Diff(tc.want, policy.Metadata()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDigestSaysWhetherPoliciesAreTheSame(t *testing.T) {
	base := Definition{Name: "a", Source: "package p\n\nwarn contains \"x\" if true\n", Parameters: map[string]any{"a": 1, "b": 2}}
	digest := func(change func(*Definition)) string {
		d := base
		change(&d)
		return mustCompile(t, d).Digest()
	}
	first := digest(func(*Definition) {})
	if !strings.HasPrefix(first, "sha256:") || len(first) != len("sha256:")+64 {
		t.Errorf("digest %q", first)
	}
	if other := digest(func(d *Definition) { d.Name = "b" }); other != first {
		t.Error("the name changes the digest")
	}
	if other := digest(func(d *Definition) { d.Parameters = map[string]any{"b": 2, "a": 1} }); other != first {
		t.Error("the order of the parameters changes the digest")
	}
	for name, change := range map[string]func(*Definition){
		"source":     func(d *Definition) { d.Source += "\n" },
		"parameters": func(d *Definition) { d.Parameters = map[string]any{"a": 1} },
		"schema": func(d *Definition) {
			d.Schema = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		},
		"kinds": func(d *Definition) { d.Kinds = []string{KindVirtualMachineTemplate} },
	} {
		if digest(change) == first {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestCompileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := testCompiler.Compile(ctx, Definition{Source: "package p\n\nwarn contains \"x\" if true\n"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
