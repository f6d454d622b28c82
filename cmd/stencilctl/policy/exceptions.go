package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	kjson "sigs.k8s.io/json"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

// exceptions is the flag for PolicyExceptions in files.
type exceptions struct{ files []string }

func (x *exceptions) register(command *cobra.Command) {
	command.Flags().StringSliceVar(&x.files, "exception", nil, "files or folders with PolicyExceptions to apply")
}

const kindException = "PolicyException"

// read returns the exceptions of the files. A file that is given explicitly must have one.
func (x *exceptions) read(reader *source.Reader) ([]*v1alpha1.PolicyException, error) {
	if len(x.files) == 0 {
		return nil, nil
	}
	objects, err := reader.Objects(x.files)
	if err != nil {
		return nil, err
	}
	var all []*v1alpha1.PolicyException
	for i := range objects {
		if objects[i].Kind != kindException {
			continue
		}
		one, err := decodeException(objects[i].Raw)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: PolicyException %s: %w", objects[i].File, objects[i].Name(), err))
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, cli.Usage(fmt.Errorf("no exceptions: nothing of what --exception names holds a %s", kindException))
	}
	return all, nil
}

// decodeException decodes an exception with the fields that it must have. What else the API server rejects allows nothing.
func decodeException(raw []byte) (*v1alpha1.PolicyException, error) {
	one := &v1alpha1.PolicyException{}
	unknown, err := kjson.UnmarshalStrict(raw, one)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, source.Suggesting(unknown[0], one)
	}
	if one.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q: must be %s", one.APIVersion, v1alpha1.GroupVersion)
	}
	for _, list := range []struct {
		field string
		of    []string
	}{{"policies", one.Spec.Policies}, {"namespaces", one.Spec.Namespaces}, {"names", one.Spec.Names}} {
		if len(list.of) == 0 {
			return nil, fmt.Errorf("spec.%s is required", list.field)
		}
	}
	if one.Spec.ExpiresAt.IsZero() {
		return nil, errors.New("spec.expiresAt is required")
	}
	return one, nil
}

var exceptionResource = v1alpha1.GroupVersion.WithResource("policyexceptions")

// storedExceptions returns the exceptions of a cluster. One without Stencil has none.
func storedExceptions(ctx context.Context, client *cluster.Client) (all []*v1alpha1.PolicyException, err error) {
	everywhere := *client
	everywhere.Namespace = ""
	err = everywhere.List(ctx, exceptionResource, "", func(object map[string]any) error {
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		one := &v1alpha1.PolicyException{}
		if err := json.Unmarshal(raw, one); err != nil {
			return err
		}
		all = append(all, one)
		return nil
	})
	if errors.Is(err, cluster.ErrNotServed) {
		return nil, nil
	}
	return all, err
}

// allowing returns exceptions in the form that is evaluated. One of a file replaces the stored one of its name.
func allowing(stored, given []*v1alpha1.PolicyException) *policyset.Exceptions {
	var all []*policyset.Exception
	for _, one := range given {
		all = append(all, policyset.NewException(one))
	}
	for _, one := range stored {
		if !slices.ContainsFunc(given, func(other *v1alpha1.PolicyException) bool { return other.Name == one.Name }) {
			all = append(all, policyset.NewException(one))
		}
	}
	return policyset.NewExceptions(all)
}

// exceptionTime is the time at which exceptions must not have ended: that of the request, or now.
func exceptionTime(request time.Time) time.Time {
	if request.IsZero() {
		return time.Now()
	}
	return request
}
