package gen_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

func TestClaim(t *testing.T) {
	equal(t, gen.Claim("data", gen.Label("app", "web"), gen.Spec("{storageClassName: slow}")), `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, labels: {app: web}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: slow}
`)
}
