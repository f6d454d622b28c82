package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/vmstencil/stencil/test/controlplane/conflict"
	"github.com/vmstencil/stencil/test/deadline"
)

// InstallCRDs creates the definitions, or updates those that exist already, and returns when the API server serves every version
// of all of them.
func (p *Plane) InstallCRDs(ctx context.Context, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, definition := range definitions {
		_, err := crds.Create(ctx, definition, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = conflict.Retry(func() error {
				stored, err := crds.Get(ctx, definition.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				stored.Spec = definition.Spec
				_, err = crds.Update(ctx, stored, metav1.UpdateOptions{})
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("installing the CRD %s: %w", definition.Name, err)
		}
	}
	return awaitServed(ctx, client, definitions...)
}

// awaitServed returns when the API server serves every version of all definitions.
func awaitServed(ctx context.Context, client apiextensions.Interface, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		err := deadline.Wait(ctx, "the CRD "+definition.Name+" is served", startLimit, func(ctx context.Context) error {
			return served(ctx, client, definition)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// served returns the reason why a definition is not usable yet: it must be accepted, and its resources listed in discovery.
func served(ctx context.Context, client apiextensions.Interface, definition *apiextensionsv1.CustomResourceDefinition) error {
	stored, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	established := false
	for _, condition := range stored.Status.Conditions {
		switch {
		case condition.Status != apiextensionsv1.ConditionTrue && condition.Type == apiextensionsv1.NamesAccepted:
			return fmt.Errorf("names not accepted: %s", condition.Message)
		case condition.Status == apiextensionsv1.ConditionTrue && condition.Type == apiextensionsv1.Established:
			established = true
		}
	}
	if !established {
		return errors.New("not established yet")
	}
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		resources, err := client.Discovery().ServerResourcesForGroupVersion(definition.Spec.Group + "/" + version.Name)
		if err != nil {
			return err
		}
		if !lists(resources, definition.Spec.Names.Plural) {
			return fmt.Errorf("%s not in discovery yet", version.Name)
		}
	}
	return nil
}

func lists(resources *metav1.APIResourceList, plural string) bool {
	for _, resource := range resources.APIResources {
		if resource.Name == plural {
			return true
		}
	}
	return false
}

// ReadCRDs returns the CustomResourceDefinitions in the YAML files of a folder and the folders in it, in the order of their paths.
func ReadCRDs(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		decoded, err := decodeCRDs(content)
		if err != nil {
			return fmt.Errorf("decoding %s: %w", path, err)
		}
		definitions = append(definitions, decoded...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs in %s: %w", folder, err)
	}
	return definitions, nil
}

// decodeCRDs returns the CustomResourceDefinitions among YAML documents.
func decodeCRDs(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := documents.Decode(definition)
		if errors.Is(err, io.EOF) {
			return definitions, nil
		}
		if err != nil {
			return nil, err
		}
		if definition.Kind == "CustomResourceDefinition" {
			definitions = append(definitions, definition)
		}
	}
}
