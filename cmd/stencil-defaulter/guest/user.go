package guest

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// unprivileged is the ID of the user and the group that call libvirt where this process is root's: libvirt would start QEMU as another user otherwise,
// and query its capabilities for every VM.
const unprivileged = 65532

// Folder makes a folder for libvirt, in memory where possible.
func Folder(prefix string) (string, error) {
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = os.TempDir()
	}
	root, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return "", fmt.Errorf("making a folder for libvirt: %w", err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for libvirt: %w", err)
	}
	return root, nil
}

// Environment of a process that calls libvirt.
func Environment(root string) []string {
	return []string{"HOME=" + root, "XDG_CACHE_HOME=" + root, "XDG_RUNTIME_DIR=" + root, "PATH=" + os.Getenv("PATH")}
}

// DropPrivileges makes root's process that of a user without any, who owns the folder from then on.
func DropPrivileges(root string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := errors.Join(os.Chown(root, unprivileged, unprivileged), syscall.Setgroups(nil), syscall.Setgid(unprivileged), syscall.Setuid(unprivileged)); err != nil {
		return fmt.Errorf("becoming user %d: %w", unprivileged, err)
	}
	return nil
}
