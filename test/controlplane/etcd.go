package controlplane

import (
	"context"
	"os"
)

const etcdProcess = "etcd"

// The sockets of etcd, relative to the plane's folder, which is the working directory of both sides: the path of a Unix socket is limited to about a
// hundred characters, and temporary folders can be deeper.
const (
	etcdSocket     = "etcd.sock"
	etcdPeerSocket = "etcd-peer.sock"
)

// startEtcd starts a store of one member. It listens on Unix sockets in the plane's folder: no other process can take a port, and no other user can
// read it.
func (p *Plane) startEtcd(ctx context.Context, path string) error {
	started, err := p.startProcess(etcdProcess, path,
		"--name=plane",
		"--data-dir="+p.folder.file("etcd"),
		"--listen-client-urls=unix://"+etcdSocket,
		"--advertise-client-urls=unix://"+etcdSocket,
		"--listen-peer-urls=unix://"+etcdPeerSocket,
		"--initial-advertise-peer-urls=unix://"+etcdPeerSocket,
		"--initial-cluster=plane=unix://"+etcdPeerSocket,
		// The data is discarded: not waiting for the disk makes every write faster and risks nothing.
		"--unsafe-no-fsync",
	)
	if err != nil {
		return err
	}
	return p.awaitEtcd(ctx, started)
}

// awaitEtcd returns when etcd listens: its sockets did not exist when it was started.
func (p *Plane) awaitEtcd(ctx context.Context, started *process) error {
	return started.await(ctx, func(context.Context) error {
		_, err := os.Stat(p.folder.file(etcdSocket))
		return err
	})
}

// EtcdData returns the folder with all that etcd has stored, earlier versions of objects included.
func (p *Plane) EtcdData() string { return p.folder.file("etcd") }
