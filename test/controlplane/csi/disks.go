package csi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// DiskFile is the raw disk in a volume of mode Filesystem, where CDI and KubeVirt look for it.
const DiskFile = "disk.img"

// patternSize is the size in bytes of the content that a simulated import has.
const patternSize = 1 << 20

// Path returns where the bytes of a bound claim are: a sparse file if the volume mode is Block, otherwise a folder. The volume decides that, so a volume that is
// bound to another claim retains its bytes. A file can be written beyond the capacity of its volume, which a device cannot.
func (d *Driver) Path(ctx context.Context, namespace, claim string) (path string, block bool, err error) {
	volume, err := d.volumeOf(ctx, namespace, claim)
	if err != nil {
		return "", false, err
	}
	path = d.store.path(volume.Spec.CSI.VolumeHandle)
	info, err := os.Stat(path)
	if err != nil {
		return "", false, fmt.Errorf("looking for the bytes of the claim %s/%s: %w", namespace, claim, err)
	}
	return path, !info.IsDir(), nil
}

// DiskPath returns the path of the raw disk in the volume of a bound claim: the volume itself if its mode is Block, otherwise its file DiskFile, which may
// not exist.
func (d *Driver) DiskPath(ctx context.Context, namespace, claim string) (string, error) {
	path, block, err := d.Path(ctx, namespace, claim)
	if err != nil || block {
		return path, err
	}
	return filepath.Join(path, DiskFile), nil
}

// WriteDisk replaces the raw disk in the volume of a bound claim. It is a writer for tests and stands for CDI's importer, which needs cgo and does not run
// on a plane: nothing is downloaded, converted or verified. The disk is as large as the volume, and blocks of zeros become holes. WriteDisk waits up to a
// minute for the volume: CDI calls a DataVolume Succeeded when its populator has ended, which can be before the claim has the volume.
func (d *Driver) WriteDisk(ctx context.Context, namespace, claim string, content io.Reader) (err error) {
	var volume *corev1.PersistentVolume
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		if volume, err = d.volumeOf(ctx, namespace, claim); errors.Is(err, errUnbound) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the volume of the claim %s/%s: %w", namespace, claim, err)
	}
	path, err := d.DiskPath(ctx, namespace, claim)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the disk of the claim %s/%s: %w", namespace, claim, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	capacity := volume.Spec.Capacity[corev1.ResourceStorage]
	size := capacity.Value()
	written, err := writeSparse(file, 0, io.LimitReader(content, size+1))
	if err == nil && written > size {
		err = fmt.Errorf("the content is larger than the %d bytes of the volume", size)
	}
	if err := errors.Join(err, file.Truncate(size)); err != nil {
		return fmt.Errorf("writing the disk of the claim %s/%s: %w", namespace, claim, err)
	}
	return nil
}

// Pattern returns the content that the simulated importer of package kubelet writes at the beginning of a disk: 1 MiB of random bytes that depend on the URL
// of the source only. It stands for the image at that URL.
func Pattern(url string) io.Reader {
	return io.LimitReader(rand.NewChaCha8(sha256.Sum256([]byte(url))), patternSize)
}

// errUnbound is the error of a claim that is not bound.
var errUnbound = errors.New("is not bound to a volume yet")

// volumeOf returns the volume of a bound claim.
func (d *Driver) volumeOf(ctx context.Context, namespace, claim string) (*corev1.PersistentVolume, error) {
	found, err := d.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the claim %s/%s: %w", namespace, claim, err)
	}
	if found.Spec.VolumeName == "" {
		return nil, fmt.Errorf("the claim %s/%s %w", namespace, claim, errUnbound)
	}
	return d.ownVolume(ctx, found.Spec.VolumeName)
}

// ownVolume returns a volume of this driver.
func (d *Driver) ownVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	volume, err := d.kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the volume %s: %w", name, err)
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != Name {
		return nil, fmt.Errorf("the volume %s is not one of the driver %s", name, Name)
	}
	return volume, nil
}

func isBlock(mode *corev1.PersistentVolumeMode) bool {
	return mode != nil && *mode == corev1.PersistentVolumeBlock
}
