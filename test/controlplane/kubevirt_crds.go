package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kubevirtDefinitions are the CRDs of KubeVirt's operator without their schemas, as the tool kubevirt-manifests prints them. They are stored in a
// file because that tool takes minutes to build, and most planes need nothing else of it.
//
//go:embed kubevirt_crds.yaml
var kubevirtDefinitions []byte

// InstallVirtualizationCRDs installs the CRDs of KubeVirt, and those of CDI unless the plane has CDI or is to have it later
// (Options.CDILater). KubeVirt itself may follow: see StartKubeVirt.
//
// The schemas are generated from the API modules. KubeVirt's names, columns, subresources and storage versions are those of its
// operator, because its Go types do not have them.
func (p *Plane) InstallVirtualizationCRDs(ctx context.Context) error {
	operator, err := p.operatorDefinitions(ctx)
	if err != nil {
		return fmt.Errorf("decoding the definitions of KubeVirt's operator: %w", err)
	}
	generated, err := p.generatedCRDs(ctx, "kubevirt-crds")
	if err != nil {
		return err
	}
	definitions, err := mergeCRDs(generated, operator)
	if err != nil {
		return err
	}
	if !p.options.CDILater && !p.has(cdi) {
		more, err := p.generatedCRDs(ctx, "cdi-crds")
		if err != nil {
			return err
		}
		definitions = append(definitions, more...)
	}
	if err := p.InstallCRDs(ctx, definitions...); err != nil {
		return err
	}
	p.mark(virtualizationCRDs)
	return nil
}

// operatorDefinitions returns the CRDs of KubeVirt's operator without their schemas. They are those of another release if STENCIL_ASSETS has its manifests.
func (p *Plane) operatorDefinitions(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	const tool = "kubevirt-manifests"
	if assets := os.Getenv("STENCIL_ASSETS"); assets != "" {
		if _, err := os.Stat(filepath.Join(assets, tool)); err == nil {
			read, err := p.manifests(ctx, tool)
			if err != nil {
				return nil, err
			}
			return read.crds, nil
		}
	}
	return decodeCRDs(kubevirtDefinitions)
}

func (p *Plane) generatedCRDs(ctx context.Context, tool string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	folder, err := p.tool(ctx, tool)
	if err != nil {
		return nil, err
	}
	return ReadCRDs(folder)
}

// mergeCRDs gives each definition of the operator the schemas generated for it. generated has one definition for each version, and also some that the
// operator does not have: types that only resemble kinds. A version that only the operator has (KubeVirt's v1alpha3) is another name of the same
// types and takes the schema of a version that has one. A version that is only generated belongs to a newer KubeVirt than the one that runs, and is
// left out.
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
