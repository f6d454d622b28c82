package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/transfer"
)

const (
	// Annotations of the default storage classes, that of KubeVirt first
	// (https://github.com/kubevirt/containerized-data-importer/blob/v1.66.0/doc/basic_pv_pvc_dv.md).
	defaultForVMs = "storageclass.kubevirt.io/is-default-virt-class"
	defaultForAll = "storageclass.kubernetes.io/is-default-class"

	// defaultOverhead is CDI's own default for the share of a filesystem that a file in it cannot use.
	defaultOverhead = 0.06
	// filesystemRoom is the least room for a filesystem in bytes: for the log of XFS, or for inodes and journal of ext4.
	filesystemRoom = 64 << 20
	// sizeUnit is the unit of the sizes of volumes, in bytes.
	sizeUnit = 1 << 20
)

var cdi = schema.GroupVersion{Group: "cdi.kubevirt.io", Version: "v1beta1"}

// properties of the volume of a disk.
type properties struct {
	class string
	modes []corev1.PersistentVolumeAccessMode
	mode  corev1.PersistentVolumeMode
	size  int64
}

// storageOf chooses the storage of a disk: what the user names, then the StorageProfile of the class, then a volume with a filesystem for one node. The
// parameter copies is the size in bytes that copies of the volume request, 0 for any. CDI rejects copies that are smaller than the volume, so that room for the
// filesystem does not exceed it.
func (r *runner) storageOf(ctx context.Context, wanted v1beta1.ImportStorage, size, copies int64) (*properties, error) {
	p := &properties{class: wanted.StorageClassName, modes: wanted.AccessModes}
	if p.class == "" {
		var err error
		if p.class, err = r.defaultClass(ctx); err != nil {
			return nil, err
		}
	}
	if wanted.VolumeMode != nil {
		p.mode = *wanted.VolumeMode
	}
	if err := r.profile(ctx, p); err != nil {
		return nil, err
	}
	if p.mode == "" {
		p.mode = corev1.PersistentVolumeFilesystem
	}
	if len(p.modes) == 0 {
		p.modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if wanted.Size != nil && wanted.Size.Value() > size {
		size = wanted.Size.Value()
	}
	if p.mode == corev1.PersistentVolumeFilesystem {
		overhead, err := r.overhead(ctx, p.class)
		if err != nil {
			return nil, err
		}
		room := size + filesystemRoom
		if copies > 0 {
			room = min(room, int64(float64(copies)/(1-overhead))/sizeUnit*sizeUnit)
		}
		size = max(room, int64(float64(size)/(1-overhead)))
	}
	p.size = (size + sizeUnit - 1) / sizeUnit * sizeUnit
	return p, nil
}

// copySizes returns the sizes in bytes that copies of a template's disks request, by the claim. A size that a parameter decides is not among them.
func copySizes(template []byte) (map[string]int64, error) {
	content, err := machine.Decode(template)
	if err != nil {
		return nil, &permanentError{transfer.ReasonNotAPackage, err.Error()}
	}
	sizes := map[string]int64{}
	for _, each := range machine.MapsAt(machine.MapAt(content, "spec", "virtualMachine", "spec"), "dataVolumeTemplates") {
		spec := machine.MapAt(each, "spec")
		requested := fmt.Sprint(machine.MapAt(spec, "storage", "resources", "requests")["storage"])
		if size, err := resource.ParseQuantity(requested); err == nil {
			sizes[machine.StringAt(machine.MapAt(spec, "source", "pvc"), "name")] = size.Value()
		}
	}
	return sizes, nil
}

// defaultClass returns the default storage class for disks; empty if there is none.
func (r *runner) defaultClass(ctx context.Context) (string, error) {
	classes := &storagev1.StorageClassList{}
	if err := r.cluster.List(ctx, classes); err != nil {
		return "", fmt.Errorf("listing the storage classes: %w", err)
	}
	for _, annotation := range []string{defaultForVMs, defaultForAll} {
		for _, class := range classes.Items {
			if class.Annotations[annotation] == "true" {
				return class.Name, nil
			}
		}
	}
	return "", nil
}

// profile fills in what the user leaves open, from the StorageProfile of the class.
func (r *runner) profile(ctx context.Context, p *properties) error {
	if p.class == "" || p.mode != "" && len(p.modes) > 0 {
		return nil
	}
	profile := struct {
		Status struct {
			ClaimPropertySets []struct {
				AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes"`
				VolumeMode  corev1.PersistentVolumeMode         `json:"volumeMode"`
			} `json:"claimPropertySets"`
		} `json:"status"`
	}{}
	if err := r.readCDI(ctx, "StorageProfile", p.class, &profile); err != nil {
		return err
	}
	for _, set := range profile.Status.ClaimPropertySets {
		if p.mode != "" && set.VolumeMode != p.mode {
			continue
		}
		p.mode = set.VolumeMode
		if len(p.modes) == 0 {
			p.modes = set.AccessModes
		}
		return nil
	}
	return nil
}

// overhead returns the share of a filesystem of a class that a file in it cannot use.
func (r *runner) overhead(ctx context.Context, class string) (float64, error) {
	config := struct {
		Status struct {
			FilesystemOverhead struct {
				Global       string            `json:"global"`
				StorageClass map[string]string `json:"storageClass"`
			} `json:"filesystemOverhead"`
		} `json:"status"`
	}{}
	if err := r.readCDI(ctx, "CDIConfig", "config", &config); err != nil {
		return 0, err
	}
	text := config.Status.FilesystemOverhead.StorageClass[class]
	if text == "" {
		text = config.Status.FilesystemOverhead.Global
	}
	if share, err := strconv.ParseFloat(text, 64); err == nil && share >= 0 && share < 1 {
		return share, nil
	}
	return defaultOverhead, nil
}

// readCDI reads a cluster-scoped object of CDI into a value, which stays as it is if there is no such object.
func (r *runner) readCDI(ctx context.Context, kind, name string, into any) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(cdi.WithKind(kind))
	err := r.cluster.Get(ctx, client.ObjectKey{Name: name}, object)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	raw, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	return nil
}
