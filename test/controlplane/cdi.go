package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane/csi"
	"github.com/vmstencil/stencil/test/controlplane/kubelet"
	"github.com/vmstencil/stencil/test/deadline"
)

const (
	// cdiNamespace is where CDI's own objects are.
	cdiNamespace = "cdi"
	// cdiService is the Service through which the API server finds CDI's webhooks.
	cdiService = "cdi-api"
)

// The classes that a plane with CDI has.
const (
	// StorageClass provisions volumes at once and is the default.
	StorageClass = "csi"
	// StorageClassWaiting provisions a volume when a pod is to use it.
	StorageClassWaiting = "csi-wait"
	// VolumeSnapshotClass is the default for snapshots.
	VolumeSnapshotClass = "csi"
)

// CSI returns the fake CSI driver of a plane with CDI; nil without CDI.
func (p *Plane) CSI() *csi.Driver { return p.csi }

// Nodes returns the fake nodes of a plane with CDI; nil without CDI.
func (p *Plane) Nodes() *kubelet.Nodes { return p.nodes }

// StartCDI adds CDI, its CRDs and those of volume snapshots to a plane that was started without Options.CDI, and builds what is missing. The plane
// must have kube-controller-manager, which binds volumes, and must not have KubeVirt: virt-controller checks for CDI only when it starts.
func (p *Plane) StartCDI(ctx context.Context) error {
	if !p.has(controllerManager) || p.has(kubeVirt) {
		return errors.New("CDI is started after kube-controller-manager and before KubeVirt")
	}
	return p.join(ctx, cdi, func(ctx context.Context) error {
		if err := p.installCDICRDs(ctx); err != nil {
			return err
		}
		return p.startCDI(ctx)
	})
}

// installCDICRDs installs the definitions of CDI's operator, those of the operator's own kind, and those of volume snapshots.
func (p *Plane) installCDICRDs(ctx context.Context) error {
	manifests, err := p.manifests(ctx, "cdi-manifests")
	if err != nil {
		return err
	}
	definitions := manifests.crds
	generated, err := p.generatedCRDs(ctx, "cdi-crds")
	if err != nil {
		return err
	}
	for _, definition := range generated {
		if definition.Name == "cdis.cdi.kubevirt.io" {
			definitions = append(definitions, definition)
		}
	}
	if err := p.InstallSnapshotCRDs(ctx); err != nil {
		return err
	}
	return p.InstallCRDs(ctx, definitions...)
}

// InstallSnapshotCRDs installs the definitions of volume snapshots.
func (p *Plane) InstallSnapshotCRDs(ctx context.Context) error {
	snapshots, err := p.generatedCRDs(ctx, "snapshot-crds")
	if err != nil {
		return err
	}
	for _, definition := range snapshots {
		// Groups under k8s.io are protected: a CRD in them must carry the URL of its API approval.
		metav1.SetMetaDataAnnotation(&definition.ObjectMeta, apiextensionsv1.KubeAPIApprovedAnnotation,
			"https://github.com/kubernetes-csi/external-snapshotter/pull/814")
	}
	return p.InstallCRDs(ctx, snapshots...)
}

// startCDI does what CDI's operator does on a cluster, and starts the fake storage and the fake node that CDI works with.
func (p *Plane) startCDI(ctx context.Context) error {
	manifests, err := p.manifests(ctx, "cdi-manifests")
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	if err := p.startStorage(ctx, client); err != nil {
		return err
	}
	if err := create(ctx, client, object("v1", "Namespace", "", cdiNamespace, nil)); err != nil {
		return err
	}
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		if err := create(ctx, client, manifests.kind(kind)...); err != nil {
			return err
		}
	}
	if err := p.deployCDI(ctx, client); err != nil {
		return err
	}
	port, err := p.runCDI(ctx)
	if err != nil {
		return err
	}
	if err := p.register(ctx, client, manifests, cdiNamespace, cdiService, port); err != nil {
		return err
	}
	return p.awaitCDI(ctx, client)
}

// startStorage creates the classes of the CSI driver, and starts the fake driver and node.
func (p *Plane) startStorage(ctx context.Context, client dynamic.Interface) (err error) {
	isDefault := map[string]any{"annotations": map[string]any{"storageclass.kubernetes.io/is-default-class": "true"}}
	classes := object("storage.k8s.io/v1", "StorageClass", "", StorageClass, map[string]any{
		"metadata": isDefault, "provisioner": csi.Name, "allowVolumeExpansion": true, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
	})
	waiting := object("storage.k8s.io/v1", "StorageClass", "", StorageClassWaiting, map[string]any{
		"provisioner": csi.Name, "allowVolumeExpansion": true, "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer",
	})
	snapshots := object("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "", VolumeSnapshotClass, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
		"driver":   csi.Name, "deletionPolicy": "Delete",
	})
	driver := object("storage.k8s.io/v1", "CSIDriver", "", csi.Name, map[string]any{"spec": map[string]any{"attachRequired": false}})
	if err := create(ctx, client, driver, classes, waiting, snapshots); err != nil {
		return err
	}
	if p.csi, err = csi.Start(p.AdminConfig(), p.folder.file("volumes")); err != nil {
		return err
	}
	return p.startNodes(ctx)
}

// startNodes starts the fake node, whose pods may use the volumes of the CSI driver, if there is one.
func (p *Plane) startNodes(ctx context.Context) error {
	options := kubelet.Options{Folder: p.folder.file("pods"), Logs: p.folder.file("logs"), Attributes: processAttributes}
	if p.csi != nil {
		options.Volumes = p.csi
	}
	nodes, err := kubelet.Start(ctx, p.AdminConfig(), options)
	if err != nil {
		return err
	}
	p.nodes = nodes
	if p.options.Processes.Label != "" {
		nodes.RunProcesses(p.options.Processes.Label, kubelet.Programs(p.options.Processes.Programs))
	}
	return nil
}

// deployCDI creates the object that configures all of CDI, in the state that its operator writes.
func (p *Plane) deployCDI(ctx context.Context, client dynamic.Interface) error {
	// Its definition has no status subresource.
	return create(ctx, client, object("cdi.kubevirt.io/v1beta1", "CDI", "", "cdi", map[string]any{
		"spec":   map[string]any{"config": map[string]any{"featureGates": []any{"HonorWaitForFirstConsumer"}}},
		"status": map[string]any{"phase": "Deployed"},
	}))
}

// runCDI starts CDI's controllers and webhooks and waits until they work. It returns the port of the webhooks.
func (p *Plane) runCDI(ctx context.Context) (port int, err error) {
	path, err := p.tool(ctx, "cdi-server")
	if err != nil {
		return 0, err
	}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + cdiNamespace}
	controller, err1 := p.User("system:serviceaccount:"+cdiNamespace+":cdi-sa", groups...)
	apiServer, err2 := p.User("system:serviceaccount:"+cdiNamespace+":cdi-apiserver", groups...)
	certificate, key, err3 := p.storeServing(cdiService, cdiService+"."+cdiNamespace+".svc", "127.0.0.1")
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, err
	}
	err = p.ports.try(ctx, 1, func(ctx context.Context, ports []int) error {
		port = ports[0]
		started, err := p.startProcess("cdi", path,
			"--controller-kubeconfig="+controller.Kubeconfig,
			"--apiserver-kubeconfig="+apiServer.Kubeconfig,
			"--tls-cert-file="+certificate,
			"--tls-key-file="+key,
			"--port="+strconv.Itoa(port),
		)
		if err != nil {
			return err
		}
		return started.await(ctx, p.answers(port, "/healthz", "OK"))
	})
	return port, err
}

// awaitCDI returns when the API server calls CDI's webhook for DataVolumes, and CDI has the capabilities of the storage classes.
func (p *Plane) awaitCDI(ctx context.Context, client dynamic.Interface) error {
	return deadline.Wait(ctx, "CDI validates DataVolumes and has profiles of the storage classes", startLimit, func(ctx context.Context) error {
		return errors.Join(validatesDataVolumes(ctx, client), profiles(ctx, client))
	})
}

// validatesDataVolumes creates, in a dry run, a DataVolume that only CDI's webhook denies.
func validatesDataVolumes(ctx context.Context, client dynamic.Interface) error {
	const apiVersion, kind = "cdi.kubevirt.io/v1beta1", "DataVolume"
	_, err := client.Resource(resourceOf(apiVersion, kind)).Namespace(metav1.NamespaceDefault).Create(ctx,
		object(apiVersion, kind, metav1.NamespaceDefault, "readiness", map[string]any{"spec": map[string]any{}}),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && strings.Contains(err.Error(), "datavolume-validate.cdi.kubevirt.io") {
		return nil
	}
	return errors.Join(errors.New("CDI's webhook is not asked about DataVolumes yet"), err)
}

// profiles writes the capabilities of the driver's classes to their StorageProfiles. CDI's built-in list has real drivers only.
func profiles(ctx context.Context, client dynamic.Interface) error {
	const patch = `{"spec":{"cloneStrategy":"snapshot","claimPropertySets":[` +
		`{"accessModes":["ReadWriteMany"],"volumeMode":"Block"},{"accessModes":["ReadWriteOnce"],"volumeMode":"Block"},` +
		`{"accessModes":["ReadWriteOnce"],"volumeMode":"Filesystem"}]}}`
	for _, class := range []string{StorageClass, StorageClassWaiting} {
		_, err := client.Resource(resourceOf("cdi.kubevirt.io/v1beta1", "StorageProfile")).
			Patch(ctx, class, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("describing the storage class %s to CDI: %w", class, err)
		}
	}
	return nil
}
