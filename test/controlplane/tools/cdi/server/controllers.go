package main

import (
	"context"
	"crypto/rsa"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	ocpconfigv1 "github.com/openshift/api/config/v1"
	imagev1 "github.com/openshift/api/image/v1"
	routev1 "github.com/openshift/api/route/v1"
	"github.com/openshift/library-go/pkg/crypto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	forklift "kubevirt.io/containerized-data-importer-api/pkg/apis/forklift/v1beta1"
	"kubevirt.io/containerized-data-importer/pkg/common"
	"kubevirt.io/containerized-data-importer/pkg/controller"
	"kubevirt.io/containerized-data-importer/pkg/controller/datavolume"
	"kubevirt.io/containerized-data-importer/pkg/controller/populators"
	"kubevirt.io/containerized-data-importer/pkg/controller/transfer"
	metrics "kubevirt.io/containerized-data-importer/pkg/monitoring/metrics/cdi-controller"
	"kubevirt.io/containerized-data-importer/pkg/util/cert/fetcher"
	"kubevirt.io/containerized-data-importer/pkg/util/cert/generator"
)

// Images of the worker pods. No container ever runs: only the names are required.
const (
	importer  = "quay.io/kubevirt/cdi-importer"
	cloner    = "quay.io/kubevirt/cdi-cloner"
	uploader  = "quay.io/kubevirt/cdi-uploadserver"
	populator = "quay.io/kubevirt/ovirt-populator"

	uploadProxy = "cdi-uploadproxy"
	pullPolicy  = "IfNotPresent"
	verbosity   = "1"
)

func newManager(ctx context.Context, kubeconfig string, signing *rsa.PrivateKey) (manager.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the controllers' kubeconfig: %w", err)
	}
	// The default limit of a client, five requests a second, is a quarter of what CDI's own command allows itself; and many tests share a plane.
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, cdiv1.AddToScheme, extv1.AddToScheme, snapshotv1.AddToScheme, forklift.AddToScheme,
		imagev1.Install, ocpconfigv1.Install, routev1.Install,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	// CDI has permission to read these in its own namespace only.
	own := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.namespace", namespace)}
	made, err := manager.New(config, manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&networkingv1.Ingress{}: own,
			&batchv1.CronJob{}:      own,
			&batchv1.Job{}:          own,
			&corev1.ConfigMap{}:     own,
			&corev1.Secret{}:        own,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := metrics.SetupMetrics(); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return made, addControllers(ctx, made, signing)
}

// addControllers adds every controller of CDI.
func addControllers(ctx context.Context, mgr manager.Manager, signing *rsa.PrivateKey) error {
	certificates, bundle, err := uploadAuthority()
	if err != nil {
		return err
	}
	if err := datavolume.CreateCommonIndexes(mgr); err != nil {
		return fmt.Errorf("indexing for DataVolumes: %w", err)
	}
	if err := populators.CreateCommonPopulatorIndexes(mgr); err != nil {
		return fmt.Errorf("indexing for populators: %w", err)
	}
	log, labels, public := log.Log.WithName("cdi"), map[string]string{}, &signing.PublicKey
	for name, add := range map[string]func() error{
		"config": func() error {
			_, err := controller.NewConfigController(mgr, log, uploadProxy, common.ConfigName, labels)
			return err
		},
		"storage profile":   func() error { _, err := controller.NewStorageProfileController(mgr, log, labels); return err },
		"DataVolume import": func() error { _, err := datavolume.NewImportController(ctx, mgr, log, labels); return err },
		"DataVolume upload": func() error { _, err := datavolume.NewUploadController(ctx, mgr, log, labels); return err },
		"DataVolume clone": func() error {
			_, err := datavolume.NewPvcCloneController(ctx, mgr, log, cloner, importer, pullPolicy, public, signing, labels)
			return err
		},
		"DataVolume snapshot clone": func() error {
			_, err := datavolume.NewSnapshotCloneController(ctx, mgr, log, cloner, importer, pullPolicy, public, signing, labels)
			return err
		},
		"DataVolume population": func() error { _, err := datavolume.NewPopulatorController(ctx, mgr, log, labels); return err },
		"import": func() error {
			_, err := controller.NewImportController(mgr, log, importer, pullPolicy, verbosity, labels)
			return err
		},
		"clone": func() error {
			_, err := controller.NewCloneController(mgr, log, cloner, pullPolicy, verbosity, certificates, bundle, public, labels)
			return err
		},
		"upload": func() error {
			_, err := controller.NewUploadController(mgr, log, uploader, pullPolicy, verbosity, certificates, bundle, labels)
			return err
		},
		"transfer": func() error { _, err := transfer.NewObjectTransferController(mgr, log, labels); return err },
		"DataImportCron": func() error {
			_, err := controller.NewDataImportCronController(mgr, log, importer, pullPolicy, labels)
			return err
		},
		"DataSource":       func() error { _, err := controller.NewDataSourceController(mgr, log, labels); return err },
		"import populator": func() error { _, err := populators.NewImportPopulator(ctx, mgr, log, labels); return err },
		"upload populator": func() error { _, err := populators.NewUploadPopulator(ctx, mgr, log, labels); return err },
		"clone populator": func() error {
			_, err := populators.NewClonePopulator(ctx, mgr, log, cloner, pullPolicy, labels, public)
			return err
		},
		"forklift populator": func() error {
			_, err := populators.NewForkliftPopulator(ctx, mgr, log, importer, populator, labels)
			return err
		},
	} {
		if err := add(); err != nil {
			return fmt.Errorf("adding the %s controller: %w", name, err)
		}
	}
	return nil
}

// uploadAuthority signs the certificates of upload servers and their clients.
func uploadAuthority() (generator.CertGenerator, fetcher.CertBundleFetcher, error) {
	authority, err := crypto.MakeSelfSignedCAConfigForDuration("cdi-upload", 7*24*time.Hour)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority of upload servers: %w", err)
	}
	certificate, key, err := authority.GetPEMBytes()
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the authority of upload servers: %w", err)
	}
	return &generator.FetchCertGenerator{Fetcher: &fetcher.MemCertFetcher{Cert: certificate, Key: key}},
		&fetcher.MemCertBundleFetcher{Bundle: certificate}, nil
}
