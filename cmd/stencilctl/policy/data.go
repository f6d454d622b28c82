package policy

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/vmstencil/stencil/cache/policydata"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/rego"
)

// data is the flag for the values that policies read as data.cluster.
type data struct{ files []string }

func (d *data) register(command *cobra.Command) {
	command.Flags().StringSliceVar(&d.files, "data", nil, "files or folders with the ConfigMaps that policies read as data.cluster; their namespace does not matter")
}

// configMaps are the data of ConfigMaps, by name.
type configMaps map[string]map[string]string

func (d *data) read(reader *source.Reader) (configMaps, error) {
	if len(d.files) == 0 {
		return nil, nil
	}
	objects, err := reader.Objects(d.files)
	if err != nil {
		return nil, err
	}
	found := configMaps{}
	for i := range objects {
		if objects[i].Kind != "ConfigMap" {
			continue
		}
		var one corev1.ConfigMap
		if err := json.Unmarshal(objects[i].Raw, &one); err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: %w", objects[i].File, err))
		}
		if found[one.Name] != nil {
			return nil, cli.Usage(fmt.Errorf("%s: there is another ConfigMap called %s", objects[i].File, one.Name))
		}
		found[one.Name] = one.Data
		if one.Data == nil {
			found[one.Name] = map[string]string{}
		}
	}
	return found, nil
}

// bind returns the values of references.
func (c configMaps) bind(references []rego.Reference) []rego.Binding {
	bindings := make([]rego.Binding, len(references))
	for i, reference := range references {
		bindings[i] = rego.Binding{Name: reference.Name}
		written, found := c[reference.ConfigMap][reference.Key]
		if !found {
			bindings[i].Missing = fmt.Sprintf("no file that --data names has ConfigMap %s with the key %s", reference.ConfigMap, reference.Key)
			continue
		}
		value, err := policydata.Decode(written)
		if err != nil {
			bindings[i].Missing = fmt.Sprintf("key %s of ConfigMap %s %v", reference.Key, reference.ConfigMap, err)
			continue
		}
		bindings[i].Value = value
	}
	return bindings
}
