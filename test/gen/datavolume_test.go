package gen_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

func TestDataVolume(t *testing.T) {
	equal(t, gen.DataVolume("data", "{pvc: {name: disk, namespace: golden}}"), `
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: data}
spec: {source: {pvc: {name: disk, namespace: golden}}, storage: {resources: {requests: {storage: 1Gi}}}}
`)
}
