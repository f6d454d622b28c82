package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/preflight"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// backup is a file with the definitions, the APIServices and all their objects: a List that kubectl create reads.
type backup struct {
	path string
	// notes gets what is different and does no harm.
	notes io.Writer
}

// saved are the kinds of objects in the file, in the order in which they can be created again.
var saved = []struct {
	resource schema.GroupVersionResource
	kind     string
	names    []string
}{
	{preflight.Definitions, "CustomResourceDefinition", installation.Definitions},
	{preflight.APIServices, "APIService", installation.APIServices},
	{v1beta1.GroupVersion.WithResource("virtualmachinetemplates"), "VirtualMachineTemplate", nil},
	{v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests"), "VirtualMachineTemplateRequest", nil},
}

// save is the step that writes the file, unless it exists: what was saved first is what must be there in the end.
func (b backup) save(client *cluster.Client) step {
	return step{
		name: "save templates and requests",
		missing: func(context.Context) (string, error) {
			_, err := os.Stat(b.path)
			if errors.Is(err, fs.ErrNotExist) {
				return "there is no " + b.path, nil
			}
			return "", err
		},
		act: func(ctx context.Context) error {
			items, err := collect(ctx, client)
			if err != nil {
				return err
			}
			content, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
			if err != nil {
				return err
			}
			return store(b.path, content)
		},
	}
}

func collect(ctx context.Context, client *cluster.Client) ([]any, error) {
	var items []any
	for _, s := range saved {
		add := func(object map[string]any) error {
			object["apiVersion"], object["kind"] = s.resource.GroupVersion().String(), s.kind
			metadata := machine.MapAt(object, "metadata")
			delete(metadata, "managedFields")
			// Objects with a version cannot be created.
			delete(metadata, "resourceVersion")
			items = append(items, object)
			return nil
		}
		if s.names == nil {
			if err := client.List(ctx, s.resource, "", add); err != nil {
				return nil, err
			}
			continue
		}
		for _, name := range s.names {
			object, err := client.Get(ctx, s.resource, "", name)
			if err != nil {
				return nil, cluster.Failed("reading "+s.resource.Resource+" "+name, err)
			}
			if object != nil {
				delete(object, "status")
				_ = add(object)
			}
		}
	}
	return items, nil
}

// store writes a file that only its owner may read, whole or not at all.
func store(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(file.Name()))
	}
	return nil
}

// compared is the step that compares the cluster with the file, by UID. Another APIService is no loss: virt-operator deletes its own when its component is switched off before
// they were taken, and the next server of templates comes with its own.
func (b backup) compared(client *cluster.Client) step {
	return step{
		name: "compare the objects with " + b.path,
		missing: func(ctx context.Context) (string, error) {
			items, err := b.read()
			if errors.Is(err, fs.ErrNotExist) {
				return "there is no " + b.path, nil
			}
			if err != nil {
				return "", err
			}
			present := map[string]bool{}
			now, err := collect(ctx, client)
			if err != nil {
				return "", err
			}
			for _, item := range now {
				present[identity(item)] = true
			}
			var gone []string
			for _, item := range items {
				switch one := identity(item); {
				case present[one]:
				case strings.HasPrefix(one, "APIService "):
					fmt.Fprintf(b.notes, "note: %s was deleted, or replaced by another of the same name. It has no data, and is created when templates are served\n", one)
				default:
					gone = append(gone, one)
				}
			}
			if len(gone) > 0 {
				return "", cli.Cluster(fmt.Errorf("%s no longer as saved, but deleted or replaced by another of the same name: %s. The file still has what was saved",
					cli.Count(len(gone), "object is", "objects are"), strings.Join(gone[:min(len(gone), 10)], ", ")))
			}
			return "", nil
		},
	}
}

func (b backup) read() ([]any, error) {
	content, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	content, err = yaml.YAMLToJSON(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.path, err)
	}
	var list struct {
		Items []any `json:"items"`
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.path, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("%s has no objects, and so was not written by this command: remove it, or name another file with --file", b.path)
	}
	return list.Items, nil
}

// identity names an object with its UID.
func identity(item any) string {
	object, _ := item.(map[string]any)
	metadata := machine.MapAt(object, "metadata")
	name := machine.StringAt(metadata, "name")
	if namespace := machine.StringAt(metadata, "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %s (%s)", machine.StringAt(object, "kind"), name, machine.StringAt(metadata, "uid"))
}
