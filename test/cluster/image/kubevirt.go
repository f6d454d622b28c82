package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// KubeVirt are the sources of the images of KubeVirt.
type KubeVirt struct {
	// Version is the version of KubeVirt, with the v.
	Version string
	// Source is the folder of KubeVirt's module.
	Source string
	// Programs are the paths of programs by name.
	Programs map[string]string
	// Root is a root file system with libvirt, QEMU and nftables of Debian.
	Root string
}

// privileged are the programs with an image that runs as root; the other images run as user 1001, as in the published images.
var privileged = []string{"virt-handler", "virt-launcher"}

var unprivileged = []string{"virt-operator", "virt-api", "virt-controller", "virt-exportproxy", "virt-exportserver"}

// Programs returns the names of the programs in KubeVirt's images.
func Programs() []string {
	return append(append([]string{"virt-launcher-monitor", "virt-freezer", "virt-probe", "virt-tail", "virt-chroot"}, privileged...), unprivileged...)
}

// Images returns the images of KubeVirt by their references. They share the base, a layer of Root, and a layer that is written to a folder.
func (k KubeVirt) Images(ctx context.Context, folder string, base Layer) (map[string]v1.Image, error) {
	files, err := k.files(ctx, folder)
	if err != nil {
		return nil, err
	}
	programs, err := NewLayer(filepath.Join(folder, "kubevirt.tar"), "", files...)
	if err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for user, names := range map[string][]string{"0": privileged, "1001": unprivileged} {
		image, err := New(user, nil, base, programs)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			images["quay.io/kubevirt/"+name+":"+k.Version] = image
		}
	}
	return images, nil
}

// virtqemud starts the libvirt of Debian 12, which has one process for all drivers, as virt-launcher and node-labeller.sh start virtqemud.
const virtqemud = `#!/bin/sh
mkdir -p /var/run/libvirt
ln -sf libvirt-sock /var/run/libvirt/virtqemud-sock
exec /usr/sbin/libvirtd "$@"
`

// files returns the files that the images have beside Debian's, where KubeVirt's own builds have them.
func (k KubeVirt) files(ctx context.Context, folder string) ([]File, error) {
	disk := filepath.Join(folder, "container-disk")
	compile := exec.CommandContext(ctx, "cc", "-static", "-O2", "-o", disk, filepath.Join(k.Source, "cmd", "container-disk-v2alpha", "main.c"))
	if output, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling container-disk: %w\n%s", err, output)
	}
	accounts, err := k.accounts()
	if err != nil {
		return nil, err
	}
	const qemu = 107
	source := func(name string) string { return filepath.Join(k.Source, "cmd", "virt-launcher", name) }
	files := append([]File{},
		File{Name: "usr/bin/container-disk", Mode: 0o755, From: disk},
		File{Name: "usr/bin/node-labeller.sh", Mode: 0o755, From: source("node-labeller/node-labeller.sh")},
		File{Name: "usr/sbin/virtqemud", Mode: 0o755, Content: virtqemud},
		File{Name: "etc/libvirt/qemu.conf", Mode: 0o644, From: source("qemu.conf")},
		File{Name: "etc/libvirt/virtqemud.conf", Mode: 0o644, From: source("virtqemud.conf")},
		File{Name: "etc/libvirt/hooks/qemu", Mode: 0o755, Owner: qemu, From: source("qemu")},
		File{Name: "etc/nsswitch.conf", Mode: 0o644, From: source("nsswitch.conf")},
		// Relative, because virt-handler follows it from outside of the container.
		File{Name: "var/run", Link: "../run"},
		File{Name: "tmp/", Mode: 0o1777},
		File{Name: "var/log/libvirt/qemu/", Mode: 0o755, Owner: qemu},
		File{Name: "var/cache/libvirt/qemu/", Mode: 0o755, Owner: qemu},
		File{Name: "home/qemu/", Mode: 0o755, Owner: qemu},
		File{Name: "usr/lib64/qemu-kvm/", Mode: 0o755},
	)
	files = append(files, accounts...)
	for _, name := range Programs() {
		// As user 107, virt-launcher serves the DHCP of its guest.
		binds := name == "virt-launcher" || name == "virt-launcher-monitor"
		files = append(files, File{Name: "usr/bin/" + name, Mode: 0o755, From: k.Programs[name], BindsPorts: binds})
	}
	return files, nil
}

// accounts returns the files with users and groups: Debian's, user and group 107 with the name qemu, and those that Debian's libvirt looks up when it
// starts, which a script of its package creates.
func (k KubeVirt) accounts() ([]File, error) {
	var files []File
	for name, added := range map[string]string{
		"etc/passwd": "qemu:x:107:107:qemu:/home/qemu:/bin/bash\nlibvirt-qemu:x:64055:108::/var/lib/libvirt:/usr/sbin/nologin\n",
		"etc/group":  "qemu:x:107:\nkvm:x:108:\nlibvirt-qemu:x:64055:\n",
	} {
		content, err := os.ReadFile(filepath.Join(k.Root, name))
		if err != nil {
			return nil, err
		}
		text := added
		for line := range strings.Lines(string(content)) {
			if fields := strings.Split(line, ":"); len(fields) > 2 && !slices.Contains([]string{"107", "108", "64055"}, fields[2]) && fields[0] != "kvm" {
				text += line
			}
		}
		files = append(files, File{Name: name, Mode: 0o644, Content: text})
	}
	return files, nil
}
