package main

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// defaultSize is the size of a volume without a requested size.
const defaultSize = 1 << 30

// block is the unit of sizes.
const block = 4 << 10

// controller creates volumes and snapshots.
type controller struct {
	csi.UnimplementedControllerServer

	store *store
}

func (controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, each := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: each}},
		})
	}
	return answer, nil
}

// supported returns an error if the driver has no such volumes: they have a file system, which is mounted on one node.
func supported(capabilities []*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "the capabilities of the volume are missing")
	}
	for _, each := range capabilities {
		switch mode := each.GetAccessMode().GetMode(); {
		case each.GetMount() == nil:
			return status.Error(codes.InvalidArgument, "a volume has a file system: volumeMode Block is not supported")
		case mode >= csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY && mode <= csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
			return status.Errorf(codes.InvalidArgument, "a volume is on one node; its mode is %s", mode)
		}
	}
	return nil
}

func (c controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if request.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "the name of the volume is missing")
	}
	if err := supported(request.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	size := cmp.Or(request.GetCapacityRange().GetRequiredBytes(), min(defaultSize, cmp.Or(request.GetCapacityRange().GetLimitBytes(), defaultSize)))
	size = (size + block - 1) / block * block
	c.store.mutex.Lock()
	defer c.store.mutex.Unlock()
	volume := item{ID: idOf(request.GetName()), Name: request.GetName(), Size: size, Made: time.Now()}
	made, err := c.store.get("volumes", volume.ID)
	switch {
	case status.Code(err) == codes.NotFound:
		if err := c.fill(ctx, &volume, request.GetVolumeContentSource()); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case made.Size != size:
		return nil, status.Errorf(codes.AlreadyExists, "volume %s exists with %d bytes", made.Name, made.Size)
	default:
		volume = made
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: volume.ID, CapacityBytes: volume.Size, ContentSource: request.GetVolumeContentSource()}}, nil
}

// fill makes the content of a new volume, from a snapshot or another volume if it has such a source.
func (c controller) fill(ctx context.Context, volume *item, source *csi.VolumeContentSource) error {
	var from item
	var path string
	var err error
	switch {
	case source.GetSnapshot() != nil:
		if from, err = c.store.get("snapshots", source.GetSnapshot().GetSnapshotId()); err != nil {
			return err
		}
		path = c.store.disk("snapshots", from.ID)
	case source.GetVolume() != nil:
		if from, err = c.store.get("volumes", source.GetVolume().GetVolumeId()); err != nil {
			return err
		}
		path = c.store.disk("volumes", volume.ID) + ".source"
		defer os.Remove(path)
		if err := c.store.copyVolume(ctx, from, path); err != nil {
			return err
		}
	}
	if path != "" && volume.Size < from.Size {
		return status.Errorf(codes.OutOfRange, "the source has %d bytes, the volume would have %d", from.Size, volume.Size)
	}
	volume.Source = from.ID
	if err := c.store.create(ctx, *volume, path); err != nil {
		return err
	}
	return c.store.put("volumes", *volume)
}

func (c controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.store.mutex.Lock()
	defer c.store.mutex.Unlock()
	return &csi.DeleteVolumeResponse{}, c.store.remove("volumes", request.GetVolumeId())
}

func (c controller) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, err := c.store.get("volumes", request.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := supported(request.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.GetVolumeCapabilities()}}, nil
}

func (c controller) ControllerExpandVolume(ctx context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	c.store.mutex.Lock()
	defer c.store.mutex.Unlock()
	volume, err := c.store.get("volumes", request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if size := (request.GetCapacityRange().GetRequiredBytes() + block - 1) / block * block; size > volume.Size {
		if volume.Mount != "" {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %s is mounted: it grows when no pod uses it", volume.ID)
		}
		volume.Size = size
		disk := c.store.disk("volumes", volume.ID)
		if err := os.Truncate(disk, size); err != nil {
			return nil, err
		}
		if err := grow(ctx, disk); err != nil {
			return nil, err
		}
		if err := c.store.put("volumes", volume); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: volume.Size}, nil
}

func (c controller) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if request.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "the name of the snapshot is missing")
	}
	c.store.mutex.Lock()
	defer c.store.mutex.Unlock()
	id := idOf(request.GetName())
	made, err := c.store.get("snapshots", id)
	switch {
	case status.Code(err) == codes.NotFound:
		volume, err := c.store.get("volumes", request.GetSourceVolumeId())
		if err != nil {
			return nil, err
		}
		made = item{ID: id, Name: request.GetName(), Size: volume.Size, Source: volume.ID, Made: time.Now()}
		if err := c.store.copyVolume(ctx, volume, c.store.disk("snapshots", id)); err != nil {
			return nil, err
		}
		if err := c.store.put("snapshots", made); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case made.Source != request.GetSourceVolumeId():
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s exists, of another volume", made.Name)
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: made.ID, SourceVolumeId: made.Source, SizeBytes: made.Size, CreationTime: timestamppb.New(made.Made), ReadyToUse: true,
	}}, nil
}

func (c controller) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	c.store.mutex.Lock()
	defer c.store.mutex.Unlock()
	return &csi.DeleteSnapshotResponse{}, c.store.remove("snapshots", request.GetSnapshotId())
}
