package apiserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// market is where templates are used: they are in golden, team is governed, and free is not.
type market struct {
	golden, team, free string
	// eve may use all templates, rita the template small, and nina none. Each has the role edit where templates are used.
	eve, rita, nina *controlplane.User
}

func newMarket(t *testing.T) market {
	t.Helper()
	m := market{golden: floor(t), team: floor(t), free: floor(t)}
	user := func(name string, more ...gen.UserModifier) *controlplane.User {
		return harness.User(t, stencil.Plane, name+"-"+m.golden, append(more, gen.Role(m.team, "edit"), gen.Role(m.free, "edit"))...)
	}
	m.eve = user("eve", gen.UsesTemplates(m.golden), gen.Role(m.golden, "stencil-template-process"))
	m.rita = user("rita", gen.UsesTemplates(m.golden, "small"))
	m.nina = user("nina")
	mustKubectl(t, m.templates(), "apply", "-f", "-")
	approvals := m.approvals()
	mustKubectl(t, approvals, "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, approvals, "delete", "--ignore-not-found", "-f", "-") })
	return m
}

// templates are small, which approvals narrow, waiting, which lacks a source, other, which none approves, and gone, which a test deletes.
func (m market) templates() string {
	return gen.Manifest(
		gen.Template("small", gen.InNamespace(m.golden), gen.Label("os", "linux"), gen.Annotation("openshift.io/display-name", "Small Linux"),
			gen.Annotation("description", "A small machine."), gen.Annotation("iconClass", "icon-linux"), gen.Annotation("tags", "linux, small"),
			gen.Declares("NAME", `{required: true, pattern: '[a-z][a-z0-9-]*'}`), gen.Declares("CORES", "{type: int, value: '1', minimum: 1, maximum: 16, displayName: CPUs, description: Number of CPUs}"),
			gen.Declares("SIZE", "{value: medium, enum: [small, medium, large]}"), gen.Declares("ZONE", "value: a"),
			gen.Declares("TOKEN", "{sensitive: true, generate: expression, from: '[a-z]{12}'}"), gen.Declares("LOG", "{type: bool, value: 'false'}"),
			gen.Renders("${NAME}", gen.SmallSpec(), gen.Spec(`template: {metadata: {annotations: {size: "${SIZE}", zone: "${ZONE}", token: "${TOKEN}", log: "${LOG}"}}, spec: {domain: {cpu: {cores: "${{CORES}}"}}}}`))),
		gen.Template("waiting", gen.InNamespace(m.golden), gen.Renders("", gen.GenerateName("waiting-"), gen.SmallSpec(), gen.Spec("instancetype: {name: missing}"))),
		gen.Template("other", gen.InNamespace(m.golden), gen.Renders("", gen.GenerateName("other-"), gen.SmallSpec())),
		gen.Template("gone", gen.InNamespace(m.golden), gen.Renders("", gen.GenerateName("gone-"), gen.SmallSpec())),
	)
}

// approvals are two that narrow small in different ways.
func (m market) approvals() string {
	return gen.Manifest(
		gen.Approval("a-"+m.golden, gen.Governs(m.team), gen.Approves(m.golden+"/small", m.golden+"/waiting", m.golden+"/gone"),
			gen.Spec("parameters: [{name: CORES, minimum: 2, maximum: 4}, {name: SIZE, allowed: [small, medium, huge]}, {name: LOG, anyValue: true}]")),
		gen.Approval("b-"+m.golden, gen.Governs(m.team), gen.Approves(m.golden+"/small"), gen.Spec("parameters: [{name: ZONE, pattern: '[ab]'}, {name: TOKEN, pattern: '.{12,}'}]")),
	)
}

// availableIn is the path of the list of a namespace.
func availableIn(namespace string) string {
	return "/apis/" + group + "/v1beta1/namespaces/" + namespace + "/availabletemplates"
}

// list returns the templates that a user may use, by name.
func (m market) list(t *testing.T, as *controlplane.User, namespace, host string) (map[string]v1beta1.AvailableTemplate, error) {
	t.Helper()
	got := request{as: as, method: http.MethodGet, path: availableIn(namespace), host: host}.do(t)
	var list v1beta1.AvailableTemplateList
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.code != http.StatusOK || list.Kind != "AvailableTemplateList" {
		return nil, fmt.Errorf("%d %s (%w)", got.code, got.body, err)
	}
	found := map[string]v1beta1.AvailableTemplate{}
	for _, each := range list.Items {
		// The templates of other tests are of other namespaces, and admit no user of this one.
		if each.TemplateRef.Namespace != m.golden || each.Namespace != namespace || each.Name != m.golden+"."+each.TemplateRef.Name {
			return nil, fmt.Errorf("%s/%s in a list of %s", each.Namespace, each.Name, namespace)
		}
		found[each.TemplateRef.Name] = each
	}
	return found, nil
}

// names of the templates of a list; allowed ones are marked.
func names(found map[string]v1beta1.AvailableTemplate) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name].Allowed {
			name += "+"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// await returns the list once its templates are these: approvals and permissions take effect a moment after they are stored.
func (m market) await(t *testing.T, as *controlplane.User, namespace, host, want string) (found map[string]v1beta1.AvailableTemplate) {
	t.Helper()
	harness.Eventually(t, "the templates are "+want, func() (err error) {
		if found, err = m.list(t, as, namespace, host); err != nil {
			return err
		}
		if got := names(found); got != want {
			return errors.New("they are " + got)
		}
		return nil
	})
	return found
}

func TestAvailableTemplates(t *testing.T) {
	m := newMarket(t)
	var small v1beta1.AvailableTemplate

	t.Run("in a governed namespace", func(t *testing.T) {
		found := m.await(t, m.eve, m.team, "", "gone+ other small+ waiting+")
		small = found["small"]
		a, b := "a-"+m.golden, "b-"+m.golden
		name := v1beta1.AvailableParameter{Name: "NAME", Required: true, NonEmpty: true, Patterns: []string{"[a-z][a-z0-9-]*"}}
		cpus := v1beta1.AvailableParameter{Name: "CORES", DisplayName: "CPUs", Description: "Number of CPUs", Type: templatev1beta1.ParameterTypeInt}
		two, four := int64(2), int64(4)
		narrow, fixed := cpus, cpus
		narrow.Minimum, narrow.Maximum, narrow.Required = &two, &four, true
		fixed.Default, fixed.Fixed = "1", true
		want := v1beta1.AvailableTemplate{
			DisplayName: "Small Linux", Description: "A small machine.", Icon: "icon-linux", Tags: []string{"linux", "small"}, Allowed: true, Enforcement: "Deny",
			Variants: []v1beta1.TemplateVariant{
				{Approvals: []string{a}, Parameters: []v1beta1.AvailableParameter{
					name, narrow, {Name: "SIZE", Default: "medium", Enum: []string{"small", "medium"}}, {Name: "ZONE", Default: "a", Fixed: true},
					{Name: "TOKEN", Generated: true, Fixed: true, Sensitive: true}, {Name: "LOG", Type: templatev1beta1.ParameterTypeBool, Default: "false"},
				}},
				{Approvals: []string{b}, Parameters: []v1beta1.AvailableParameter{
					name, fixed, {Name: "SIZE", Default: "medium", Fixed: true}, {Name: "ZONE", Default: "a", Patterns: []string{"[ab]"}},
					{Name: "TOKEN", Generated: true, Sensitive: true, Patterns: []string{".{12,}"}}, {Name: "LOG", Type: templatev1beta1.ParameterTypeBool, Default: "false", Fixed: true},
				}},
			},
		}
		got := small
		want.ObjectMeta, want.TemplateRef, want.Ready, want.Schema = got.ObjectMeta, got.TemplateRef, got.Ready, got.Schema
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got.Labels["os"] != "linux" {
			t.Errorf("labels %v", got.Labels)
		}
		reason := fmt.Sprintf(`metadata.annotations[template.kubevirt.io/template-ref]: it does not approve the template (approval %q)`, a)
		if other := found["other"]; len(other.Reasons) != 2 || other.Reasons[0] != reason || other.Variants != nil || other.Schema != nil {
			t.Errorf("%+v", other)
		}
	})

	t.Run("in a namespace without approvals", func(t *testing.T) {
		found := m.await(t, m.eve, m.free, "", "gone+ other+ small+ waiting+")
		got := found["small"]
		if got.Enforcement != "" || len(got.Variants) != 1 || got.Variants[0].Approvals != nil || len(got.Variants[0].Parameters) != 6 || got.Variants[0].Parameters[2].Enum[2] != "large" {
			t.Errorf("%+v", got)
		}
	})

	t.Run("readiness", func(t *testing.T) {
		harness.Eventually(t, "one template is ready and one is not", func() error {
			found, err := m.list(t, m.eve, m.team, "")
			if err != nil {
				return err
			}
			if ready, waiting := found["small"].Ready, found["waiting"].Ready; ready.Status != "True" || waiting.Status != "False" || !strings.Contains(waiting.Message, "missing") {
				return fmt.Errorf("small %+v, waiting %+v", ready, waiting)
			}
			return nil
		})
	})

	t.Run("permissions", func(t *testing.T) {
		m.await(t, m.rita, m.team, "", "small+")
		m.await(t, m.nina, m.team, "", "")
		for who, path := range map[*controlplane.User]string{m.nina: availableIn(m.golden), bob: availableIn(m.team)} {
			if got := (request{as: who, method: http.MethodGet, path: path}).do(t); got.code != http.StatusForbidden {
				t.Errorf("%s: %d %s", path, got.code, got.body)
			}
		}
		one := availableIn(m.team) + "/" + m.golden + "."
		for _, tc := range []struct {
			as   *controlplane.User
			name string
			want int
		}{{m.rita, "small", http.StatusOK}, {m.rita, "other", http.StatusNotFound}, {m.nina, "small", http.StatusNotFound}, {m.eve, "none", http.StatusNotFound}} {
			got := request{as: tc.as, method: http.MethodGet, path: one + tc.name}.do(t)
			if got.code != tc.want || got.code == http.StatusOK && !strings.HasPrefix(got.body, `{"kind":"AvailableTemplate","apiVersion":"`+group+`/v1beta1"`) {
				t.Errorf("%s %s: %d %s", tc.as.Name, tc.name, got.code, got.body)
			}
		}
		// None of them may read the templates.
		for _, user := range []*controlplane.User{m.eve, m.rita, m.nina} {
			if out := kubectl(t, user, "", "get", "vmt", "small", "-n", m.golden); out.Code == 0 || !strings.Contains(out.Stderr, "forbidden") {
				t.Errorf("%s reads a template: %+v", user.Name, out)
			}
		}
	})

	t.Run("kubectl", func(t *testing.T) {
		table := func(arguments ...string) string {
			out := kubectl(t, m.eve, "", append([]string{"get", "availabletemplates", "-n", m.team}, arguments...)...)
			if out.Code != 0 {
				t.Fatal(out.Stderr)
			}
			return strings.Join(strings.Fields(strings.ReplaceAll(out.Stdout, m.golden, "golden")), " ")
		}
		if want := "NAME TITLE READY ALLOWED APPROVALS golden.gone True true a-golden golden.other True false golden.small Small Linux True true a-golden,b-golden golden.waiting False true a-golden"; table() != want {
			t.Errorf("%s\nwant %s", table(), want)
		}
		if want := "golden.small Small Linux True true a-golden,b-golden NAME*,CORES,SIZE,LOG,ZONE,TOKEN"; table("-o", "wide", "--no-headers", "-l", "os=linux") != want {
			t.Errorf("%s\nwant %s", table("-o", "wide", "--no-headers", "-l", "os=linux"), want)
		}
		for _, tc := range []struct{ want, line string }{
			{"golden.small Small Linux True true a-golden,b-golden", m.golden + ".small --no-headers"},
			{"golden.small Small Linux True true a-golden,b-golden", "--field-selector metadata.name=" + m.golden + ".small --no-headers"},
			{"AvailableTemplate golden", "-l os=linux -o jsonpath={.items[*].kind}{\"\\n\"}{.items[*].templateRef.namespace}"},
			{"availabletemplate.subresources.template.kubevirt.io/golden.small", "-l os=linux -o name"},
			{"object", m.golden + ".small -o jsonpath={.schema.anyOf[0].type}"},
			{"golden.gone golden.other golden.small golden.waiting", "--sort-by=.metadata.name --no-headers -o custom-columns=N:.metadata.name"},
		} {
			if got := table(strings.Fields(tc.line)...); got != tc.want {
				t.Errorf("%s: %s\nwant %s", tc.line, got, tc.want)
			}
		}
		for line, want := range map[string]string{
			"--field-selector spec.x=1": "field selector spec.x is not supported: only metadata.name is",
			"-l a==b==c":                "found",
			"none":                      `availabletemplates.subresources.template.kubevirt.io "none" not found`,
		} {
			if out := kubectl(t, m.eve, "", append([]string{"get", "availabletemplates", "-n", m.team}, strings.Fields(line)...)...); out.Code == 0 || !strings.Contains(out.Stderr, want) {
				t.Errorf("%s: %+v", line, out)
			}
		}
		if got := (request{method: http.MethodGet, path: availableIn(m.team) + "?watch=true"}).do(t); got.code != http.StatusMethodNotAllowed {
			t.Errorf("watch: %d %s", got.code, got.body)
		}
	})

	t.Run("the schema permits what process allows", func(t *testing.T) { m.compare(t, small) })

	t.Run("stencilctl", func(t *testing.T) {
		for _, tc := range []struct {
			as               *controlplane.User
			line             string
			wantCode         int
			wantOut, wantErr string
		}{
			{m.eve, "templates -o name", 0, "golden/gone\ngolden/other\ngolden/small\ngolden/waiting\n", ""},
			{m.eve, "templates", 0, "golden/small     Small Linux   True    a-golden or b-golden   NAME*,CORES,SIZE,LOG,ZONE,TOKEN\n", ""},
			{m.eve, "templates", 0, "golden/other: metadata.annotations[template.kubevirt.io/template-ref]: it does not approve the template (approval \"a-golden\")\n", ""},
			{m.eve, "templates", 0, "golden/waiting: not ready: ", ""},
			{m.rita, "templates -o name", 0, "golden/small\n", ""},
			{m.nina, "templates", 0, "", "You may use no template for VirtualMachines in namespace "},
			{m.rita, "schema golden/small", 0, "\"title\": \"Approval a-golden\"", ""},
			{m.rita, "schema golden/other", 3, "", "template golden/other does not exist, or you may not use it, or the cluster does not serve"},
			{m.eve, "schema golden/other", 3, "", "no VirtualMachine of template golden/other is allowed in namespace team:\n  metadata.annotations"},
			{m.eve, "schema golden/", 2, "", "is no name of a template, want NAME or NAMESPACE/NAME"},
		} {
			ran, err := stencilctl.Command{Binary: binary, Kubeconfig: tc.as.Kubeconfig, Line: strings.ReplaceAll(tc.line, "golden", m.golden) + " -n " + m.team}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names := strings.NewReplacer(m.golden, "golden", m.team, "team")
			output, problems := names.Replace(ran.Output), names.Replace(ran.Problems)
			if want := strings.Fields(tc.wantOut); ran.Code != tc.wantCode || !strings.Contains(strings.Join(strings.Fields(output), " "), strings.Join(want, " ")) || !strings.Contains(problems, tc.wantErr) {
				t.Errorf("%s: %d\n%s%s", tc.line, ran.Code, output, problems)
			}
		}
	})

	t.Run("a deleted template", func(t *testing.T) {
		mustKubectl(t, "", "delete", "vmt", "gone", "-n", m.golden)
		m.await(t, m.eve, m.team, "", "other small+ waiting+")
	})

	t.Run("a server that has just started", func(t *testing.T) {
		user, err := stencil.Options().APIServerUser(stencil.Plane)
		if err != nil {
			t.Fatal(err)
		}
		// Again and again, because it loads templates and the authorities of clients while it serves already.
		for range 5 {
			second, err := manager.Start(context.WithoutCancel(t.Context()), manager.Options{
				Program: manager.StencilAPIServer, Kubeconfig: user.Kubeconfig, Namespace: install.Namespace, Args: stencil.Options().APIServerArgs(),
			})
			if err != nil {
				t.Fatal(err)
			}
			// It is ready, so that the first answer is complete.
			found, err := m.list(t, m.eve, m.team, second.WebhookURL())
			if err != nil || names(found) != "other small+ waiting+" {
				t.Errorf("%s (%v)", names(found), err)
			}
			if err := second.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// compare sends values to process with explain, and validates them by the schema: both must answer the same.
func (m market) compare(t *testing.T, small v1beta1.AvailableTemplate) {
	t.Helper()
	schema := compiled(t, small.Schema.Raw)
	for _, tc := range []struct {
		parameters string
		want       bool
	}{
		{`{"NAME": "web-1", "CORES": 2}`, true},
		{`{"NAME": "web-1"}`, true}, // by the second approval, which leaves CORES at its default
		{`{"NAME": "web-1", "CORES": 1}`, true},
		{`{"NAME": "web-1", "CORES": 5}`, false},
		{`{"NAME": "web-1", "CORES": 17}`, false},
		{`{"NAME": "web-1", "CORES": "two"}`, false},
		{`{"NAME": "Web", "CORES": 2}`, false},
		{`{"CORES": 2}`, false},
		{`{"NAME": "", "CORES": 2}`, false},
		{`{"NAME": "web-1", "CORES": 4, "SIZE": "small", "LOG": true}`, true},
		{`{"NAME": "web-1", "CORES": 4, "SIZE": "large"}`, false},
		{`{"NAME": "web-1", "CORES": 4, "SIZE": "huge"}`, false},
		{`{"NAME": "web-1", "CORES": 4, "LOG": "maybe"}`, false},
		{`{"NAME": "web-1", "ZONE": "b"}`, true},
		{`{"NAME": "web-1", "ZONE": "c"}`, false},
		{`{"NAME": "web-1", "ZONE": "b", "CORES": 2}`, false}, // no approval allows both
		{`{"NAME": "web-1", "TOKEN": "abcdefghijkl"}`, true},
		{`{"NAME": "web-1", "TOKEN": "short"}`, false},
		{`{"NAME": "web-1", "TOKEN": "abcdefghijkl", "CORES": 2}`, false},
		{`{"NAME": "web-1", "MISSING": "x"}`, false},
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.parameters))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != tc.want {
			t.Errorf("the schema answers for %s: %v", tc.parameters, err)
		}
		got := request{as: m.eve, path: "/apis/" + group + "/v1beta1/namespaces/" + m.golden + "/virtualmachinetemplates/small/process",
			body: `{"explain": true, "targetNamespace": "` + m.team + `", "parameters": ` + tc.parameters + "}"}.do(t)
		if allowed := got.code == http.StatusOK && !strings.Contains(got.body, `"decision":"deny"`); allowed != tc.want {
			t.Errorf("process answers for %s: %d %s", tc.parameters, got.code, got.body)
		}
	}
}

func compiled(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("parameters.json", document); err != nil {
		t.Fatal(err)
	}
	// It checks the schema against the draft that it names.
	schema, err := compiler.Compile("parameters.json")
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return schema
}
