package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cache/policydata"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// data is the flag for the values that policies read as data.cluster.
type data struct{ given []string }

func (d *data) register(command *cobra.Command) {
	command.Flags().StringArrayVar(&d.given, "data", nil,
		"files or folders with the ConfigMaps, VirtualMachines, instance types and ResourceQuotas of which policies read values as data.cluster, or NAME=VALUE, a value in YAML; the namespace of ConfigMaps does not matter")
}

// givenData are the values of policies.
type givenData struct {
	// values are given by name.
	values map[string]*rego.Value
	// configMaps are the data of ConfigMaps, by name.
	configMaps map[string]map[string]string
	objects    *policydata.Objects
}

// namedValue is NAME=VALUE.
var namedValue = regexp.MustCompile(`(?s)^([a-zA-Z_][a-zA-Z0-9_]*)=(.*)$`)

func (d *data) read(reader *source.Reader) (givenData, error) {
	found := givenData{values: map[string]*rego.Value{}, configMaps: map[string]map[string]string{}}
	var files []string
	for _, each := range d.given {
		parts := namedValue.FindStringSubmatch(each)
		if parts == nil {
			files = append(files, strings.Split(each, ",")...)
			continue
		}
		value, err := readValue(parts[2])
		if err != nil {
			return found, cli.Usage(fmt.Errorf("--data %s: %w", parts[1], err))
		}
		found.values[parts[1]] = value
	}
	var vms, instancetypes []*unstructured.Unstructured
	var quotas []*corev1.ResourceQuota
	if len(files) > 0 {
		objects, err := reader.Objects(files)
		if err != nil {
			return found, err
		}
		for i := range objects {
			switch one := &objects[i]; one.Kind {
			case "ConfigMap":
				err = found.addConfigMap(one)
			case rego.KindVirtualMachine:
				err = decodeInto(one, &vms)
			case sizing.KindInstancetype, sizing.KindClusterInstancetype:
				err = decodeInto(one, &instancetypes)
			case "ResourceQuota":
				err = decodeInto(one, &quotas)
			}
			if err != nil {
				return found, cli.Usage(fmt.Errorf("%s: %w", objects[i].File, err))
			}
		}
	}
	found.objects = policydata.NewObjects(vms, instancetypes, quotas)
	return found, nil
}

// readValue reads a value in YAML.
func readValue(text string) (*rego.Value, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	return rego.DecodeValue(raw)
}

func decodeInto[T any](object *source.Object, into *[]*T) error {
	one := new(T)
	if err := json.Unmarshal(object.Raw, one); err != nil {
		return err
	}
	*into = append(*into, one)
	return nil
}

func (g *givenData) addConfigMap(object *source.Object) error {
	var one corev1.ConfigMap
	if err := json.Unmarshal(object.Raw, &one); err != nil {
		return err
	}
	if g.configMaps[one.Name] != nil {
		return fmt.Errorf("there is another ConfigMap called %s", one.Name)
	}
	g.configMaps[one.Name] = one.Data
	if one.Data == nil {
		g.configMaps[one.Name] = map[string]string{}
	}
	return nil
}

// bind returns the values of references.
func (g *givenData) bind(references []rego.Reference) []rego.Binding {
	bindings := make([]rego.Binding, len(references))
	for i, reference := range references {
		bindings[i] = rego.Binding{Name: reference.Name, Value: g.values[reference.Name]}
		if bindings[i].Value != nil {
			continue
		}
		var err error
		if reference.PerObject() {
			if bindings[i].Source, err = g.objects.Bind(reference); err != nil {
				bindings[i].Missing = fmt.Sprintf("no file that --data names %v; give them, or --data %s=VALUE", err, reference.Name)
			}
			continue
		}
		if bindings[i].Value, err = g.configMapKey(reference); err != nil {
			bindings[i].Missing = err.Error()
		}
	}
	return bindings
}

func (g *givenData) configMapKey(reference rego.Reference) (*rego.Value, error) {
	written, found := g.configMaps[reference.ConfigMap][reference.Key]
	if !found {
		return nil, fmt.Errorf("no file that --data names has ConfigMap %s with the key %s", reference.ConfigMap, reference.Key)
	}
	value, err := policydata.Decode(written)
	if err != nil {
		return nil, fmt.Errorf("key %s of ConfigMap %s %w", reference.Key, reference.ConfigMap, err)
	}
	return value, nil
}
