package powers

import (
	"context"
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/fixture"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// users are those who may use the template.
type users struct {
	may []string
	err error
}

func (u users) Allowed(_ context.Context, requester authenticationv1.UserInfo, verb permission.Verb, namespace, name string) (bool, error) {
	for _, each := range u.may {
		if verb == permission.Use && namespace+"/"+name == "golden/fedora" && each == requester.Username+" of "+strings.Join(requester.Groups, ",") {
			return true, u.err
		}
	}
	return false, u.err
}

func TestLend(t *testing.T) {
	const root = `{"dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {"source": {"pvc": {"namespace": "golden", "name": "fedora"}}}}]}`
	const payroll = `{"dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {"source": {"pvc": {"namespace": "golden", "name": "payroll"}}}}]}`
	const (
		copied  = "it was not created, or last given other disks, by a request of a user who may use VirtualMachineTemplate golden/fedora: a copy of a VirtualMachine borrows no disks"
		revoked = "the user for whom the VirtualMachine was created or changed may not use VirtualMachineTemplate golden/fedora"
	)
	record := machine.Record{Namespace: "golden", Name: "fedora", UID: "u1"}
	ada := Grant{Template: "u1", Sources: disks.Borrowed(fixture.VM(t, root), "team"), User: authenticationv1.UserInfo{Username: "ada", Groups: []string{"a", "b"}}}
	other := ada
	other.Template = "u2"
	fault := errors.New("the API server does not answer")
	for name, tc := range map[string]struct {
		spec, grant string
		users       users
		denial      string
		revoked     bool
		err         error
	}{
		"to a user who may":             {root, ada.String(), users{may: []string{"ada of a,b"}}, "", false, nil},
		"to one who may not":            {root, ada.String(), users{may: []string{"eve of a,b"}}, revoked, true, nil},
		"to one in fewer groups":        {root, ada.String(), users{may: []string{"ada of a"}}, revoked, true, nil},
		"without a grant":               {root, "", users{may: []string{"ada of a,b"}}, copied, false, nil},
		"with one that cannot be read":  {root, "ada", users{may: []string{"ada of a,b"}}, copied, false, nil},
		"of another template":           {root, other.String(), users{may: []string{"ada of a,b"}}, copied, false, nil},
		"for other disks":               {payroll, ada.String(), users{may: []string{"ada of a,b"}}, copied, false, nil},
		"where the answer is not given": {root, ada.String(), users{may: []string{"ada of a,b"}, err: fault}, "", false, fault},
	} {
		t.Run(name, func(t *testing.T) {
			vm := machine.Object{Spec: fixture.VM(t, tc.spec), Annotations: map[string]any{}}
			if tc.grant != "" {
				vm.Annotations["template.kubevirt.io/rendered-for"] = tc.grant
			}
			denial, revoked, err := Lend(t.Context(), tc.users, vm, record, "team")
			if denial != tc.denial || revoked != tc.revoked || !errors.Is(err, tc.err) {
				t.Errorf("got %q, %t, %v; want %q, %t, %v", denial, revoked, err, tc.denial, tc.revoked, tc.err)
			}
		})
	}
}
