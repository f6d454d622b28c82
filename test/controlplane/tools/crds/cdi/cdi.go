// Package cdi names the API packages whose CustomResourceDefinitions hack/tool generates as cdi-crds. Nothing links it:
// its imports are the list.
package cdi

import (
	_ "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	_ "kubevirt.io/containerized-data-importer-api/pkg/apis/forklift/v1beta1"
)
