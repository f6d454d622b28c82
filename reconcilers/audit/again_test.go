package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// oneTry reads each page once.
var oneTry = wait.Backoff{Steps: 1}

// TestPagesAreReadAgain checks for claims and instances, as TestScan does for VMs, that a page that breaks off is read again, without a new
// list.
func TestPagesAreReadAgain(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("busy")
	retries := pageRetries()
	retries.Duration = 1
	for _, tc := range []struct {
		name      string
		failures  []error
		want      string
		wantError string
	}{
		{name: "two pages", want: "n@ n@n/3"},
		{name: "the first breaks off twice", failures: []error{unavailable, errors.New("connection reset")}, want: "n@ n@ n@ n@n/3"},
		{name: "the second breaks off", failures: []error{nil, unavailable}, want: "n@ n@n/3 n@n/3"},
		{name: "what stays broken", failures: []error{unavailable, unavailable, unavailable, unavailable}, want: "n@ n@ n@ n@", wantError: "busy"},
		{
			name:     "what may not be read",
			failures: []error{apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "", errors.New("no"))}, want: "n@", wantError: "forbidden",
		},
	} {
		for kind, read := range map[string]func(context.Context, pager) (int, error){
			"claims": func(ctx context.Context, p pager) (int, error) {
				check := diskCheck{lister: p, retries: retries}
				err := check.list(ctx, "n")
				return len(check.claims), err
			},
			"instances": func(ctx context.Context, p pager) (int, error) {
				check := instanceCheck{lister: owned{p}, retries: retries}
				err := check.list(ctx, "n")
				return len(check.instances), err
			},
		} {
			t.Run(tc.name+" of "+kind, func(t *testing.T) {
				source := &fakePager{vms: []string{"n/1", "n/2", "n/3", "n/4"}, failures: append([]error{}, tc.failures...)}
				found, err := read(t.Context(), source)
				if got := strings.Join(source.reads, " "); got != tc.want {
					t.Errorf("reads %s, want %s", got, tc.want)
				}
				switch {
				case tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)):
					t.Errorf("error: got %v, want %q", err, tc.wantError)
				case tc.wantError == "" && (err != nil || found != 4):
					t.Errorf("%d found, %v", found, err)
				}
			})
		}
	}
}

// owned adds to each object an owner with the object's name.
type owned struct{ pager }

func (o owned) page(ctx context.Context, namespace, token string, visit func(map[string]any)) (string, error) {
	return o.pager.page(ctx, namespace, token, func(object map[string]any) {
		metadata := object["metadata"].(map[string]any)
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": metadata["name"], "uid": fmt.Sprint("vm-", metadata["name"]), "controller": true,
		}}
		visit(object)
	})
}
