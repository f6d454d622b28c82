package disks

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/internal/disks"
)

// Reader reads disks from the API server, but those that the cache does not have.
type Reader struct {
	*disks.APIServer
	Cache *Cache
}

// DataVolume returns the metadata of a DataVolume, nil when there is none.
func (r Reader) DataVolume(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error) {
	if r.Cache.Synced() && !r.Cache.DataVolume(namespace, name) {
		return nil, nil
	}
	return r.APIServer.DataVolume(ctx, namespace, name)
}

// Claim returns the metadata of a PersistentVolumeClaim, nil when there is none.
func (r Reader) Claim(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error) {
	if r.Cache.Synced() && !r.Cache.Claim(namespace, name) {
		return nil, nil
	}
	return r.APIServer.Claim(ctx, namespace, name)
}
