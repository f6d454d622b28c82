// Package snapshots names the API package from which hack/tool generates the CustomResourceDefinitions snapshot-crds. No package links it: its import
// is the list.
package snapshots

import (
	_ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
)
