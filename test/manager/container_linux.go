package manager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// enter prepares the calling thread, which starts the process of the container and must end afterwards: namespaces of mounts and capabilities belong
// to a thread.
func (c *Container) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("creating a namespace for mounts, which needs root: %w", err)
	}
	// No mount is seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts: %w", err)
	}
	if err := unix.Mount(c.Root, c.Root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the image: %w", err)
	}
	for path, folder := range c.Volumes {
		to := filepath.Join(c.Root, path)
		if err := errors.Join(os.MkdirAll(to, 0o755), readOnly(folder, to)); err != nil {
			return fmt.Errorf("mounting the volume at %s: %w", path, err)
		}
	}
	if err := unix.Mount("", c.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("making the image read-only: %w", err)
	}
	return DropPrivileges()
}

// DropPrivileges removes all capabilities from what the calling thread starts, and any way to get one.
func DropPrivileges() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		// Older kernels have fewer.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbidding new privileges: %w", err)
	}
	return nil
}

func readOnly(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// attributes of the process, which is the first of its namespace.
func (c *Container) attributes() *syscall.SysProcAttr {
	attributes := dieWithParent()
	attributes.Chroot = c.Root
	attributes.Credential = &syscall.Credential{Uid: c.User, Gid: c.Group}
	attributes.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	return attributes
}
