package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodeService mounts volumes on this node.
type nodeService struct {
	csi.UnimplementedNodeServer

	store *store
	name  string
}

func (n nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

func (nodeService) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, each := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: each}}})
	}
	return answer, nil
}

// staged is where a volume is below the folder that kubelet names: pods share it.
func staged(folder string) string { return filepath.Join(folder, "volume") }

func (n nodeService) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	n.store.mutex.Lock()
	defer n.store.mutex.Unlock()
	volume, err := n.store.get("volumes", request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	to := staged(request.GetStagingTargetPath())
	if mounted, err := isMount(to); err != nil || mounted {
		return &csi.NodeStageVolumeResponse{}, err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	// The device of such a mount is released with the mount.
	if err := command(ctx, "mount", "-t", "ext4", "-o", "loop,discard", n.store.disk("volumes", volume.ID), to); err != nil {
		return nil, err
	}
	volume.Mount = to
	return &csi.NodeStageVolumeResponse{}, n.store.put("volumes", volume)
}

func (n nodeService) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	n.store.mutex.Lock()
	defer n.store.mutex.Unlock()
	if err := unmount(ctx, staged(request.GetStagingTargetPath())); err != nil {
		return nil, err
	}
	volume, err := n.store.get("volumes", request.GetVolumeId())
	if status.Code(err) == codes.NotFound {
		return &csi.NodeUnstageVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	volume.Mount = ""
	return &csi.NodeUnstageVolumeResponse{}, n.store.put("volumes", volume)
}

func (n nodeService) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	from, to := staged(request.GetStagingTargetPath()), request.GetTargetPath()
	if to == "" || request.GetStagingTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "the paths of the volume are missing")
	}
	if mounted, err := isMount(to); err != nil || mounted {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	if err := command(ctx, "mount", "--bind", from, to); err != nil {
		return nil, err
	}
	if request.GetReadonly() {
		return &csi.NodePublishVolumeResponse{}, command(ctx, "mount", "-o", "remount,bind,ro", to)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (nodeService) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, unmount(ctx, request.GetTargetPath())
}

func (n nodeService) NodeGetVolumeStats(_ context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if _, err := n.store.get("volumes", request.GetVolumeId()); err != nil {
		return nil, err
	}
	var found unix.Statfs_t
	if err := unix.Statfs(request.GetVolumePath(), &found); err != nil {
		return nil, status.Errorf(codes.NotFound, "reading %s: %v", request.GetVolumePath(), err)
	}
	usage := &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: int64(found.Blocks) * found.Bsize, Available: int64(found.Bavail) * found.Bsize}
	usage.Used = usage.Total - int64(found.Bfree)*found.Bsize
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{usage}}, nil
}

// isMount reports whether something is mounted at a path.
func isMount(path string) (bool, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	return strings.Contains(string(mounts), " "+path+" "), err
}

// unmount removes the mount at a path, and the path. Neither has to exist.
func unmount(ctx context.Context, path string) error {
	if path == "" {
		return status.Error(codes.InvalidArgument, "the path of the volume is missing")
	}
	mounted, err := isMount(path)
	if err != nil {
		return err
	}
	if mounted {
		if err := command(ctx, "umount", path); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
