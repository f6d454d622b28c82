package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Namespaces are those that a node runs in.
const Namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// kernelValues are settings of the whole host that kubelet writes. In the node they are files.
var kernelValues = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// isolate gives this process mounts, a host name and a network of its own.
func (c Config) isolate(ctx context.Context) error {
	mount := func(source, target, kind string, flags uintptr, data string) error {
		if err := syscall.Mount(source, target, kind, flags, data); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
		return nil
	}
	// Mounts of the node never reach the host; mounts of kubelet reach containers.
	err := errors.Join(
		mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""),
		mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""),
		mount("tmpfs", "/run", "tmpfs", 0, "mode=755"),
		os.MkdirAll(c.file("var"), 0o755), os.MkdirAll(c.file("work"), 0o755),
	)
	if err != nil {
		return err
	}
	// Everything that is written below /var is in the node's folder.
	if err := mount("overlay", "/var", "overlay", 0, "lowerdir=/var,upperdir="+c.file("var")+",workdir="+c.file("work")); err != nil {
		return err
	}
	for _, each := range []string{"lib/kubelet", "lib/kubevirt", "log/pods"} {
		folder, at := c.file("data", filepath.Base(each)), filepath.Join("/var", each)
		err := errors.Join(os.MkdirAll(folder, 0o755), os.MkdirAll(at, 0o755), mount(folder, at, "", syscall.MS_BIND, ""), mount("", at, "", syscall.MS_SHARED, ""))
		if err != nil {
			return err
		}
	}
	for name, value := range kernelValues {
		file, err := c.write(value+"\n", "kernel", strings.ReplaceAll(name, "/", "-"))
		if err := errors.Join(err, mount(file, filepath.Join("/proc/sys", name), "", syscall.MS_BIND, "")); err != nil {
			return err
		}
	}
	if err := syscall.Sethostname([]byte(Name)); err != nil {
		return fmt.Errorf("naming the host: %w", err)
	}
	return network(ctx)
}

// network makes an interface with the node's address, for all traffic that no pod receives.
func network(ctx context.Context) error {
	for _, each := range []string{
		"link set lo up", "link add node0 type veth peer name node1", "link set node1 up", "address add " + Address + "/24 dev node0", "link set node0 up", "route add default dev node0",
	} {
		if output, err := exec.CommandContext(ctx, "ip", strings.Fields(each)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w\n%s", each, err, output)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}
