package policies

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// cluster is a fake cluster with so many VMs in namespaces of ten. VM number i has i cores and label number.
type cluster struct {
	vms int
	// read is the number of VMs that were read.
	read int
	err  error
	// slow is how long a page takes.
	slow    time.Duration
	denied  bool
	lookups int
}

func (c *cluster) VirtualMachines(ctx context.Context, limit int64, token string) (page []map[string]any, next string, err error) {
	if c.err != nil {
		return nil, "", c.err
	}
	if c.slow > 0 {
		select {
		case <-time.After(c.slow):
		case <-ctx.Done():
			return nil, "", fmt.Errorf("listing VirtualMachines: %w", ctx.Err())
		}
	}
	from, _ := strconv.Atoi(token)
	to := min(from+int(limit), c.vms)
	for i := from; i < to; i++ {
		page = append(page, map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
			"metadata": map[string]any{"namespace": fmt.Sprintf("ns-%d", i/10), "name": fmt.Sprintf("vm-%d", i), "labels": map[string]any{"number": strconv.Itoa(i)}},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{"cpu": map[string]any{"cores": int64(i)}}}}},
		})
	}
	c.read += len(page)
	if to < c.vms {
		next = strconv.Itoa(to)
	}
	return page, next, nil
}

func (c *cluster) Namespace(_ context.Context, name string) (labels, annotations map[string]string, found bool) {
	return map[string]string{"name": name}, nil, true
}

func (c *cluster) Get(string, string) *templatecache.Template { return nil }

func (c *cluster) Resolve(context.Context, sizing.Reference) (map[string]any, error) {
	return nil, errors.New("it does not exist")
}

// May implements Permissions.
func (c *cluster) May(_ context.Context, user authenticationv1.UserInfo, action authorization.Action) (bool, error) {
	c.lookups++
	if want := (authorization.Action{Verb: "list", Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}); action != want || user.Username != "ada" {
		return false, fmt.Errorf("unexpected action %+v of %s", action, user.Username)
	}
	return !c.denied, nil
}

func entry(t *testing.T, body string, kinds ...string) *policyset.Entry {
	t.Helper()
	return &policyset.Entry{
		Policy: fixture.Policy(t, "one", "package p\n\n"+body+"\n", kinds...), Match: policyset.Match{Kinds: kinds}, Timeout: 10 * time.Second,
	}
}

func moreThan(t *testing.T, cores int) *policyset.Entry {
	t.Helper()
	return entry(t, fmt.Sprintf(`deny contains "too large" if input.object.spec.template.spec.domain.cpu.cores > %d`, cores))
}

// reading returns a policy that reads a ConfigMap that does not exist.
func reading(t *testing.T) *policyset.Entry {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := compiler.Compile(t.Context(), rego.Definition{Name: "one", Source: "package p\n\ndeny contains data.cluster.word if true\n", Data: []rego.Reference{{Name: "word", ConfigMap: "a", Key: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &policyset.Entry{Policy: policy.WithData([]rego.Binding{{Name: "word", Missing: "ConfigMap stencil/a does not exist; create it with the key b"}})}
}

// exceptions implements Exceptions.
type exceptions []*policyset.Exception

func (e exceptions) Set() *policyset.Exceptions { return policyset.NewExceptions(e) }

// excepting returns an exception from policy one for a VM of namespace ns-1.
func excepting(name string, expires time.Time, subjects ...v1alpha1.Subject) *policyset.Exception {
	object := &v1alpha1.PolicyException{}
	object.Name = "legacy"
	object.Spec = v1alpha1.PolicyExceptionSpec{Policies: []string{"one"}, Namespaces: []string{"ns-1"}, Names: []string{name}, Subjects: subjects, ExpiresAt: metav1.NewTime(expires)}
	return policyset.NewException(object)
}

// forever is an expression whose evaluation takes hours.
const forever = `count([i | some i in numbers.range(1, 5000); some j in numbers.range(1, 5000); i * j < 0]) > 0`

func slow(e *policyset.Entry) *policyset.Entry {
	e.Timeout = 20 * time.Millisecond
	return e
}

// endless returns a policy that ends for VMs without CPUs, as synthetic ones are.
func endless(t *testing.T) *policyset.Entry {
	t.Helper()
	return slow(entry(t, `deny contains "x" if {
	input.object.spec.template.spec.domain.cpu.cores > 0
	`+forever+`
}`))
}

func TestAPolicyIsTried(t *testing.T) {
	const fails = `deny contains "x" if to_number(input.object.metadata.labels.number) > to_number(substring(input.object.metadata.labels.number, 1, 1))`
	const store = "\nmetadata.annotations: to store it all the same, set stencil.kubevirt.io/store-failing to \"true\""
	about := func(e *policyset.Entry, change func(*policyset.Match)) *policyset.Entry {
		change(&e.Match)
		return e
	}
	warns := func(e *policyset.Entry) *policyset.Entry {
		e.Enforcement = policyset.EnforcementWarn
		return e
	}
	audits := func(e *policyset.Entry) *policyset.Entry {
		e.Enforcement = policyset.EnforcementAudit
		return e
	}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name        string
		cluster     cluster
		exceptions  exceptions
		trial       policycache.Trial
		enforcement v1alpha1.Enforcement
		forced      bool
		message     string // of a denial
		warns       []string
		untried     bool
	}{
		{name: "one that allows all", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 20)}},
		{
			name: "one that denies some", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 17)},
			warns: []string{"this version newly denies 2 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-18, ns-1/vm-19"},
		},
		{
			name: "a user who may not list them reads no names", cluster: cluster{vms: 20, denied: true}, trial: policycache.Trial{Entry: moreThan(t, 17)},
			warns: []string{"this version newly denies 2 of all 20 stored VirtualMachines that the policy selects, if they were created now"},
		},
		{
			name: "what the active version denies is not new", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 15), Active: moreThan(t, 17)},
			warns: []string{"this version newly denies 2 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-16, ns-1/vm-17"},
		},
		{
			name: "what an exception allows is not denied", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 17)},
			exceptions: exceptions{excepting("vm-18", noon.Add(time.Second))},
			warns:      []string{"this version newly denies 1 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-19"},
		},
		{
			name: "exceptions that have ended and those of users do not count", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 17)},
			exceptions: exceptions{excepting("vm-18", noon), excepting("vm-19", noon.Add(time.Hour), v1alpha1.Subject{Kind: "User", Name: "ada"})},
			warns:      []string{"this version newly denies 2 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-18, ns-1/vm-19"},
		},
		{
			name: "what the active version only records is", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 17), Active: audits(moreThan(t, 17))},
			warns: []string{"this version newly denies 2 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-18, ns-1/vm-19"},
		},
		{
			name: "one without its data is not tried", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: reading(t)}, untried: true,
			warns: []string{"data.cluster.word has no value: ConfigMap stencil/a does not exist; create it with the key b. Until then the policy cannot be evaluated, and denies every request that it selects"},
		},
		{
			name: "one without its data that warns", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: warns(reading(t))}, enforcement: v1alpha1.EnforcementWarn, untried: true,
			warns: []string{"data.cluster.word has no value: ConfigMap stencil/a does not exist; create it with the key b. Until then the policy cannot be evaluated, and finds nothing else"},
		},
		{name: "one that denies no others", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: moreThan(t, 17), Active: moreThan(t, 15)}},
		{
			name: "of many a sample", cluster: cluster{vms: 450}, trial: policycache.Trial{Entry: moreThan(t, 50)},
			warns: []string{"this version newly denies 49 of a sample of 100 stored VirtualMachines that the policy selects, if they were created now: " +
				"ns-5/vm-51, ns-5/vm-52, ns-5/vm-53, ns-5/vm-54, ns-5/vm-55, ns-5/vm-56, ns-5/vm-57, ns-5/vm-58, ns-5/vm-59, ns-6/vm-60 and 39 more VirtualMachines"},
		},
		{
			name: "the sample is of those that it selects", cluster: cluster{vms: 450},
			trial: policycache.Trial{Entry: about(moreThan(t, 50), func(m *policyset.Match) { m.Namespaces = labels.SelectorFromSet(labels.Set{"name": "ns-44"}) })},
			warns: []string{"this version newly denies 10 of all 10 stored VirtualMachines that the policy selects, if they were created now: " +
				"ns-44/vm-440, ns-44/vm-441, ns-44/vm-442, ns-44/vm-443, ns-44/vm-444, ns-44/vm-445, ns-44/vm-446, ns-44/vm-447, ns-44/vm-448, ns-44/vm-449"},
		},
		{
			name: "one about changes", cluster: cluster{vms: 2}, trial: policycache.Trial{Entry: about(moreThan(t, 0), func(m *policyset.Match) { m.Operations = []string{"UPDATE"} })},
			warns: []string{"this version newly denies 1 of all 2 stored VirtualMachines that the policy selects, if they were updated now: ns-0/vm-1"},
		},
		{
			name: "one about the user", cluster: cluster{vms: 5},
			trial: policycache.Trial{Entry: entry(t, `deny contains "not an admin" if not "admins" in input.request.userInfo.groups`)},
			warns: []string{"whether this version denies, warns about or records 5 of all 5 stored VirtualMachines that the policy selects is unknown: it reads the time or the user of the request"},
		},
		{name: "one about deletions", trial: policycache.Trial{Entry: about(moreThan(t, 0), func(m *policyset.Match) { m.Operations = []string{"DELETE"} })}, untried: true},
		{
			name: "one that fails on a stored VM", cluster: cluster{vms: 5}, trial: policycache.Trial{Entry: entry(t, fails)},
			message: "VirtualMachinePolicy \"one\" fails:\nspec.rego: it cannot be evaluated for the stored VirtualMachine ns-0/vm-0 (CREATE): 3:71: to_number failed" + store,
		},
		{
			name: "for a user who may not list them", cluster: cluster{vms: 5, denied: true}, trial: policycache.Trial{Entry: entry(t, fails)},
			message: "VirtualMachinePolicy \"one\" fails:\nspec.rego: it cannot be evaluated for a stored VirtualMachine (CREATE): 3:71: to_number failed" + store,
		},
		{
			name: "one that does not end for stored VMs", cluster: cluster{vms: 5}, trial: policycache.Trial{Entry: endless(t)},
			message: "VirtualMachinePolicy \"one\" fails:\nspec.rego: it cannot be evaluated for the stored VirtualMachine ns-0/vm-1 (CREATE): it did not end within 20ms" + store,
		},
		{
			name: "one that does not end for any VM", cluster: cluster{vms: 5}, trial: policycache.Trial{Entry: slow(entry(t, `deny contains "x" if `+forever))}, untried: true,
			message: "VirtualMachinePolicy \"one\" fails:\nspec.rego: it cannot be evaluated for the simplest VirtualMachine (CREATE): it did not end within 20ms" + store,
		},
		{
			name: "with the annotation it is stored", cluster: cluster{vms: 5}, trial: policycache.Trial{Entry: entry(t, fails)}, forced: true,
			warns: []string{"it cannot be evaluated for the stored VirtualMachine ns-0/vm-0 (CREATE): 3:71: to_number failed"},
		},
		{
			name: "one that fails on every VM", trial: policycache.Trial{Entry: entry(t, `deny contains "x" if to_number(input.request.kind) > 1`)}, untried: true,
			message: "VirtualMachinePolicy \"one\" fails:\nspec.rego: it cannot be evaluated for the simplest VirtualMachine (CREATE): 3:22: to_number failed" + store,
		},
		{
			name: "one that fails on every template", trial: policycache.Trial{Entry: entry(t, `deny contains "x" if to_number(input.request.kind) > 1`, "VirtualMachineTemplate")}, untried: true,
			message: "VirtualMachinePolicy \"one\" fails:\nspec.rego: it cannot be evaluated for the simplest VirtualMachineTemplate (CREATE): 3:22: to_number failed" + store,
		},
		{
			name:    "one about VMs of a template needs one",
			trial:   policycache.Trial{Entry: about(entry(t, `deny contains "x" if to_number(input.request.kind) > 1`), func(m *policyset.Match) { m.Templates = []policyset.TemplateMatch{{Namespace: "golden"}} })},
			cluster: cluster{vms: 20},
		},
		{
			name: "one that only warns", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: warns(moreThan(t, 17)), Active: audits(moreThan(t, 15))},
			enforcement: v1alpha1.EnforcementWarn,
			warns:       []string{"this version newly warns about 2 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-18, ns-1/vm-19"},
		},
		{
			name: "one that only records", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: audits(moreThan(t, 17))}, enforcement: v1alpha1.EnforcementAudit,
			warns: []string{"this version newly records violations of 2 of all 20 stored VirtualMachines that the policy selects, if they were created now: ns-1/vm-18, ns-1/vm-19"},
		},
		{
			name: "one that no longer denies", cluster: cluster{vms: 20}, trial: policycache.Trial{Entry: warns(moreThan(t, 17)), Active: moreThan(t, 15)},
			enforcement: v1alpha1.EnforcementWarn,
		},
		{
			name: "warnings of a policy that denies are no violations", cluster: cluster{vms: 20},
			trial: policycache.Trial{Entry: entry(t, `warn contains "large" if input.object.spec.template.spec.domain.cpu.cores > 3`)},
		},
		{
			name: "one that only warns is stored, although it fails on a stored VM", cluster: cluster{vms: 5}, trial: policycache.Trial{Entry: warns(entry(t, fails))},
			enforcement: v1alpha1.EnforcementWarn,
			warns:       []string{"it cannot be evaluated for the stored VirtualMachine ns-0/vm-0 (CREATE): 3:71: to_number failed"},
		},
		{
			name: "VMs that cannot be read", cluster: cluster{err: errors.New("etcd is away")}, trial: policycache.Trial{Entry: moreThan(t, 1)},
			warns: []string{"the policy was not tried on stored VirtualMachines: etcd is away"}, untried: true,
		},
		{name: "reading that takes too long", cluster: cluster{vms: 20, slow: 3 * MaximumSampleTime}, trial: policycache.Trial{Entry: moreThan(t, 1)}, untried: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			there := tc.cluster
			handler := New(Options{Policies: &engine{trial: tc.trial}, Permissions: &there, Sampler: &Sampler{
				VirtualMachines: &there, Namespaces: &there, Templates: &there, Instancetypes: &there,
				Exceptions: tc.exceptions, Clock: clocktesting.NewFakePassiveClock(noon),
			}})
			r := request(admissionv1.Create, manifest("x", func(p *v1alpha1.VirtualMachinePolicy) {
				p.Spec.Enforcement = tc.enforcement
				if tc.forced {
					p.Annotations = map[string]string{v1alpha1.AnnotationStoreFailing: "true"}
				}
			}), runtime.RawExtension{})
			r.UserInfo.Username = "ada"
			got := handler.Handle(t.Context(), r)
			if got.Allowed != (tc.message == "") || !got.Allowed && got.Result.Message != tc.message {
				t.Errorf("allowed %v:\n%s\nwant:\n%s", got.Allowed, got.Result.Message, tc.message)
			}
			if diff := cmp.Diff(tc.warns, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.untried != (there.read == 0) {
				t.Errorf("%d VirtualMachines were read", there.read)
			}
			if len(tc.warns) == 0 && tc.message == "" && there.lookups > 0 {
				t.Errorf("%d permissions were looked up for nothing", there.lookups)
			}
			if strings.HasPrefix(tc.name, "of many") && there.read > 2*samplePage {
				t.Errorf("%d VirtualMachines were read for a sample", there.read)
			}
		})
	}
}
