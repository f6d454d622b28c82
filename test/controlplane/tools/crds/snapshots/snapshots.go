// Package snapshots names the API package whose CustomResourceDefinitions hack/tool generates as snapshot-crds. Nothing links it:
// its import is the list.
package snapshots

import (
	_ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
)
