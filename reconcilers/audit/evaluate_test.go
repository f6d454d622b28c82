package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/testfile"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// shelved holds templates by NAMESPACE/NAME.
type shelved map[string]*templatecache.Template

func (s shelved) Get(namespace, name string) *templatecache.Template { return s[namespace+"/"+name] }

// shelve compiles a template of generation 5.
func shelve(t testing.TB, text string) *templatecache.Template {
	t.Helper()
	object := fixture.Decode[v1beta1.VirtualMachineTemplate](t, text)
	object.Generation = 5
	return templatecache.Compile(object)
}

// renderFrom returns a VM in team-a that was rendered from a template, as it is read from the API server.
func renderFrom(t testing.TB, from *templatecache.Template, name string, values map[string]string, change func(vm map[string]any)) map[string]any {
	t.Helper()
	compiled, err := from.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	vm := fixture.VM(t, fixture.Render(t, compiled, values).JSON())
	annotations := map[string]any{
		contract.AnnotationTemplateRef: from.Namespace + "/" + from.Name,
		contract.AnnotationRendered: machine.Record{
			Namespace: from.Namespace, Name: from.Name, Generation: from.Generation, Digest: compiled.Digest(),
		}.String(),
	}
	for key, value := range values {
		if !compiled.Sensitive(key) {
			annotations[contract.AnnotationParameterPrefix+key] = value
		}
	}
	vm["metadata"] = map[string]any{"namespace": "team-a", "name": name, "annotations": annotations}
	if change != nil {
		change(vm)
	}
	return vm
}

// put sets a field, given by its path with dots.
func put(path string, value any) func(map[string]any) {
	return func(vm map[string]any) {
		steps := strings.Split(path, ".")
		at := vm
		for _, step := range steps[:len(steps)-1] {
			at = at[step].(map[string]any)
		}
		if value == nil {
			delete(at, steps[len(steps)-1])
			return
		}
		at[steps[len(steps)-1]] = value
	}
}

// kubevirtAdds returns the places at which KubeVirt itself adds to VMs.
func kubevirtAdds(t testing.TB) *approval.Additions {
	t.Helper()
	additions, err := approval.ClusterAdditions()
	if err != nil {
		t.Fatal(err)
	}
	return additions
}

const fedora = `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {namespace: golden, name: fedora, labels: {tier: gold}}
spec:
  parameters:
  - {name: MEMORY, value: 1Gi}
  - {name: PASSWORD, sensitive: true, value: hunter2}
  virtualMachine:
    spec:
      runStrategy: Halted
      template:
        spec:
          architecture: amd64
          domain:
            cpu: {cores: 2, sockets: 1}
            memory: {guest: "${MEMORY}"}
            devices: {}
          volumes:
          - name: seed
            cloudInitNoCloud: {userData: "password: ${PASSWORD}"}
`

func TestJudge(t *testing.T) {
	template := shelve(t, fedora)
	grown := shelve(t, strings.Replace(fedora, "cores: 2", "cores: 4", 1))
	ubuntu := shelve(t, strings.Replace(fedora, "name: fedora", "name: ubuntu", 1))
	broken := shelve(t, strings.Replace(fedora, "${MEMORY}", "${NOWHERE}", 1))
	original, _ := template.Compiled()
	templates := shelved{"golden/fedora": template, "golden/ubuntu": ubuntu, "team-a/fedora": template}
	secretized := shelve(t, strings.NewReplacer("spec:\n  parameters", "spec:\n  secretize: true\n  parameters", "virtualMachine:\n", "virtualMachine:\n    metadata: {name: web}\n").Replace(fedora))
	seeded := func(secret string) func(map[string]any) {
		return put("spec.template.spec.volumes", []any{map[string]any{"name": "seed", "cloudInitNoCloud": map[string]any{"secretRef": map[string]any{"name": secret}}}})
	}

	overriding := func(overrides ...string) func(*v1alpha1.TemplateApproval) {
		return func(a *v1alpha1.TemplateApproval) { a.Spec.Overrides = overrides }
	}
	listing := func(entries ...v1alpha1.ApprovedTemplate) func(*v1alpha1.TemplateApproval) {
		return func(a *v1alpha1.TemplateApproval) { a.Spec.Templates = entries }
	}
	plain := approve("plain")
	cores := approve("cores", overriding("spec.template.spec.domain.cpu.cores"))
	gold := approve("gold", listing(v1alpha1.ApprovedTemplate{Namespace: "golden", Selector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}))
	ubuntuOnly := approve("ubuntu-only", listing(v1alpha1.ApprovedTemplate{Namespace: "golden", Name: "ubuntu"}))
	pinned := approve("pinned", listing(v1alpha1.ApprovedTemplate{Namespace: "golden", Name: "fedora", Digest: original.Digest()}))
	nobody := approve("nobody", func(a *v1alpha1.TemplateApproval) {
		a.Spec.Subjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectKindUser, Name: "nobody"}}
		a.Spec.ExemptSubjects = []v1alpha1.Subject{{Kind: v1alpha1.SubjectKindGroup, Name: "system:authenticated"}}
	})
	little := approve("little", func(a *v1alpha1.TemplateApproval) {
		a.Spec.Parameters = []v1alpha1.ParameterConstraint{{Name: "MEMORY", Allowed: []string{"1Gi"}}, {Name: "PASSWORD", Pattern: "[a-z]+"}}
	})
	closed := approve("closed", overriding("spec..oops"))
	attended := shelve(t, fedora+`  objects:
  - {apiVersion: v1, kind: Secret, metadata: {name: web-access}}
  - {apiVersion: v1, kind: Service, metadata: {name: web}}
`)
	limited := approve("limited", func(a *v1alpha1.TemplateApproval) {
		a.Spec.Objects.Allowed = []v1alpha1.ApprovedObject{{Kinds: []string{"Service"}, Names: []string{"other"}}}
	})

	type want struct {
		Satisfied      []string
		Rule, Approval string
		Message        string
	}
	for _, tc := range []struct {
		name      string
		vm        map[string]any
		approvals []*approval.Approval
		templates shelved
		want      want
	}{
		{
			name: "a machine that its template makes satisfies the approval",
			vm:   renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, nil), approvals: []*approval.Approval{plain},
			want: want{Satisfied: []string{"plain"}},
		},
		{
			name: "every approval that it satisfies is counted, and no other",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{cores, gold, little, plain, ubuntuOnly},
			want: want{Satisfied: []string{"cores", "gold", "plain"}},
		},
		{
			name: "a machine whose user data are in its Secret",
			vm:   renderFrom(t, secretized, "other", nil, seeded("other-seed")), approvals: []*approval.Approval{plain}, templates: shelved{"golden/fedora": secretized},
			want: want{Satisfied: []string{"plain"}},
		},
		{
			name: "a machine whose user data are in the Secret of another machine",
			vm:   renderFrom(t, secretized, "other", nil, nil), approvals: []*approval.Approval{plain}, templates: shelved{"golden/fedora": secretized},
			want: want{Rule: ruleDifferent, Approval: "plain", Message: "differs from template golden/fedora at spec.template.spec.volumes[name=seed].cloudInitNoCloud.secretRef.name"},
		},
		{
			name: "what the cluster wrote beside the template is no difference",
			vm: renderFrom(t, template, "web", nil, func(vm map[string]any) {
				put("spec.template.spec.domain.firmware", map[string]any{"uuid": "1"})(vm)
				put("spec.template.spec.domain.memory.guest", "1024Mi")(vm)
				put("status", map[string]any{"ready": true})(vm)
			}), approvals: []*approval.Approval{plain},
			want: want{Satisfied: []string{"plain"}},
		},
		{
			name: "a disk, a host device and a node selector that the template has not",
			vm: renderFrom(t, template, "web", nil, func(vm map[string]any) {
				volumes := vm["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
				volumes["volumes"] = append(volumes["volumes"].([]any), map[string]any{"name": "data", "emptyDisk": map[string]any{"capacity": "1Gi"}})
				put("spec.template.spec.nodeSelector", map[string]any{"node": "master"})(vm)
				put("spec.template.spec.domain.devices.hostDevices", []any{map[string]any{"name": "gpu", "deviceName": "vendor/gpu"}})(vm)
			}), approvals: []*approval.Approval{plain},
			want: want{Rule: ruleMoreThanTemplate, Approval: "plain", Message: "adds to template golden/fedora: spec.template.spec.domain.devices.hostDevices[name=gpu], " +
				"spec.template.spec.nodeSelector.node, spec.template.spec.volumes[name=data]"},
		},
		{
			name: "what is added and what is different",
			vm: renderFrom(t, template, "web", nil, func(vm map[string]any) {
				put("spec.runStrategy", "Always")(vm)
				put("spec.template.spec.nodeSelector", map[string]any{"node": "master"})(vm)
			}), approvals: []*approval.Approval{plain},
			want: want{Rule: ruleDifferent, Approval: "plain", Message: "differs from template golden/fedora at spec.runStrategy; adds to it: spec.template.spec.nodeSelector.node"},
		},
		{
			name: "an addition satisfies the approval that has an override for it",
			vm:   renderFrom(t, template, "web", nil, put("spec.template.spec.nodeSelector", map[string]any{"node": "a"})), approvals: []*approval.Approval{
				approve("nodes", overriding("spec.template.spec.nodeSelector.*")), plain},
			want: want{Satisfied: []string{"nodes"}},
		},
		{
			name: "a template that has lost what the machine still has",
			vm:   renderFrom(t, grown, "web", nil, nil), approvals: []*approval.Approval{plain},
			templates: shelved{"golden/fedora": shelve(t, strings.Replace(fedora, "cores: 2, ", "", 1))},
			want: want{Rule: ruleTemplateChanged, Approval: "plain",
				Message: "template golden/fedora has changed since the VM was rendered from it (generation 5, now 5); adds to it: spec.template.spec.domain.cpu.cores"},
		},
		{
			name: "an override is no difference for the approval that has it",
			vm:   renderFrom(t, template, "web", nil, put("spec.template.spec.domain.cpu.cores", json.Number("64"))), approvals: []*approval.Approval{cores, plain},
			want: want{Satisfied: []string{"cores"}},
		},
		{
			name: "whoever wrote it, everybody is served and nobody exempt",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{nobody},
			want: want{Satisfied: []string{"nobody"}},
		},
		{
			name: "a template of the machine's own namespace may be named without it",
			vm: renderFrom(t, template, "web", nil, func(vm map[string]any) {
				vm["metadata"].(map[string]any)["annotations"].(map[string]any)[contract.AnnotationTemplateRef] = "fedora"
			}),
			approvals: []*approval.Approval{approve("own", listing(v1alpha1.ApprovedTemplate{Namespace: "team-a", Name: "fedora"}))},
			want:      want{Satisfied: []string{"own"}},
		},
		{
			name: "a machine without a template",
			vm:   renderFrom(t, template, "web", nil, put("metadata.annotations", nil)), approvals: []*approval.Approval{cores, plain},
			want: want{Rule: ruleNoTemplate, Approval: "cores", Message: "it names no template"},
		},
		{
			name: "a reference that is none",
			vm: renderFrom(t, template, "web", nil, func(vm map[string]any) {
				vm["metadata"].(map[string]any)["annotations"].(map[string]any)[contract.AnnotationTemplateRef] = "Golden/../x"
			}), approvals: []*approval.Approval{plain},
			want: want{Rule: ruleNoTemplate, Approval: "plain", Message: "it names no template: [metadata.annotations[template.kubevirt.io/template-ref]: Invalid value"},
		},
		{
			name: "a template that is gone",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{plain}, templates: shelved{},
			want: want{Rule: ruleTemplateNotFound, Approval: "plain", Message: "its template golden/fedora no longer exists"},
		},
		{
			name: "a template that does not compile any more",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{plain}, templates: shelved{"golden/fedora": broken},
			want: want{Rule: ruleTemplateInvalid, Approval: "plain", Message: "its template golden/fedora is not valid any more"},
		},
		{
			name: "a template that nobody approves, for the reason of each",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{closed, ubuntuOnly},
			want: want{Rule: ruleTemplateNotApproved, Approval: "closed", Message: `approval "closed": it is invalid and approves nothing until a cluster admin corrects it; ` +
				`approval "ubuntu-only": it does not approve template golden/fedora`},
		},
		{
			name: "a template whose content is not the one that is pinned",
			vm:   renderFrom(t, grown, "web", nil, nil), approvals: []*approval.Approval{pinned}, templates: shelved{"golden/fedora": grown},
			want: want{Rule: ruleTemplateNotApproved, Approval: "pinned", Message: `approval "pinned": template golden/fedora has another content than the one that is approved`},
		},
		{
			name: "a machine of the pinned content, when the template has another one now: nobody can tell any more",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{pinned}, templates: shelved{"golden/fedora": grown},
			want: want{Rule: ruleTemplateNotApproved, Approval: "pinned", Message: `approval "pinned": template golden/fedora has another content than the one that is approved`},
		},
		{
			name: "a template that has changed since",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{plain}, templates: shelved{"golden/fedora": grown},
			want: want{Rule: ruleTemplateChanged, Approval: "plain",
				Message: "template golden/fedora has changed since the VM was rendered from it (generation 5, now 5) and is different at spec.template.spec.domain.cpu.cores"},
		},
		{
			name: "one that has changed where it makes no difference",
			vm:   renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{plain},
			templates: shelved{"golden/fedora": shelve(t, strings.Replace(fedora, "value: 1Gi", "value: 7Gi", 1))},
			want:      want{Satisfied: []string{"plain"}},
		},
		{
			name: "a value that is not allowed, and a sensitive one that is not told",
			vm:   renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, nil), approvals: []*approval.Approval{little, ubuntuOnly},
			want: want{Rule: ruleParameterNotAllowed, Approval: "little", Message: `parameters[MEMORY]: Invalid value: "2Gi": must be "1Gi", parameters[PASSWORD]: Invalid value: must match [a-z]+ as a whole`},
		},
		{
			name:      "a machine whose objects are pending",
			vm:        renderFrom(t, attended, "web", nil, put("spec.template.metadata", map[string]any{"annotations": map[string]any{contract.AnnotationHold: "objects"}})),
			approvals: []*approval.Approval{plain}, templates: shelved{"golden/fedora": attended},
			want: want{Satisfied: []string{"plain"}},
		},
		{
			name: "an object of a kind that is not allowed, and one whose name is not evaluated",
			vm:   renderFrom(t, attended, "web", nil, nil), approvals: []*approval.Approval{limited}, templates: shelved{"golden/fedora": attended},
			want: want{Rule: ruleObjectNotAllowed, Approval: "limited", Message: "template[golden/fedora].spec.objects[0]: Secret web-access: the approval allows only Service named other"},
		},
		{
			name: "fields that were changed",
			vm: renderFrom(t, template, "web", nil, func(vm map[string]any) {
				put("spec.template.spec.domain.cpu.cores", json.Number("64"))(vm)
				put("spec.runStrategy", "Always")(vm)
			}), approvals: []*approval.Approval{plain},
			want: want{Rule: ruleDifferent, Approval: "plain", Message: "differs from template golden/fedora at spec.runStrategy, spec.template.spec.domain.cpu.cores"},
		},
		{
			name: "fields and values",
			vm:   renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, put("spec.runStrategy", "Always")), approvals: []*approval.Approval{little},
			want: want{Rule: ruleDifferent, Approval: "little", Message: `differs from template golden/fedora at spec.runStrategy; parameters[MEMORY]: Invalid value: "2Gi"`},
		},
		{
			name: "what an approval that approves the template objects to comes before what others say",
			vm:   renderFrom(t, template, "web", nil, put("spec.runStrategy", "Always")), approvals: []*approval.Approval{closed, plain},
			want: want{Rule: ruleDifferent, Approval: "plain", Message: "differs from template golden/fedora at spec.runStrategy"},
		},
		{
			name: "a machine that cannot be read",
			vm:   map[string]any{"metadata": map[string]any{"annotations": 7}}, approvals: []*approval.Approval{plain},
			want: want{Rule: ruleDifferent, Approval: "plain", Message: "the VM cannot be read: metadata.annotations: "},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.templates == nil {
				tc.templates = templates
			}
			result := evaluate(tc.vm, "team-a", tc.approvals, tc.templates, kubevirtAdds(t))
			got := want{}
			for _, a := range result.satisfied {
				got.Satisfied = append(got.Satisfied, a.Name())
			}
			if result.cause != nil {
				got.Rule, got.Approval, got.Message = result.cause.rule, result.cause.approval, result.cause.message
				if strings.Contains(got.Message, "hunter2") {
					t.Errorf("the message tells a sensitive value: %s", got.Message)
				}
				if strings.HasPrefix(got.Message, tc.want.Message) {
					got.Message = tc.want.Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("judgement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClosedParameterIsAWarning(t *testing.T) {
	template := shelve(t, fedora)
	templates := shelved{"golden/fedora": template}
	listing := func(parameters ...v1alpha1.ParameterConstraint) func(*v1alpha1.TemplateApproval) {
		return func(a *v1alpha1.TemplateApproval) { a.Spec.Parameters = parameters }
	}
	plain := approve("plain")
	open := approve("open", listing(v1alpha1.ParameterConstraint{Name: "MEMORY", AnyValue: true}))
	narrow := approve("narrow", listing(v1alpha1.ParameterConstraint{Name: "MEMORY", Allowed: []string{"4Gi"}}))
	const unlisted = `parameters[MEMORY]: Invalid value: "2Gi": must be "1Gi", the default of the template, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it`
	for _, tc := range []struct {
		name      string
		vm        map[string]any
		approvals []*approval.Approval
		satisfied int
		closed    map[string]string // messages by approval
		warning   string
	}{
		{name: "nothing is closed that has its default", vm: renderFrom(t, template, "web", nil, nil), approvals: []*approval.Approval{plain}, satisfied: 1},
		{
			name: "nor that has it in the spelling of KubeVirt", approvals: []*approval.Approval{plain}, satisfied: 1,
			vm: renderFrom(t, template, "web", nil, put("spec.template.spec.domain.memory.guest", "1024Mi")),
		},
		{
			name: "another value is a warning and no violation", vm: renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, nil), approvals: []*approval.Approval{plain},
			satisfied: 1, closed: map[string]string{"plain": unlisted}, warning: unlisted,
		},
		{
			name: "not for the machine when it satisfies another approval", vm: renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, nil), approvals: []*approval.Approval{open, plain},
			satisfied: 2, closed: map[string]string{"plain": unlisted},
		},
		{
			name: "when it violates another", vm: renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, nil), approvals: []*approval.Approval{narrow, plain},
			satisfied: 1, closed: map[string]string{"plain": unlisted}, warning: unlisted,
		},
		{
			name: "a sensitive value is not told", vm: renderFrom(t, template, "web", map[string]string{"PASSWORD": "s3cret"}, nil), approvals: []*approval.Approval{plain},
			satisfied: 1, closed: map[string]string{"plain": "parameters[PASSWORD]: Invalid value: must be the default of the template, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it"},
			warning: "parameters[PASSWORD]: Invalid value: must be the default of the template, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it",
		},
		{
			name: "a difference is a violation all the same", approvals: []*approval.Approval{plain},
			vm: renderFrom(t, template, "web", map[string]string{"MEMORY": "2Gi"}, put("spec.runStrategy", "Always")),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result := evaluate(tc.vm, "team-a", tc.approvals, templates, kubevirtAdds(t))
			if len(result.satisfied) != tc.satisfied || (result.cause == nil) != (tc.satisfied > 0) {
				t.Errorf("satisfied %v, cause %v", result.satisfied, result.cause)
			}
			messages := map[string]string{}
			for name, why := range result.closed {
				if messages[name] = why.message; why.rule != "closedParameter" {
					t.Errorf("the rule is %s", why.rule)
				}
			}
			if diff := cmp.Diff(tc.closed, messages, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
			warning := ""
			if why := result.warning(); why != nil {
				warning = why.message
			}
			if diff := cmp.Diff(tc.warning, warning); diff != "" {
				t.Errorf("warning (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACauseIsBounded(t *testing.T) {
	got := newCause(ruleDifferent, "a", "%s", strings.Repeat("ü", 2000)).message
	if len(got) > maximumCause || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-8:])
	}
	var many []string
	for i := range 8 {
		many = append(many, fmt.Sprint("p", i))
	}
	if got, want := excerpt.List(many, maximumPaths, "fields"), "p0, p1, p2, p3, p4 and 3 more fields"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkJudge evaluates one stored VM of the documentation's Fedora template against one approval.
func BenchmarkJudge(b *testing.B) {
	text := testfile.Read(b, "../../docs/examples/golden/fedora.yaml")
	template := shelve(b, string(text))
	templates := shelved{"golden/fedora": template}
	approvals := []*approval.Approval{approve("a", func(a *v1alpha1.TemplateApproval) {
		a.Spec.Overrides = []string{"spec.runStrategy", "metadata.labels.*", "spec.template.spec.domain.devices.interfaces[name=default].macAddress"}
		a.Spec.Parameters = []v1alpha1.ParameterConstraint{{Name: "INSTANCETYPE", Allowed: []string{"u1.small", "u1.medium"}}}
	})}
	vm := renderFrom(b, template, "fedora-1", map[string]string{"NAME": "fedora-1"}, nil)
	cluster := kubevirtAdds(b)
	b.ReportAllocs()
	for b.Loop() {
		if result := evaluate(vm, "team-a", approvals, templates, cluster); result.cause != nil {
			b.Fatal(result.cause.message)
		}
	}
}

// BenchmarkReadPage reads a page of stored VMs of that template, without evaluating them.
func BenchmarkReadPage(b *testing.B) {
	text := testfile.Read(b, "../../docs/examples/golden/fedora.yaml")
	page, err := yaml.Marshal(map[string]any{"items": []any{renderFrom(b, shelve(b, string(text)), "fedora-1", nil, nil)}})
	if err != nil {
		b.Fatal(err)
	}
	one, err := yaml.YAMLToJSON(page)
	if err != nil {
		b.Fatal(err)
	}
	body := string(one)
	body = `{"items":[` + strings.Repeat(strings.TrimSuffix(strings.TrimPrefix(body, `{"items":[`), "]}")+",", pageSize-1) + `{}]}`
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readPage(strings.NewReader(body), func(map[string]any) {}); err != nil {
			b.Fatal(err)
		}
	}
}
