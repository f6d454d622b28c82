package transfer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/transfer"
)

// copies has CDI copy the disks: a point in time of each, which pods can mount, and which later changes do not affect. It returns the claims, or what is
// waited for. While a copy is missing, it fails permanently if check does, or the way to one of the disks leads through a namespace that is not
// permitted, before any is copied.
func (s *session) copies(ctx context.Context, of []exported, check func(context.Context) error, permitted ...string) (claims []corev1.PersistentVolumeClaim, waiting string, err error) {
	var sources []disks.Resolved
	for index, disk := range of {
		name := s.owner.called(fmt.Sprintf("-%d", index))
		copied := &unstructured.Unstructured{}
		copied.SetGroupVersionKind(cdi.WithKind("DataVolume"))
		found, err := get(ctx, s.cluster, s.owner.namespace, name, copied)
		if err != nil {
			return nil, "", fmt.Errorf("reading DataVolume %s/%s: %w", s.owner.namespace, name, err)
		}
		if !found {
			if sources == nil {
				if check != nil {
					err = check(ctx)
				}
				if err != nil {
					return nil, "", err
				}
				if sources, err = s.resolve(ctx, of, permitted); err != nil {
					return nil, "", err
				}
			}
			if sources[index].Found == nil {
				return nil, "", &permanentError{ReasonTemplateUnusable, fmt.Sprintf("the disk %s cannot be copied: %s", disk.volume, sources[index].Problem)}
			}
			copied = s.copyOf(name, sources[index])
			if err := ensure(ctx, s.cluster, copied); err != nil {
				return nil, "", s.notCopied(disk.volume, sources[index], err)
			}
		}
		phase, _, _ := unstructured.NestedString(copied.Object, "status", "phase")
		if phase == "Failed" {
			return nil, "", &permanentError{ReasonDiskLost, fmt.Sprintf("CDI could not copy the disk %s: DataVolume %s/%s has failed", disk.volume, s.owner.namespace, name)}
		}
		if phase != "Succeeded" {
			waiting = fmt.Sprintf("waiting for DataVolume %s, a copy of the disk %s", name, disk.volume)
			if trouble := troubleOf(copied); trouble != "" {
				waiting += ": " + trouble
			}
			continue
		}
		claim := corev1.PersistentVolumeClaim{}
		found, err = get(ctx, s.cluster, s.owner.namespace, name, &claim)
		if err != nil {
			return nil, "", err
		}
		if !found {
			return nil, "", &permanentError{ReasonDiskLost, fmt.Sprintf("the copy of the disk %s was deleted in the meantime", disk.volume)}
		}
		claims = append(claims, claim)
	}
	return claims, waiting, nil
}

// resolve finds out which claims and snapshots the disks are. Each namespace on the way to a disk has to be permitted.
func (s *session) resolve(ctx context.Context, of []exported, permitted []string) ([]disks.Resolved, error) {
	sources := make([]disks.Resolved, len(of))
	for index, disk := range of {
		resolved, outside, err := powers.Disk(ctx, s.sources, disk.source, permitted...)
		if err != nil {
			return nil, err
		}
		if outside != "" {
			return nil, &permanentError{ReasonSourceDenied, fmt.Sprintf("the disk %s of the template comes from namespace %s, which spec.sourceNamespaces does not name: create an export that names it", disk.volume, outside)}
		}
		sources[index] = resolved
	}
	return sources, nil
}

// notCopied explains why a disk cannot be copied. CDI refuses what the account of transfers may not copy.
func (s *session) notCopied(volume string, source disks.Resolved, err error) error {
	if source.Namespace != s.owner.namespace && strings.Contains(err.Error(), "clone source namespace") {
		return &permanentError{ReasonSourceDenied, fmt.Sprintf("the disk %s is not copied from namespace %s: a cluster admin can list the namespace in the chart value transfers.sourceNamespaces: %v", volume, source.Namespace, err)}
	}
	return fmt.Errorf("copying the disk %s: %w", volume, err)
}

// copyOf returns the DataVolume that copies a disk.
func (s *session) copyOf(name string, from disks.Resolved) *unstructured.Unstructured {
	spec := map[string]any{"source": from.DataVolumeSource(), "storage": map[string]any{}}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(cdi.WithKind("DataVolume"))
	metadata := s.owner.metadata(name)
	made.SetNamespace(metadata.Namespace)
	made.SetName(metadata.Name)
	made.SetLabels(metadata.Labels)
	made.SetOwnerReferences(metadata.OwnerReferences)
	// Bind at once: the mover starts when the copy is complete.
	made.SetAnnotations(map[string]string{"cdi.kubevirt.io/storage.bind.immediate.requested": ""})
	return made
}

// troubleOf returns the error that a DataVolume reports.
func troubleOf(copied *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(copied.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if message, _ := condition["message"].(string); message != "" && condition["status"] != "True" {
			return message
		}
	}
	return ""
}

// mountCopies adds copies of disks to the task of a mover and to its Job, which reads them. It returns how large a package with them can be.
func mountCopies(task *transfer.Task, j *job, disks []exported, copies []corev1.PersistentVolumeClaim) (size int64) {
	for index := range copies {
		claim := &copies[index]
		block := claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
		capacity := claim.Status.Capacity[corev1.ResourceStorage]
		disk := disks[index]
		name := fmt.Sprintf("disk-%d", index)
		task.Disks = append(task.Disks, transfer.Disk{Name: name, Block: block, Size: capacity.Value(), Volume: disk.volume, Source: disk.source.Name, CDROM: disk.cdrom})
		j.disks = append(j.disks, jobDisk{name: name, claim: claim.Name, block: block, readOnly: true})
		// Blocks that cannot be compressed grow a little.
		size += capacity.Value() + capacity.Value()/100
	}
	return size
}
