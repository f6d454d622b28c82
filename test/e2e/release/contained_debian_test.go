//go:build debian && amd64

package release_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vmstencil/stencil/test/manager"
)

// containedVariable makes the test binary the first process of a container, which it has in JSON.
const containedVariable = "STENCIL_TEST_CONTAINED"

// contained is a container with /proc and /dev, and with volumes that can be written, in which a program starts others. manager.Container has none of
// these.
type contained struct {
	Root       string
	Entrypoint string
	Args, Env  []string
	User       int
	// Folders are folders by the paths where the pod mounts them, Memory sizes in bytes of volumes in memory.
	Folders map[string]string
	Memory  map[string]int64
}

// attributes of the process, whose namespaces are its own.
func (contained) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET}
}

func init() { become, flags = enter, []string{"-defaulter"} }

// enter turns this process into that of the container that the variable describes, if it is set.
func enter() {
	text, ok := os.LookupEnv(containedVariable)
	if !ok {
		return
	}
	var c contained
	if err := errors.Join(json.Unmarshal([]byte(text), &c), c.exec()); err != nil {
		fmt.Fprintln(os.Stderr, "starting a container, which needs root:", err)
		os.Exit(1)
	}
}

func (c contained) exec() error {
	runtime.LockOSThread()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts: %w", err)
	}
	mount := func(from, to, kind string, flags uintptr, data string) error {
		to = filepath.Join(c.Root, to)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, to, kind, flags, data); err != nil {
			return fmt.Errorf("mounting %s: %w", to, err)
		}
		return nil
	}
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	problems := []error{
		mount(c.Root, "", "", unix.MS_BIND, ""),
		mount("proc", "proc", "proc", safe, ""),
		mount("dev", "dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755"),
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom"} {
		to := filepath.Join(c.Root, "dev", device)
		problems = append(problems, os.WriteFile(to, nil, 0o666), unix.Mount("/dev/"+device, to, "", unix.MS_BIND, ""))
	}
	for path, folder := range c.Folders {
		problems = append(problems, mount(folder, path, "", unix.MS_BIND, ""))
	}
	for path, size := range c.Memory {
		problems = append(problems, mount("volume", path, "tmpfs", safe, fmt.Sprintf("mode=777,size=%d", size)))
	}
	problems = append(problems,
		unix.Mount("", c.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""),
		unix.Mount("", filepath.Join(c.Root, "dev"), "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755"),
		unix.Chroot(c.Root), os.Chdir("/"))
	problems = append(problems, manager.DropPrivileges(), unix.Setgroups(nil), syscall.Setgid(c.User), syscall.Setuid(c.User))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return syscall.Exec(c.Entrypoint, append([]string{c.Entrypoint}, c.Args...), c.Env)
}

// startOnOneThread starts a process that ends with the thread that has started it, and waits for it.
func startOnOneThread(command *exec.Cmd, started chan<- error, ended chan<- struct{}) {
	runtime.LockOSThread()
	defer close(ended)
	err := command.Start()
	started <- err
	if err == nil {
		_ = command.Wait()
	}
}
