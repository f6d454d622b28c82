package approval_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
)

// declared are the parameters of a template. Those called NAME… are set by the name of
// the VirtualMachine, and generated values begin with made.
type declared []v1beta1.Parameter

func (d declared) Parameters() []v1beta1.Parameter { return slices.Clone(d) }
func (d declared) Naming(name string) bool         { return strings.HasPrefix(name, "NAME") }
func (d declared) NamePattern() string             { return "vm-${NAME}-${DISK}" }
func (d declared) Carries(name string, given map[string]string) bool {
	return strings.HasPrefix(name, "vm-"+given["NAME"])
}
func (d declared) Generates(_, value string) bool { return strings.HasPrefix(value, "made") }

func (d declared) sensitive(name string) bool {
	return slices.ContainsFunc(d, func(p v1beta1.Parameter) bool { return p.Name == name && p.Sensitive })
}

// bind returns the values that a template binds.
func (d declared) bind(given map[string]string) map[string]string {
	values := map[string]string{}
	for _, p := range d {
		value, isGiven := given[p.Name]
		switch {
		case value != "", isGiven && p.Value != "":
			values[p.Name] = value
		case p.Value != "":
			values[p.Name] = p.Value
		case p.Generate != "":
			values[p.Name] = "made-" + p.Name
		default:
			values[p.Name] = ""
		}
	}
	return values
}

var parameters = declared{
	{Name: "NAME", Required: true},
	{Name: "IMAGE", Value: "fedora"},
	{Name: "EXTRA"},
	{Name: "TOKEN", Generate: "expression", From: "made-[a-z]{4}", Required: true},
	{Name: "PIN", Value: "1234", Sensitive: true},
	{Name: "PASSWORD", Generate: "expression", From: "made-[a-z]{4}", Sensitive: true},
	{Name: "SIZE", Value: "small", Generate: "expression"},
}

func TestAParameterThatIsNotListedIsClosed(t *testing.T) {
	const how = "because the approval does not list this parameter; leave it out, or ask a cluster admin to list it"
	type values map[string]string
	for _, tc := range []struct {
		name, spec string
		declared   declared // parameters when nil
		given      values
		vm         string // its name
		// shown are the values of a VirtualMachine, those that are bound when nil.
		shown values
		want  []string
	}{
		{name: "nothing is given"},
		{name: "the name is given", given: values{"NAME": "web-1"}},
		{name: "the defaults are given", given: values{"IMAGE": "fedora", "EXTRA": "", "PIN": "1234", "SIZE": "small"}},
		{name: "nothing, where the template generates a value", given: values{"TOKEN": "", "PASSWORD": ""}},
		{name: "another value than the default", given: values{"IMAGE": "evil"}, want: []string{`parameters[IMAGE]: Invalid value: "evil": must be "fedora", the default of the template, ` + how}},
		{name: "the default in another case", given: values{"IMAGE": "Fedora"}, want: []string{`parameters[IMAGE]: Invalid value: "Fedora": must be "fedora", the default of the template, ` + how}},
		{name: "nothing in place of the default", given: values{"IMAGE": ""}, want: []string{`parameters[IMAGE]: Invalid value: "": must be "fedora", the default of the template, ` + how}},
		{name: "a value where the template has none", given: values{"EXTRA": "x"}, want: []string{`parameters[EXTRA]: Invalid value: "x": must be empty as in the template, ` + how}},
		{name: "a value in place of a generated one", given: values{"TOKEN": "mine"}, want: []string{`parameters[TOKEN]: Invalid value: "mine": must be left to the template, which generates it, ` + how}},
		{name: "a value that the template might have generated", given: values{"TOKEN": "made-it"}, want: []string{`parameters[TOKEN]: Invalid value: "made-it": must be left to the template, which generates it, ` + how}},
		{name: "a generator beside a default has no effect", given: values{"SIZE": "made-it"}, want: []string{`parameters[SIZE]: Invalid value: "made-it": must be "small", the default of the template, ` + how}},
		{name: "neither value nor default of a sensitive parameter is told", given: values{"PIN": "s3cret", "PASSWORD": "s3cret"}, want: []string{
			"parameters[PIN]: Invalid value: must be the default of the template, " + how,
			"parameters[PASSWORD]: Invalid value: must be left to the template, which generates it, " + how,
		}},
		{
			name: "a required parameter without a value, given or not", declared: declared{{Name: "KEY", Required: true}, {Name: "CODE", Required: true, Sensitive: true}}, given: values{"KEY": "x"},
			want: []string{
				"parameters[KEY]: Required value: the template has no value for it and the approval does not list it, so no VirtualMachine of this template is approved; ask a cluster admin to list the parameter, with the values that are allowed or with anyValue: true",
				"parameters[CODE]: Required value: the template has no value for it and the approval does not list it, so no VirtualMachine of this template is approved; ask a cluster admin to list the parameter, with the values that are allowed or with anyValue: true",
			},
		},
		{name: "any value of a listed parameter", spec: "parameters: [{name: IMAGE, anyValue: true}, {name: TOKEN, anyValue: true}]", given: values{"IMAGE": "evil", "TOKEN": "mine"}},
		{name: "any value of a listed parameter that is required", spec: "parameters: [{name: KEY, anyValue: true}]", declared: declared{{Name: "KEY", Required: true}}, given: values{"KEY": "x"}},
		{name: "an allowed value of a listed parameter", spec: "parameters: [{name: IMAGE, allowed: [fedora, ubuntu]}]", given: values{"IMAGE": "ubuntu"}},
		{name: "what is listed is held to what is listed alone", spec: "parameters: [{name: IMAGE, allowed: [ubuntu]}]", given: values{"IMAGE": "evil"}, want: []string{`parameters[IMAGE]: Invalid value: "evil": must be "ubuntu"`}},
		{name: "a VirtualMachine that shows what the template makes", shown: values{"NAME": "web-1", "IMAGE": "fedora", "TOKEN": "made-xyz", "PASSWORD": "made-xyz"}},
		{name: "a VirtualMachine that shows other values", shown: values{"IMAGE": "evil", "EXTRA": "x", "TOKEN": "mine", "PASSWORD": "s3cret"}, want: []string{
			`parameters[IMAGE]: Invalid value: "evil": must be "fedora", the default of the template, ` + how,
			`parameters[EXTRA]: Invalid value: "x": must be empty as in the template, ` + how,
			`parameters[TOKEN]: Invalid value: "mine": must be left to the template, which generates it, ` + how,
			"parameters[PASSWORD]: Invalid value: must be left to the template, which generates it, " + how,
		}},
		{
			name: "a name that is not that of the VirtualMachine", given: values{"NAME": "web\nruncmd: [evil]"}, vm: "web",
			want: []string{`parameters[NAME]: Invalid value: "web\nruncmd: [evil]": must be left to the name of the VirtualMachine, because the approval does not list this parameter and the VirtualMachine is not named vm-${NAME}-${DISK}; name it so, or ask a cluster admin to list the parameter`},
		},
		{name: "a name that is", given: values{"NAME": "web"}, vm: "vm-web-1"},
		{name: "another name, and nothing is given", vm: "web"},
		{
			name: "a generated part of the name", declared: declared{{Name: "NAME", Generate: "expression"}}, given: values{"NAME": "web"}, vm: "web",
			want: []string{`parameters[NAME]: Invalid value: "web": must be left to the template, which generates it, because the approval does not list this parameter and the VirtualMachine is not named vm-${NAME}-${DISK}; name it so, or ask a cluster admin to list the parameter`},
		},
		{
			name: "a part of the name that chooses a disk", declared: declared{{Name: "DISK", Value: "root"}}, given: values{"DISK": "evil"}, vm: "vm-web-evil",
			want: []string{`parameters[DISK]: Invalid value: "evil": must be "root", the default of the template, because the approval does not list this parameter and it has a part in the source of a disk; leave it and the name of the VirtualMachine out, or ask a cluster admin to list it`},
		},
		{name: "a value that was given and is not shown", given: values{"IMAGE": "evil"}, shown: values{}, want: []string{`parameters[IMAGE]: Invalid value: "evil": must be "fedora", the default of the template, ` + how}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := tc.declared
			if d == nil {
				d = parameters
			}
			shown := map[string]string(tc.shown)
			if tc.shown == nil {
				shown = d.bind(tc.given)
			}
			a := compile(t, "a", tc.spec)
			decision := approval.Evaluate([]*approval.Approval{a}, approval.Question{User: ada, Template: fedora, Values: shown, Sensitive: d.sensitive, Declared: d, Name: tc.vm, Given: tc.given})
			var got []string
			for _, objection := range decision.Objections {
				got = append(got, objection.Field+": "+objection.Message)
				if closed := !strings.HasSuffix(objection.Message, `"ubuntu"`); closed != (objection.Reason == approval.ReasonClosedParameter) {
					t.Errorf("the reason of %v is %q", objection, objection.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objections (-want +got)\n%s", diff)
			}
			if decision.Denied() != (tc.want != nil) {
				t.Errorf("denied: %v", decision.Denied())
			}
		})
	}
}

func TestClosedParametersOfEachApproval(t *testing.T) {
	approvals := []*approval.Approval{compile(t, "a", "parameters: [{name: EXTRA, anyValue: true}]"), compile(t, "b", "parameters: [{name: IMAGE, anyValue: true}]")}
	evaluate := func(given map[string]string) approval.Decision {
		return approval.Evaluate(approvals, approval.Question{User: ada, Template: fedora, Values: parameters.bind(given), Sensitive: none, Declared: parameters, Given: given})
	}
	if got := evaluate(map[string]string{"IMAGE": "other"}); got.By != "b" {
		t.Errorf("what one of them opens: %+v", got)
	}
	if got := evaluate(map[string]string{"IMAGE": "other", "EXTRA": "x"}); !got.Denied() || len(got.Objections) != 2 {
		t.Errorf("what they open together, each half of it: %+v", got)
	}
	if got := approval.Evaluate(approvals, approval.Question{User: ada, Template: fedora, Update: true}); !got.Allowed {
		t.Errorf("an update of a stored VirtualMachine: %+v", got)
	}
}

func TestWhatAnApprovalCloses(t *testing.T) {
	d := append(slices.Clone(parameters), v1beta1.Parameter{Name: "KEY", Required: true})
	a := compile(t, "a", "parameters: [{name: IMAGE, allowed: [x]}, {name: PIN, anyValue: true}, {name: NOWHERE, anyValue: true}]")
	var names, valueless []string
	for _, p := range a.ClosedParameters(d) {
		names = append(names, p.Name)
		if approval.HasNoValue(p) {
			valueless = append(valueless, p.Name)
		}
	}
	if diff := cmp.Diff([]string{"EXTRA", "TOKEN", "PASSWORD", "SIZE", "KEY"}, names); diff != "" {
		t.Errorf("closed (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"KEY"}, valueless); diff != "" {
		t.Errorf("without a value (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"EXTRA": "", "SIZE": "small"}, a.ClosedValues(d)); diff != "" {
		t.Errorf("values (-want +got)\n%s", diff)
	}
}

// A second, simpler reading of closed parameters: a parameter is valid when it is open, or when it has the value that it would have without
// user-specified values, and a required parameter has one.
func TestClosedParametersAreWhatTheyWouldBeIfNothingWereGiven(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "x", "y", "made-1"}
	allowed, denied := 0, 0
	for range 20_000 {
		var d declared
		var listed []string
		given := map[string]string{}
		for i := range 1 + random.IntN(3) {
			p := v1beta1.Parameter{Name: fmt.Sprint([]string{"NAME", "P", "P", "P"}[random.IntN(4)], i), Value: texts[random.IntN(3)], Required: random.IntN(4) == 0}
			if random.IntN(3) == 0 {
				p.Generate = "expression"
			}
			if random.IntN(4) == 0 {
				listed = append(listed, "{name: "+p.Name+", anyValue: true}")
			}
			if random.IntN(3) == 0 {
				given[p.Name] = texts[random.IntN(len(texts))]
			}
			d = append(d, p)
		}
		a := compile(t, "a", "parameters: ["+strings.Join(listed, ", ")+"]")
		values, untouched := d.bind(given), d.bind(nil)
		want := true
		for _, p := range d {
			opened := strings.HasPrefix(p.Name, "NAME") || slices.Contains(listed, "{name: "+p.Name+", anyValue: true}")
			without := p.Required && untouched[p.Name] == ""
			want = want && (opened || !without && values[p.Name] == untouched[p.Name])
		}
		got := approval.Evaluate([]*approval.Approval{a}, approval.Question{User: ada, Template: fedora, Values: values, Declared: d, Given: given})
		if got.Allowed != want {
			t.Fatalf("allowed %v, want %v\ndeclared %+v\nlisted %v\ngiven %v\n%v", got.Allowed, want, d, listed, given, got.Objections)
		}
		if want {
			allowed++
		} else {
			denied++
		}
	}
	if allowed < 2000 || denied < 2000 {
		t.Errorf("%d allowed and %d denied say little", allowed, denied)
	}
}

// FuzzClosedParameters checks that no text contains a sensitive value, and that what a closed
// parameter may have is its default.
func FuzzClosedParameters(f *testing.F) {
	f.Add("fedora", "evil", true)
	f.Add("", "x", false)
	f.Add("a", "", true)
	f.Fuzz(func(t *testing.T, value, given string, sensitive bool) {
		d := declared{{Name: "P", Value: value, Sensitive: sensitive}}
		values := map[string]string{"P": given}
		a := compile(t, "a", "{}")
		got := approval.Evaluate([]*approval.Approval{a}, approval.Question{User: ada, Template: fedora, Values: d.bind(values), Sensitive: d.sensitive, Declared: d, Given: values})
		if got.Allowed != (given == value) {
			t.Fatalf("default %q, given %q: %+v", value, given, got)
		}
		if d[0].Value, given = "s3cret", "hunter2"; sensitive {
			values["P"] = given
			got = approval.Evaluate([]*approval.Approval{a}, approval.Question{User: ada, Template: fedora, Values: d.bind(values), Sensitive: d.sensitive, Declared: d, Given: values})
			if text := fmt.Sprint(got.Objections); strings.Contains(text, "s3cret") || strings.Contains(text, "hunter2") {
				t.Fatal(text)
			}
		}
	})
}
