package rego

import (
	"math"
	"strings"
	"testing"
)

func reading(t *testing.T, source string) *Policy {
	t.Helper()
	return mustCompile(t, Definition{Name: "p", Source: source, AnyFields: true})
}

// TestOnlyWhatIsReadIsConverted compares each way to read a part of the input with the whole input, and has what is converted for it.
func TestOnlyWhatIsReadIsConverted(t *testing.T) {
	document := func() Document {
		return Document{
			Request: Request{Operation: "CREATE", Kind: KindVirtualMachine, Namespace: "team-a", Name: "web", UserInfo: UserInfo{
				Username: "ada", Groups: []string{"g1", "g2"}, Extra: map[string][]string{"scopes": {"x"}, "other": {"y"}},
			}},
			Object: map[string]any{
				"metadata": map[string]any{"name": "web", "labels": map[string]any{"app": "web", "owner": "ada"}},
				"spec": map[string]any{"runStrategy": "Always", "template": map[string]any{"spec": map[string]any{
					"domain":  map[string]any{"cpu": map[string]any{"cores": 4.0, "sockets": 1.0}},
					"volumes": []any{map[string]any{"name": "a", "hostDisk": map[string]any{"path": "/a"}}, map[string]any{"name": "b"}},
				}}},
			},
			Namespace:    Namespace{Name: "team-a", Labels: map[string]string{"env": "prod", "tier": "1"}},
			Template:     &Template{Namespace: "golden", Name: "box", Labels: map[string]string{"os": "linux"}, Parameters: []TemplateParameter{{Name: "SIZE", Enum: []string{"s"}}}},
			Parameters:   map[string]string{"SIZE": "s", "NAME": "web"},
			Instancetype: map[string]any{"spec": map[string]any{"cpu": map[string]any{"guest": 2.0}}},
			Objects:      []map[string]any{{"kind": "Secret", "type": "Opaque"}},
		}
	}
	for name, tc := range map[string]struct {
		body string
		// has and lacks are texts in what is converted, and texts that are not in it.
		has, lacks []string
	}{
		"a field": {`input.object.spec.template.spec.domain.cpu.cores == 4`, []string{`"cores": 4`}, []string{`sockets`, `volumes`, `metadata`, `Always`, `linux`, `scopes`}},
		"a field of each item": {`input.object.spec.template.spec.volumes[_].name == "b"`, []string{`{"name": "b"}`},
			[]string{`hostDisk`, `domain`}},
		"an item": {`input.object.spec.template.spec.volumes[1].name == "b"`, []string{`{"name": "b"}`}, []string{`hostDisk`}},
		"items as a whole": {`some v in input.object.spec.template.spec.volumes
			v.hostDisk.path == "/a"`, []string{`hostDisk`}, []string{`domain`}},
		"each and one": {`some k
			input.object.spec.template.spec[k].cpu.cores == 4
			input.object.spec.template.spec.domain.cpu.sockets == 1`, []string{`cores`, `sockets`}, []string{`hostDisk`, `Always`}},
		"a computed key": {`k := concat("", ["la", "bels"])
			input.object.metadata[k].app == "web"`, []string{`"app": "web"`}, []string{`owner`}},
		"object.get":          {`object.get(input.object, ["metadata", "labels", "owner"], "") == "ada"`, []string{`owner`}, []string{`app`, `volumes`}},
		"object.get of a key": {`object.get(input.object.metadata, "name", "") == "web"`, []string{`"name": "web"`}, []string{`owner`, `volumes`}},
		"object.get of a computed key": {`key := input.parameters.SIZE
			object.get(input.object, ["metadata", "labels", key], "none") == "none"`, []string{`owner`, `SIZE`}, []string{`volumes`, `NAME`}},
		"object.get of a computed path": {`path := ["metadata", "name"]
			object.get(input.object, path, "") == "web"`, []string{`volumes`}, []string{`SIZE`}},
		"object.get of an empty path": {`object.get(input.object.metadata, [], "").name == "web"`, []string{`owner`}, []string{`volumes`}},
		"object.get of an item":       {`object.get(input.object.spec, ["template", "spec", "volumes", 1, "name"], "") == "b"`, []string{`{"name": "b"}`}, []string{`hostDisk`}},
		"object.get with a default":   {`object.get(input.object, "x", input.object.metadata.name) == "web"`, []string{`"name": "web"`}, []string{`owner`, `volumes`}},
		"object.get within a call":    {`count(object.get(input.object, ["spec", "template", "spec", "volumes"], [])) == 2`, []string{`hostDisk`}, []string{`owner`}},
		"object.get of items":         {`object.get(input.object.spec.template.spec.volumes[_], "name", "") == "b"`, []string{`{"name": "b"}`}, []string{`hostDisk`}},
		"a field of a function's argument": {`cores(input.object.spec.template) == 4
			}
			cores(t) := t.spec.domain.cpu.cores if {
			true`, []string{`cores`, `volumes`}, []string{`metadata`, `Always`}},
		"all of it":          {`x := input; x.object.metadata.name == "web"`, []string{`sockets`, `linux`, `scopes`}, nil},
		"a walk":             {`walk(input.object.metadata, [["labels", "owner"], value]); value == "ada"`, []string{`owner`}, []string{`sockets`}},
		"interpolation":      {`$"{input.object.metadata.name}" == "web"`, []string{`"name": "web"`}, []string{`labels`}},
		"not":                {`not input.object.spec.running`, nil, []string{`Always`}},
		"every":              {`every v in input.object.spec.template.spec.volumes { v.name != "c" }`, []string{`hostDisk`}, []string{`domain`}},
		"a comprehension":    {`{n | n := input.object.spec.template.spec.volumes[_].name} == {"a", "b"}`, []string{`{"name": "a"}`}, []string{`hostDisk`}},
		"a field of a text":  {`not input.object.spec.runStrategy.x`, []string{`Always`}, []string{`volumes`}},
		"a key of a list":    {`not input.object.spec.template.spec.volumes.name`, nil, []string{`hostDisk`}},
		"groups":             {`"g2" in input.request.userInfo.groups`, []string{`g1`, `g2`}, []string{`scopes`, `sockets`}},
		"extra":              {`input.request.userInfo.extra.scopes[0] == "x"`, []string{`scopes`}, []string{`other`, `g1`}},
		"namespace":          {`input.namespace.labels.env == "prod"`, []string{`prod`}, []string{`tier`, `ada`}},
		"template":           {`input.template.parameters[0].name == "SIZE"`, []string{`SIZE`}, []string{`linux`, `ada`}},
		"parameters":         {`input.parameters.SIZE == "s"`, []string{`{"SIZE": "s"}`}, []string{`linux`, `NAME`}},
		"instancetype":       {`input.instancetype.spec.cpu.guest == 2`, []string{`guest`}, []string{`ada`}},
		"objects":            {`input.objects[_].kind == "Secret"`, []string{`Secret`}, []string{`Opaque`, `ada`}},
		"an absent document": {`input.preference == null`, nil, []string{`ada`, `guest`}},
		"nothing":            {`true`, nil, []string{`ada`, `web`, `linux`, `prod`}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := reading(t, "package p\n\ndeny contains \"found\" if {\n"+tc.body+"\n}\n")
			compared(t, policy, document())
			in, err := NewInputOf(document(), NewFields(policy))
			if err != nil {
				t.Fatal(err)
			}
			result, err := policy.Evaluate(t.Context(), in)
			if err != nil || len(result.Deny) != 1 {
				t.Errorf("the policy finds %v, %v", result.Deny, err)
			}
			converted := in.term.String()
			for _, text := range tc.has {
				if !strings.Contains(converted, text) {
					t.Errorf("%s is missing in %s", text, converted)
				}
			}
			for _, text := range tc.lacks {
				if strings.Contains(converted, text) {
					t.Errorf("%s is converted: %s", text, converted)
				}
			}
		})
	}
}

func TestAnAliasOfInputIsRead(t *testing.T) {
	policy := reading(t, "package p\n\nimport input.object.spec as spec\n\ndeny contains \"found\" if spec.template.spec.domain.cpu.cores == 4\n")
	document := Document{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{"cpu": map[string]any{"cores": 4.0}}}}}}}
	compared(t, policy, document)
	in, err := NewInputOf(document, NewFields(policy))
	if err != nil {
		t.Fatal(err)
	}
	if result, err := policy.Evaluate(t.Context(), in); err != nil || len(result.Deny) != 1 {
		t.Errorf("the policy finds %v, %v", result.Deny, err)
	}
}

// TestFieldsOfSeveralPolicies checks that each policy finds with the fields of all what it finds alone.
func TestFieldsOfSeveralPolicies(t *testing.T) {
	read := func(body string) *Policy {
		return reading(t, "package p\n\ndeny contains \"found\" if {\n"+body+"\n}\n")
	}
	policies := []*Policy{
		read(`input.object.spec.template.spec[_].cpu.cores == 4`), read(`input.object.spec.template.spec.domain.memory.guest == "1Gi"`),
		read(`input.object.spec.template[_].domain.cpu.sockets == 1`), read(`input.object.metadata.name == "web"`), read(`input.object.spec[_].spec.domain.devices == {}`),
	}
	document := Document{Object: map[string]any{
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"a": "b"}},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{
			"cpu": map[string]any{"cores": 4.0, "sockets": 1.0, "threads": 1.0}, "memory": map[string]any{"guest": "1Gi", "x": "y"}, "devices": map[string]any{},
		}}}},
	}}
	in, err := NewInputOf(document, NewFields(policies...))
	if err != nil {
		t.Fatal(err)
	}
	for i, policy := range policies {
		if result, err := policy.Evaluate(t.Context(), in); err != nil || len(result.Deny) != 1 {
			t.Errorf("policy %d finds %v, %v in %s", i, result.Deny, err, in.term)
		}
	}
	for _, text := range []string{"labels", "threads", `"x"`} {
		if strings.Contains(in.term.String(), text) {
			t.Errorf("%s is converted: %s", text, in.term)
		}
	}
}

// TestWhatIsNotReadIsChecked checks that a document is rejected for the same reasons, whatever is read.
func TestWhatIsNotReadIsChecked(t *testing.T) {
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	read := NewFields(reading(t, "package p\n\ndeny contains \"found\" if input.object.metadata.name == \"web\"\n"))
	for name, value := range map[string]any{"a type": struct{}{}, "a nested type": map[string]any{"x": []any{struct{}{}}}, "depth": deep, "infinity": math.Inf(1)} {
		document := Document{Object: map[string]any{"metadata": map[string]any{"name": "web"}, "spec": value}}
		_, errWhole := NewInput(document)
		_, errPart := NewInputOf(document, read)
		if errWhole == nil || errPart == nil || errWhole.Error() != errPart.Error() {
			t.Errorf("%s: %v, and with what is read %v", name, errWhole, errPart)
		}
	}
}
