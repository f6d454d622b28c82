package requests_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/webhooks/requests"
)

// cluster is a fake with template golden/fedora, VMs shop/web and golden/web, and permissions.
type cluster struct {
	rights map[string]bool
	// err is of VirtualMachines, and reviews of permissions.
	err, reviews error
	// looked lists the objects that were read.
	looked []string
}

func (c *cluster) Get(namespace, name string) *templatecache.Template {
	c.looked = append(c.looked, "template "+namespace+"/"+name)
	if namespace == "golden" && name == "fedora" {
		return &templatecache.Template{}
	}
	return nil
}

func (c *cluster) Exists(_ context.Context, namespace, name string) (bool, error) {
	c.looked = append(c.looked, "machine "+namespace+"/"+name)
	return (namespace == "shop" || namespace == "golden") && name == "web", c.err
}

func (c *cluster) May(_ context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error) {
	if user.Username != "ada" {
		return false, errors.New("who?")
	}
	return c.rights[action.String()], c.reviews
}

const (
	useSource  = "create virtualmachinetemplaterequests/source shop/web"
	useMissing = "create virtualmachinetemplaterequests/source shop/missing"
	read       = "get virtualmachines golden/web"
	create     = "create virtualmachinetemplates in golden"
)

func ask(c *cluster, spec string) admission.Response { return askAs(c, "r", spec) }

func askAs(c *cluster, name, spec string) admission.Response {
	raw := `{"metadata":{"name":"` + name + `"},"spec":` + spec + `}`
	return requests.New(requests.Options{Templates: c, Permissions: c, VirtualMachines: c}).Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "golden", UserInfo: authenticationv1.UserInfo{Username: "ada"}, Object: runtime.RawExtension{Raw: []byte(raw)},
	}})
}

func TestRequests(t *testing.T) {
	// These messages are those of Kubernetes.
	subdomain, label := validation.IsDNS1123Subdomain("A b")[0], validation.IsValidLabelValue("not a value")[0]
	for name, tc := range map[string]struct {
		// name is the name of the request; r if empty.
		name, spec string
		rights     []string
		want       []string
		reason     string
		warning    string
	}{
		"what can be done is allowed": {
			spec: `{"virtualMachineRef":{"namespace":"shop","name":"web"},"templateName":"t","templateLabels":{"os":"fedora"}}`, rights: []string{useSource, create},
		},
		"in the same namespace as well": {
			spec: `{"virtualMachineRef":{"namespace":"golden","name":"web"}}`, rights: []string{read, create},
		},
		"everything that is wrong is told at once": {
			spec:   `{"virtualMachineRef":{"namespace":"shop","name":"missing"},"templateName":"Not_A.Name","templateLabels":{"os":"not a value"}}`,
			rights: []string{useMissing, create}, reason: "Invalid",
			want: []string{
				`spec.templateName: Invalid value: "Not_A.Name": ` + subdomain,
				`spec.templateLabels: Invalid value: "not a value": ` + label,
			},
		},
		"Services and Secrets of the machine": {
			spec: `{"virtualMachineRef":{"namespace":"shop","name":"web"},"templateName":"t","objects":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}},{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web"}}]}`, rights: []string{useSource, create},
		},
		"other objects": {
			spec:   `{"virtualMachineRef":{"namespace":"shop","name":"web"},"templateName":"t","objects":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}},{"apiVersion":"serving.knative.dev/v1","kind":"Service"},7]}`,
			rights: []string{useSource, create}, reason: "Invalid",
			want: []string{
				`spec.objects[0]: Forbidden: only Services and Secrets are captured, in apiVersion v1`,
				`spec.objects[1]: Forbidden: only Services and Secrets are captured, in apiVersion v1`,
				`spec.objects[1].metadata.name: Required value`,
				`spec.objects[2]: Invalid value: is no object`,
			},
		},
		"a template of that name": {
			spec:   `{"virtualMachineRef":{"namespace":"shop","name":"web"},"templateName":"fedora"}`,
			rights: []string{useSource, create}, reason: "Invalid",
			want: []string{`spec.templateName: Invalid value: "fedora": a VirtualMachineTemplate of this name exists; choose another spec.templateName, or delete the template`},
		},
		"a template of the name that the request has": {
			spec:   `{"virtualMachineRef":{"namespace":"golden","name":"web"}}`,
			rights: []string{read, create}, reason: "Invalid", name: "fedora",
			want: []string{`metadata.name: Invalid value: "fedora": a VirtualMachineTemplate of this name exists; choose another spec.templateName, or delete the template`},
		},
		"references that name nothing": {
			spec:   `{"virtualMachineRef":{"namespace":"","name":"A b"}}`,
			rights: []string{"create virtualmachinetemplaterequests/source /A b", create}, reason: "Invalid",
			want: []string{
				"spec.virtualMachineRef.namespace: Required value: names the VirtualMachine to be captured",
				`spec.virtualMachineRef.name: Invalid value: "A b": ` + subdomain,
			},
		},
		"of a machine that does not exist yet": {
			spec: `{"virtualMachineRef":{"namespace":"shop","name":"missing"}}`, rights: []string{useMissing, create},
			warning: "VirtualMachine shop/missing does not exist; the request waits for it until its timeout",
		},
		"of one of the same namespace": {
			spec: `{"virtualMachineRef":{"namespace":"golden","name":"missing"}}`, rights: []string{"get virtualmachines golden/missing", create},
			warning: "VirtualMachine golden/missing does not exist; the request waits for it until its timeout",
		},
		"no JSON": {spec: `x`, reason: "BadRequest", want: []string{"decoding the request: invalid character 'x' looking for beginning of value"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{rights: map[string]bool{}}
			for _, each := range tc.rights {
				c.rights[each] = true
			}
			if tc.name == "" {
				tc.name = "r"
			}
			answer := askAs(c, tc.name, tc.spec)
			if len(tc.want) == 0 {
				if !answer.Allowed || strings.Join(answer.Warnings, "\n") != tc.warning {
					t.Errorf("%v, warnings %q", answer.Result, answer.Warnings)
				}
				return
			}
			if answer.Allowed || string(answer.Result.Reason) != tc.reason {
				t.Fatalf("got %v %v, want reason %s", answer.Allowed, answer.Result, tc.reason)
			}
			got := []string{answer.Result.Message}
			if tc.reason == "Invalid" {
				got = nil
				for _, cause := range answer.Result.Details.Causes {
					got = append(got, cause.Field+": "+cause.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("denied with (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExistenceIsNotToldToWhoMayNotAsk checks that a user without permission cannot probe names: the responses are
// the same, and no object is read.
func TestExistenceIsNotToldToWhoMayNotAsk(t *testing.T) {
	for name, tc := range map[string]struct {
		rights          map[string]bool
		there, notThere string
	}{
		"of machines elsewhere":        {map[string]bool{create: true, read: true}, `{"virtualMachineRef":{"namespace":"shop","name":"web"}}`, `{"virtualMachineRef":{"namespace":"shop","name":"nix"}}`},
		"of machines in the namespace": {map[string]bool{create: true, useSource: true}, `{"virtualMachineRef":{"namespace":"golden","name":"web"}}`, `{"virtualMachineRef":{"namespace":"golden","name":"nix"}}`},
		"of templates":                 {map[string]bool{useSource: true}, `{"virtualMachineRef":{"namespace":"shop","name":"web"},"templateName":"fedora"}`, `{"virtualMachineRef":{"namespace":"shop","name":"web"},"templateName":"fedoro"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{rights: tc.rights}
			there, _ := json.Marshal(ask(c, tc.there))
			notThere, _ := json.Marshal(ask(c, tc.notThere))
			if diff := cmp.Diff(strings.ReplaceAll(string(notThere), "nix", "web"), string(there)); diff != "" {
				t.Errorf("the answers differ:\n%s", diff)
			}
			if slices.ContainsFunc(c.looked, func(looked string) bool { return strings.HasPrefix(looked, strings.Fields(name)[1][:7]) }) {
				t.Errorf("looked for %v", c.looked)
			}
		})
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	const spec = `{"virtualMachineRef":{"namespace":"shop","name":"web"}}`
	c := &cluster{rights: map[string]bool{useSource: true, create: true}, err: errors.New("no answer")}
	if answer := ask(c, spec); !answer.Allowed || len(answer.Warnings) > 0 {
		t.Errorf("no warning is worth a denial: got %+v", answer)
	}
	c.reviews = errors.New("no answer")
	if answer := ask(c, spec); answer.Allowed || answer.Result.Code != 500 {
		t.Errorf("got %v", answer.Result)
	}
	c.reviews = context.DeadlineExceeded
	if answer := ask(c, spec); answer.Allowed || answer.Result.Reason != "Timeout" {
		t.Errorf("got %v", answer.Result)
	}
}

func TestOnlyCreationIsEvaluated(t *testing.T) {
	for _, request := range []admissionv1.AdmissionRequest{{Operation: admissionv1.Update}, {Operation: admissionv1.Create, SubResource: "status"}} {
		if answer := requests.New(requests.Options{}).Handle(t.Context(), admission.Request{AdmissionRequest: request}); !answer.Allowed {
			t.Errorf("%v: %v", request.Operation, answer.Result)
		}
	}
}
