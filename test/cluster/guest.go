package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vmstencil/stencil/test/cluster/image"
	"github.com/vmstencil/stencil/test/product"
)

// GuestDisk returns the path of the disk of a guest, in raw format, and makes it once. The guest does the essence of cloud-init, prints the properties of
// its VM to the serial console, and lets users log in there.
func GuestDisk(ctx context.Context) (string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	key, err := digestOf("guest")
	if err != nil {
		return "", err
	}
	source, err := folderOf("guest")
	if err != nil {
		return "", err
	}
	disk := filepath.Join(cache, "guest-"+key+".raw")
	if _, err := os.Stat(disk); err == nil {
		return disk, nil
	}
	if output, err := exec.CommandContext(ctx, filepath.Join(source, "build.sh"), disk+".partial").CombinedOutput(); err != nil {
		return "", fmt.Errorf("making the disk of a guest: %w\n%s", err, output)
	}
	return disk, os.Rename(disk+".partial", disk)
}

// folderOf returns the path of a folder in the one of this package.
func folderOf(name string) (string, error) {
	root, err := product.Root()
	return filepath.Join(root, "test", "cluster", name), err
}

// digestOf returns a digest of the files in a folder of this package.
func digestOf(name string) (string, error) {
	folder, err := folderOf(name)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}

// GuestImage is the image with the disk of the guest.
const GuestImage = "registry.example.com/guests/small:1"

// PushGuest makes the guest available as [GuestImage].
func (c *Cluster) PushGuest(ctx context.Context) error {
	disk, err := GuestDisk(ctx)
	if err != nil {
		return err
	}
	return c.PushDisk(ctx, GuestImage, disk)
}

// PushDisk makes a disk in raw format available as an image, for volumes of type containerDisk and for imports:
// https://kubevirt.io/user-guide/storage/disks_and_volumes/#containerdisk.
func (c *Cluster) PushDisk(ctx context.Context, reference, disk string) error {
	const qemu = 107
	packed, err := os.CreateTemp(c.config.Folder, "disk-*.tar")
	if err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	layer, err := image.NewLayer(packed.Name(), "", image.File{Name: "disk/", Mode: 0o755, Owner: qemu},
		image.File{Name: "disk/guest.img", Mode: 0o440, Owner: qemu, From: disk})
	if err != nil {
		return err
	}
	made, err := image.New("", nil, layer)
	if err != nil {
		return err
	}
	return c.Push(ctx, reference, made)
}
