package rego

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mistyped are policies that OPA's type checker permits although a rule never finds anything, or always does.
var mistyped = map[string]struct{ source, want string }{
	"a field of an argument": {
		"package p\n\nbig(vm) if vm.spec.template.spec.domain.cpu.coress > 4\n\ndeny contains \"x\" if big(input.object)\n",
		"3:45: unknown field: vm.spec.template.spec.domain.cpu has no \"coress\"; did you mean cores?",
	},
	"a field of an argument of a helper of a helper": {
		"package p\n\ncores(cpu) := cpu.coress\n\nbig(vm) if cores(vm.spec.template.spec.domain.cpu) > 4\n\ndeny contains \"x\" if {\n\tsome vm in [input.object, input.oldObject]\n\tbig(vm)\n}\n",
		"3:19: unknown field: cpu has no \"coress\"; did you mean cores?",
	},
	"a field of an argument of a function whose name has parts": {
		"package p\n\nsizes.big(vm) if vm.spec.template.spec.domain.cpu.coress > 4\n\ndeny contains \"x\" if sizes.big(input.object)\n",
		"3:51: unknown field: vm.spec.template.spec.domain.cpu has no \"coress\"; did you mean cores?",
	},
	"a field of an element in a comprehension": {
		"package p\n\nis_scsi(disk) if disk.dsk.bus == \"scsi\"\n\ndeny contains \"x\" if {\n\tcount([d | some d in input.object.spec.template.spec.domain.devices.disks; is_scsi(d)]) > 1\n}\n",
		"3:23: unknown field: disk has no \"dsk\"; did you mean disk?",
	},
	"a field of an element in every": {
		"package p\n\nis_scsi(disk) if disk.dsk.bus == \"scsi\"\n\ndeny contains \"x\" if {\n\tevery d in input.object.spec.template.spec.domain.devices.disks { is_scsi(d) }\n}\n",
		"3:23: unknown field: disk has no \"dsk\"; did you mean disk?",
	},
	"a field in the else of a function": {
		"package p\n\nsize(vm) := 1 if {\n\tvm.spec.running\n} else := vm.spec.runing if {\n\ttrue\n}\n\ndeny contains \"x\" if size(input.object) == 2\n",
		"5:19: unknown field: vm.spec has no \"runing\"; did you mean running?",
	},
	"a path of object.get": {
		"package p\n\ndeny contains \"x\" if object.get(input.object, [\"spec\", \"template\", \"spec\", \"domian\"], {}) == {}\n",
		"3:76: unknown field: input.object.spec.template.spec has no \"domian\"; did you mean domain?",
	},
	"a key of object.get": {
		"package p\n\ndeny contains \"x\" if {\n\tspec := input.object.spec\n\tobject.get(spec, \"runing\", false)\n}\n",
		"5:19: unknown field: input.object.spec has no \"runing\"; did you mean running?",
	},
	"a path of walk": {
		"package p\n\ndeny contains \"x\" if {\n\twalk(input.object, [[\"spec\", \"runing\"], value])\n\tvalue == true\n}\n",
		"4:31: unknown field: input.object.spec has no \"runing\"; did you mean running?",
	},
	"a number and a string": {
		"package p\n\ndeny contains \"x\" if input.object.spec.template.spec.domain.cpu.cores > \"4\"\n",
		"3:22: a number is compared with a string: the result does not depend on their values",
	},
	"a number and a string by a variable": {
		"package p\n\ndeny contains \"x\" if {\n\tlimit := \"4\"\n\tcores := input.object.spec.template.spec.domain.cpu.cores\n\tcores >= limit\n}\n",
		"6:2: a number is compared with a string: the result does not depend on their values",
	},
	"a quantity": {
		"package p\n\ndeny contains \"x\" if input.object.spec.template.spec.domain.memory.guest > 4\n",
		"3:22: a value that may be a number or a string is compared: any string is greater than any number; compare data.lib.quantity of it",
	},
	"an operation": {
		"package p\n\ndeny contains \"x\" if input.request.operation == \"CREAT\"\n",
		"3:49: input.request.operation is never \"CREAT\"; did you mean CREATE?; it is one of CREATE, UPDATE, DELETE",
	},
	"an operation of a variable in a list": {
		"package p\n\ndeny contains \"x\" if {\n\trequest := input.request\n\trequest.operation in [\"CREATE\", \"UPDAT\"]\n}\n",
		"5:34: input.request.operation is never \"UPDAT\"; did you mean UPDATE?; it is one of CREATE, UPDATE, DELETE",
	},
	"an operation of an argument": {
		"package p\n\nis_create(request) if request.operation == \"create\"\n\ndeny contains \"x\" if is_create(input.request)\n",
		"3:44: input.request.operation is never \"create\"; it is one of CREATE, UPDATE, DELETE",
	},
	"a kind": {
		"package p\n\ndeny contains \"x\" if input.request.kind == \"VM\"\n",
		"3:44: input.request.kind is never \"VM\"; it is one of VirtualMachine",
	},
	"a run strategy": {
		"package p\n\ndeny contains \"x\" if input.object.spec.runStrategy != \"always\"\n",
		"3:55: input.object.spec.runStrategy is never \"always\"; did you mean Always?; it is one of Always, Halted, Manual, Once, RerunOnFailure, WaitAsReceiver",
	},
	"a bus of an element": {
		"package p\n\ndeny contains \"x\" if {\n\tsome disk in input.object.spec.template.spec.domain.devices.disks\n\tdisk.disk.bus == \"ide\"\n}\n",
		"5:19: input.object.spec.template.spec.domain.devices.disks[_].disk.bus is never \"ide\"; it is one of virtio, sata, scsi, usb",
	},
	"a template that is not there": {
		"package p\n\ndeny contains \"x\" if not input.template\n",
		"3:22: not input.template is never true: it is null where there is none, which not does not match; write input.template == null",
	},
	"a finding without msg": {
		"package p\n\ndeny contains {\"message\": \"x\"} if input.object\n",
		"3:15: deny contains what is no finding: it is a string, or an object with the strings msg, field and fix, of which msg is required",
	},
	"a finding that is a number": {
		"package p\n\nwarn contains input.object.spec.template.spec.domain.cpu.cores\n",
		"3:15: warn contains what is no finding: it is a string, or an object with the strings msg, field and fix, of which msg is required",
	},
	"a parameter of the template that is a number": {
		"package p\n\ndeny contains \"x\" if input.parameters.CORES > 4\n",
		"3:22: a string is compared with a number: the result does not depend on their values",
	},
	"a label that has fields": {
		"package p\n\ndeny contains \"x\" if input.object.metadata.labels.owner.name == \"a\"\n",
		"3:57: input.object.metadata.labels.owner has no fields: it is a string",
	},
	"a time zone": {
		"package p\n\ndeny contains \"x\" if {\n\tnow := time.parse_rfc3339_ns(input.request.time)\n\ttime.clock([now, \"Europe/Zürich\"])[0] > 20\n}\n",
		"5:19: there is no time zone \"Europe/Zürich\"; time zones have the names of the IANA database, such as UTC and Europe/Zurich",
	},
	"the time zone of the host": {
		"package p\n\ndeny contains \"x\" if time.weekday([time.parse_rfc3339_ns(input.request.time), \"Local\"]) == \"Sunday\"\n",
		"3:79: there is no time zone \"Local\"; time zones have the names of the IANA database, such as UTC and Europe/Zurich",
	},
}

func TestMistypedPoliciesAreRejected(t *testing.T) {
	for name, tc := range mistyped {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problemsIn(Definition{Name: "mistyped", Source: tc.source})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// Policies that resemble mistakes, and are none.
var wellTyped = map[string]string{
	"a function of several kinds of values":     "package p\n\nsize(x) := x if is_number(x)\n\nsize(x) := count(x) if is_string(x)\n\ndeny contains \"x\" if {\n\tsize(input.object.metadata.name) > 3\n\tsize(input.object.spec.template.spec.domain.cpu.cores) > 3\n}\n",
	"a function that one call has no field for": "package p\n\nname(x) := x.name\n\ndeny contains \"x\" if {\n\tname(input.object.metadata) == \"a\"\n\tname(input.namespace) == \"b\"\n}\n",
	"a function that is called with anything":   "package p\n\nname(x) := x.nam\n\ndeny contains \"x\" if {\n\tname(input.object.metadata) == \"a\"\n\tname(input.object.metadata.labels) == \"b\"\n}\n",
	"a body for other values than are used":     "package p\n\nsize(x) := x if is_number(x)\n\nsize(x) := count(x) if is_string(x)\n\ndeny contains \"x\" if size(input.object.spec.template.spec.domain.cpu.cores) > 3\n",
	"a quantity that the caller checks":         "package p\n\nbig(x) if x > 4\n\ndeny contains \"x\" if {\n\tguest := input.object.spec.template.spec.domain.memory.guest\n\tis_number(guest)\n\tbig(guest)\n}\n",
	"a function behind one of unknown values":   "package p\n\nname(x) := x.title\n\nof(x) := name(x)\n\ndeny contains \"x\" if {\n\tname(input.object.metadata) == \"a\"\n\tof(data.parameters.any) == \"b\"\n}\n",
	"a function behind many":                    "package p\n\nname(x) := x.title\n\nf1(x) := name(x.labels)\n\nf2(x) := f1(x)\n\nf3(x) := f2(x)\n\nf4(x) := f3(x)\n\nf5(x) := f4(x)\n\ndeny contains \"x\" if {\n\tname(input.object.metadata) == \"a\"\n\tf5(input.object.metadata) == \"b\"\n}\n",
	"functions with the same last name":         "package p\n\nsizes.large(x) if x.cores > 4\n\nlarge(x, most) if count(x) > most\n\ndeny contains \"x\" if {\n\tsizes.large(input.object.spec.template.spec.domain.cpu)\n\tlarge(input.object.spec.template.spec.domain.devices.disks, 4)\n}\n",
	"a guarded quantity":                        "package p\n\ndeny contains \"x\" if {\n\tguest := input.object.spec.template.spec.domain.memory.guest\n\tis_number(guest)\n\tguest > 4\n}\n",
	"a normalised quantity":                     "package p\n\nimport data.lib\n\ndeny contains \"x\" if lib.quantity(input.object.spec.template.spec.domain.memory.guest) > 4\n",
	"a label by object.get":                     "package p\n\ndeny contains \"x\" if object.get(input.object.metadata.labels, \"owner\", \"\") == \"\"\n",
	"an optional parameter by object.get":       "package p\n\ndeny contains \"x\" if object.get(data.parameters, \"max\", 4) == 4\n",
	"a finding of parts":                        "package p\n\ndeny contains finding if {\n\tfinding := {\"msg\": \"x\", \"field\": concat(\".\", [\"a\", input.object.metadata.name])}\n}\n",
	"a finding of unknown type":                 "package p\n\ndeny contains finding if {\n\tsome finding in data.parameters.findings\n}\n",
	"a part of input that is null":              "package p\n\ndeny contains \"x\" if input.template == null\n",
	"a field that is not there":                 "package p\n\ndeny contains \"x\" if not input.template.labels.a\n",
	"a time zone of a parameter":                "package p\n\ndeny contains \"x\" if time.clock([time.parse_rfc3339_ns(input.request.time), data.parameters.zone])[0] > 20\n",
	"a time zone":                               "package p\n\ndeny contains \"x\" if time.clock([time.parse_rfc3339_ns(input.request.time), \"UTC\"])[0] > 20\n",
	"a time zone of the database":               "package p\n\ndeny contains \"x\" if time.clock([time.parse_rfc3339_ns(input.request.time), \"America/Argentina/Buenos_Aires\"])[0] > 20\n",
	"a comparison of strings":                   "package p\n\ndeny contains \"x\" if input.object.metadata.name > \"m\"\n",
	"a recursive use in every and not":          "package p\n\nok(disk) if disk.disk.bus in {\"virtio\", \"scsi\"}\n\ndeny contains \"x\" if {\n\tnot all_ok\n}\n\nall_ok if {\n\tevery disk in input.object.spec.template.spec.domain.devices.disks { ok(disk) }\n}\n",
}

func TestWellTypedPoliciesAreCompiled(t *testing.T) { compileEach(t, wellTyped) }

// Without a schema, parameters have the types of their values.
func TestParametersWithoutASchemaAreTypedByTheirValues(t *testing.T) {
	parameters := map[string]any{"labels": []any{"a"}, "limits": map[string]any{"cores": int64(4)}, "mixed": []any{"a", true}, "none": nil}
	for name, tc := range map[string]struct{ source, want string }{
		"a misspelt name":           {"deny contains \"x\" if data.parameters.lablels[_] == \"a\"", "3:38: unknown field: data.parameters has no \"lablels\"; did you mean labels?"},
		"a misspelt field":          {"deny contains \"x\" if data.parameters.limits.core == 4", "3:45: unknown field: data.parameters.limits has no \"core\"; did you mean cores?"},
		"a wrong type":              {"deny contains \"x\" if data.parameters.limits.cores > \"4\"", "3:22: a number is compared with a string: the result does not depend on their values"},
		"elements of several types": {"deny contains \"x\" if data.parameters.mixed[_].a == 4", ""},
		"null":                      {"deny contains \"x\" if data.parameters.none.a == 4", ""},
		"right":                     {"deny contains \"x\" if data.parameters.limits.cores > 4", ""},
		"optional":                  {"deny contains \"x\" if object.get(data.parameters, \"maximum\", 4) > 4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemsIn(Definition{Source: "package p\n\n" + tc.source + "\n", Parameters: parameters}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Parameters of the policy are in data.parameters, those of the template in input.parameters.
func TestParametersInTheWrongPlace(t *testing.T) {
	const policy = "package p\n\ndeny contains \"x\" if input.parameters.maximum == \"4\"\n"
	for name, tc := range map[string]struct {
		definition Definition
		want       string
	}{
		"set":       {Definition{Source: policy, Parameters: map[string]any{"maximum": "4"}}, "3:39: input.parameters are those of the template; write data.parameters.maximum for the parameter of the policy"},
		"described": {Definition{Source: policy, Schema: map[string]any{"type": "object", "properties": map[string]any{"maximum": map[string]any{"type": "string"}}}}, "3:39: input.parameters are those of the template; write data.parameters.maximum for the parameter of the policy"},
		"another":   {Definition{Source: policy, Parameters: map[string]any{"other": "4"}}, ""},
		"both":      {Definition{Source: "package p\n\nimport data.parameters\n\ndeny contains \"x\" if input.parameters.maximum == parameters.maximum\n", Parameters: map[string]any{"maximum": "4"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemsIn(tc.definition); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Policies that would take long to check: the limits end the check, which then permits.
func TestTheCheckOfTypesIsBounded(t *testing.T) {
	bodies := strings.Builder{}
	for i := range 250 {
		fmt.Fprintf(&bodies, "f(x) if x.a%d.b == %d\n\n", i, i)
	}
	calls := strings.Builder{}
	for i, path := range []string{"metadata", "spec", "spec.template", "spec.template.spec", "spec.template.spec.domain", "spec.template.spec.domain.cpu", "spec.template.spec.domain.devices"} {
		fmt.Fprintf(&calls, "deny contains \"%d\" if f(input.object.%s)\n\n", i, path)
	}
	comparisons := strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(&comparisons, "deny contains \"x%d\" if {\n\tsome d in input.object.spec.template.spec.domain.devices.disks\n", i)
		for range 25 {
			comparisons.WriteString("\td.bootOrder > d.disk.bus\n")
		}
		comparisons.WriteString("}\n\n")
	}
	for name, tc := range map[string]struct{ source, want string }{
		"more bodies than are checked": {bodies.String() + calls.String(), ""},
		"many comparisons":             {comparisons.String(), "problems are not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got := ""
			if _, err := testCompiler.Compile(ctx, Definition{Source: "package p\n\n" + tc.source}); err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %.400s, want %s", got, tc.want)
			}
		})
	}
}
