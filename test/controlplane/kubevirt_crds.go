package controlplane

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// installVirtualizationCRDs installs the CRDs of KubeVirt, and of CDI where it does not bring its own: the schemas are generated from their API modules, and
// KubeVirt's names, columns, subresources and storage versions are those of its operator, because the types say nothing of them.
func (p *Plane) installVirtualizationCRDs(ctx context.Context, manifests *manifests) error {
	generated, err := p.generatedCRDs(ctx, "kubevirt-crds")
	if err != nil {
		return err
	}
	kubevirt, err := mergeCRDs(generated, manifests.crds)
	if err != nil {
		return err
	}
	if p.options.CDI || p.options.CDILater {
		return p.InstallCRDs(ctx, kubevirt...)
	}
	cdi, err := p.generatedCRDs(ctx, "cdi-crds")
	if err != nil {
		return err
	}
	return p.InstallCRDs(ctx, append(kubevirt, cdi...)...)
}

func (p *Plane) generatedCRDs(ctx context.Context, tool string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	folder, err := p.tool(ctx, tool)
	if err != nil {
		return nil, err
	}
	return ReadCRDs(folder)
}

// mergeCRDs gives each definition of the operator the schemas generated for it. generated has one definition for each version, and
// also some that the operator does not know: types that only look like kinds. A version that only the operator knows (KubeVirt's
// v1alpha3) is another name of the same types and takes the schema of a version that has one. A version that is only
// generated belongs to a newer KubeVirt than the one that runs, and is left out.
func mergeCRDs(generated, operator []*apiextensionsv1.CustomResourceDefinition) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	schemas := map[string]*apiextensionsv1.CustomResourceValidation{}
	for _, definition := range generated {
		for _, version := range definition.Spec.Versions {
			schemas[definition.Name+"/"+version.Name] = version.Schema
		}
	}
	var merged []*apiextensionsv1.CustomResourceDefinition
	for _, definition := range operator {
		definition := definition.DeepCopy()
		var missing []*apiextensionsv1.CustomResourceDefinitionVersion
		var schema *apiextensionsv1.CustomResourceValidation
		for i := range definition.Spec.Versions {
			version := &definition.Spec.Versions[i]
			version.Schema = schemas[definition.Name+"/"+version.Name]
			if version.Schema == nil {
				missing = append(missing, version)
			} else {
				schema = version.Schema
			}
		}
		if schema == nil {
			return nil, fmt.Errorf("no schema was generated for the CRD %s", definition.Name)
		}
		for _, version := range missing {
			version.Schema = schema
		}
		merged = append(merged, definition)
	}
	return merged, nil
}
