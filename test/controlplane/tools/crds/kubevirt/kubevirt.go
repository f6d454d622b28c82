// Package kubevirt names the API packages from which hack/tool generates the CustomResourceDefinitions kubevirt-crds. No package links it: its
// imports are the list.
package kubevirt

import (
	_ "kubevirt.io/api/backup/v1alpha1"
	_ "kubevirt.io/api/clone/v1alpha1"
	_ "kubevirt.io/api/clone/v1beta1"
	_ "kubevirt.io/api/core/v1"
	_ "kubevirt.io/api/export/v1"
	_ "kubevirt.io/api/export/v1beta1"
	_ "kubevirt.io/api/instancetype/v1beta1"
	_ "kubevirt.io/api/migrations/v1alpha1"
	_ "kubevirt.io/api/pool/v1alpha1"
	_ "kubevirt.io/api/pool/v1beta1"
	_ "kubevirt.io/api/snapshot/v1alpha1"
	_ "kubevirt.io/api/snapshot/v1beta1"
)
