package main

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v6/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"kubevirt.io/containerized-data-importer/pkg/apiserver"
	cdiclient "kubevirt.io/containerized-data-importer/pkg/client/clientset/versioned"
	"kubevirt.io/containerized-data-importer/pkg/controller/datavolume"
	"kubevirt.io/containerized-data-importer/pkg/keys"
	"kubevirt.io/containerized-data-importer/pkg/util/cert/watcher"
	cryptowatch "kubevirt.io/containerized-data-importer/pkg/util/tls-crypto-watch"
)

// signingKey is the key with which CDI's webhooks confirm a checked clone to its controllers.
func signingKey(kubeconfig string) (*rsa.PrivateKey, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the webhooks' kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	key, err := keys.GetOrCreatePrivateKey(client, namespace, apiserver.APISigningKeySecretName, nil)
	if err != nil {
		return nil, fmt.Errorf("making the signing key: %w", err)
	}
	return key, nil
}

// serve serves CDI's webhooks and its aggregated API until stop is closed.
func serve(ctx context.Context, given options, stop <-chan struct{}) error {
	config, err := clientcmd.BuildConfigFromFlags("", given.apiServerKubeconfig)
	if err != nil {
		return fmt.Errorf("reading the webhooks' kubeconfig: %w", err)
	}
	kube, err1 := kubernetes.NewForConfig(config)
	aggregated, err2 := aggregator.NewForConfig(config)
	cdi, err3 := cdiclient.NewForConfig(config)
	snapshots, err4 := snapshotclient.NewForConfig(config)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("making clients: %w", err)
	}
	reader, err := newReader(ctx, config)
	if err != nil {
		return err
	}
	authentication, err := apiserver.NewAuthConfigWatcher(ctx, kube)
	if err != nil {
		return fmt.Errorf("reading how the API server proves itself: %w", err)
	}
	ciphers, err := cryptowatch.NewCdiConfigTLSWatcher(ctx, cdi)
	if err != nil {
		return fmt.Errorf("reading CDI's TLS settings: %w", err)
	}
	authorizer, err := apiserver.NewAuthorizorFromConfig(config, authentication)
	if err != nil {
		return fmt.Errorf("making the authorizer: %w", err)
	}
	certificate, err := watcher.New(given.certificate, given.key)
	if err != nil {
		return fmt.Errorf("reading the serving certificate: %w", err)
	}
	app, err := apiserver.NewCdiAPIServer("127.0.0.1", given.port, kube, aggregated, cdi, snapshots, reader, authorizer, authentication, ciphers, certificate, nil)
	if err != nil {
		return err
	}
	return app.Start(stop)
}

// newReader reads volumes, storage classes and their profiles from a cache and everything else from the API server, as cdi-apiserver does: objects
// that a user has just created must be visible.
func newReader(ctx context.Context, config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), cdiv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("making the scheme: %w", err)
	}
	cached, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the webhooks' cache: %w", err)
	}
	if err := datavolume.CreateAvailablePersistentVolumeIndex(cached); err != nil {
		return nil, fmt.Errorf("indexing volumes: %w", err)
	}
	go func() { _ = cached.Start(ctx) }()
	if !cached.WaitForCacheSync(ctx) {
		return nil, errors.New("the webhooks' cache was not filled")
	}
	return client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: cached, DisableFor: []client.Object{
		&corev1.PersistentVolumeClaim{}, &corev1.Namespace{}, &cdiv1.DataVolume{}, &cdiv1.DataSource{}, &cdiv1.VolumeCloneSource{},
		&snapshotv1.VolumeSnapshot{},
	}}})
}
