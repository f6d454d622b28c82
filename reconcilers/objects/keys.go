package objects

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	keysControllerName = "object-keys"
	// renewInterval is how often the ages of the keys are checked.
	renewInterval = time.Hour
)

// keys reconciles the Secret with the keys.
type keys struct {
	cache   Keys
	secrets corev1client.SecretInterface
	name    string
	// inUse returns the IDs of the keys that VirtualMachines need, and whether all VirtualMachines are known.
	inUse func() (map[string]bool, bool)
}

func newKeys(config *rest.Config, secret types.NamespacedName, cache Keys, inUse func() (map[string]bool, bool)) (*keys, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the keys of objects: %w", err)
	}
	return &keys{cache: cache, secrets: client.CoreV1().Secrets(secret.Namespace), name: secret.Name, inUse: inUse}, nil
}

// Reconcile implements reconcile.Reconciler.
func (k *keys) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !k.cache.Synced() {
		return reconcile.Result{RequeueAfter: syncInterval}, nil
	}
	inUse, known := k.inUse()
	r := rotation{keys: k.cache.Keys(), inUse: inUse, known: known}
	if _, changed := r.renew(time.Now()); !changed {
		return reconcile.Result{RequeueAfter: renewInterval}, nil
	}
	if err := k.write(ctx, r); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the keys that encrypt objects: %w", err)
	}
	return reconcile.Result{RequeueAfter: renewInterval}, nil
}

// write renews the keys of the stored Secret. A conflict means that another process has just done so.
func (k *keys) write(ctx context.Context, r rotation) error {
	log := logf.FromContext(ctx)
	stored, err := k.secrets.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r.keys = nil
		made, _ := r.renew(time.Now())
		_, err := k.secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: k.name}, Type: corev1.SecretTypeOpaque, Data: made}, metav1.CreateOptions{FieldManager: fieldManager})
		if err == nil {
			log.Info("made the Secret with the keys that encrypt objects", "secret", k.name)
		}
		return err
	}
	if err != nil {
		return err
	}
	r.keys = stored.Data
	renewed, changed := r.renew(time.Now())
	if !changed {
		return nil
	}
	stored.Data = renewed
	_, err = k.secrets.Update(ctx, stored, metav1.UpdateOptions{FieldManager: fieldManager})
	if err == nil {
		log.Info("renewed the keys that encrypt objects", "secret", k.name, "keys", len(renewed))
	}
	return err
}
