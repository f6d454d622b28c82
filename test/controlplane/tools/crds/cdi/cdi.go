// Package cdi names the API packages from which hack/tool generates the CustomResourceDefinitions cdi-crds. No package links it: its imports are the
// list.
package cdi

import (
	_ "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	_ "kubevirt.io/containerized-data-importer-api/pkg/apis/forklift/v1beta1"
)
