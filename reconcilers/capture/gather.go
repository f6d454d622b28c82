package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// gatherer reads the objects of a capture.
type gatherer struct {
	cluster *Cluster
	clock   clock.PassiveClock
}

// gather returns the state of a request, nil if the request does not exist.
func (g *gatherer) gather(ctx context.Context, key types.NamespacedName) (*state, error) {
	s := &state{request: &v1beta1.VirtualMachineTemplateRequest{}, now: g.clock.Now()}
	if found, err := g.cluster.read(ctx, requests, key.Namespace, key.Name, s.request); err != nil || !found {
		return nil, ignoreUnknown(err)
	}
	if s.ended() && len(s.request.Finalizers) == 0 {
		// No object can be left over. Such requests may be numerous.
		return s, nil
	}
	err := g.made(ctx, s)
	var unknown *unknownKindError
	if errors.As(err, &unknown) {
		s.unknown, err = unknown.resource.String(), nil
	}
	if err != nil {
		return nil, err
	}
	// Also if another kind is not served: existing objects have to be cleaned up.
	owned, err := g.cluster.list(ctx, dataVolumes, key.Namespace, v1beta1.LabelRequestUID+"="+string(s.uid()))
	if err != nil {
		return nil, err
	}
	for _, each := range owned {
		if ownedBy(&each, s.uid()) {
			s.owned = append(s.owned, each)
		}
	}
	return s, nil
}

// made reads what the request has created: the template, the snapshot, its content, and the copies of its volumes.
func (g *gatherer) made(ctx context.Context, s *state) error {
	source := s.request.Spec.VirtualMachineRef
	template := &metav1.PartialObjectMetadata{}
	if found, err := g.cluster.read(ctx, templates, s.request.Namespace, templateName(s.request), template); err != nil {
		return err
	} else if found {
		s.template = template
	}
	taken := &snapshot{}
	switch found, err := g.cluster.read(ctx, snapshots, source.Namespace, snapshotName(s.uid()), taken); {
	case err != nil:
		return err
	case !found && s.request.Status.SnapshotRef != nil:
		return nil
	case !found:
		return g.source(ctx, s)
	}
	s.snapshot = taken
	switch {
	case !s.ownsSnapshot():
		return nil
	case !taken.taken():
		return g.source(ctx, s)
	case taken.Status.Content == "":
		return nil
	}
	held := &content{}
	if found, err := g.cluster.read(ctx, contents, source.Namespace, taken.Status.Content, held); err != nil || !found {
		return err
	}
	s.content = held
	if !taken.Status.ReadyToUse {
		return g.lost(ctx, s)
	}
	for _, each := range held.backups() {
		if strings.Contains(each.VolumeName, backendStorage) {
			continue
		}
		one := disk{backup: each, name: dataVolumeName(s.uid(), templateName(s.request), each.VolumeName)}
		copied := &dataVolume{}
		found, err := g.cluster.read(ctx, dataVolumes, s.request.Namespace, one.name, copied)
		if err != nil {
			return err
		}
		if found {
			one.copy = copied
		}
		s.disks = append(s.disks, one)
	}
	return nil
}

// lost checks whether the VolumeSnapshots of a snapshot that was taken, and is not ready, still exist. KubeVirt does not recreate them, and
// reports their loss only in messages.
func (g *gatherer) lost(ctx context.Context, s *state) error {
	for _, each := range s.content.backups() {
		found, err := g.cluster.read(ctx, volumeSnapshots, s.snapshot.Namespace, *each.VolumeSnapshotName, &volumeSnapshot{})
		if err != nil {
			return err
		}
		if !found {
			s.lost = append(s.lost, *each.VolumeSnapshotName)
		}
	}
	return nil
}

// source reads the VirtualMachine, if no snapshot of it was taken yet.
func (g *gatherer) source(ctx context.Context, s *state) error {
	if s.template != nil || s.ended() || s.request.DeletionTimestamp != nil {
		return nil
	}
	source := s.request.Spec.VirtualMachineRef
	vm := &metav1.PartialObjectMetadata{}
	if found, err := g.cluster.read(ctx, virtualMachines, source.Namespace, source.Name, vm); err != nil {
		return err
	} else if found {
		s.vm = vm
	}
	return nil
}

// restoreSize returns the size of a disk that is made from a VolumeSnapshot: a claim may be larger than requested.
func (g *gatherer) restoreSize(ctx context.Context, namespace string, b backup) (string, error) {
	requested := b.PersistentVolumeClaim.Spec.Resources.Requests.Storage
	taken := &volumeSnapshot{}
	found, err := g.cluster.read(ctx, volumeSnapshots, namespace, *b.VolumeSnapshotName, taken)
	if err != nil || !found || taken.Status.RestoreSize == "" {
		// CDI needs the VolumeSnapshot too, and reports if it does not exist.
		return requested, ignoreUnknown(err)
	}
	larger, err := apiresource.ParseQuantity(taken.Status.RestoreSize)
	if err != nil {
		return "", fmt.Errorf("reading the size of VolumeSnapshot %s/%s: %w", namespace, taken.Name, err)
	}
	if least, err := apiresource.ParseQuantity(requested); err == nil && least.Cmp(larger) >= 0 {
		return requested, nil
	}
	return taken.Status.RestoreSize, nil
}

func ignoreUnknown(err error) error {
	var unknown *unknownKindError
	if errors.As(err, &unknown) {
		return nil
	}
	return err
}
