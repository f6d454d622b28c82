package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
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

// Stored returns what etcd has at the keys that begin with a prefix, such as /registry/pods/default/: the bytes of objects as the API server has
// written them, by key.
func (p *Plane) Stored(ctx context.Context, prefix string) (map[string][]byte, error) {
	var found struct {
		KVs []struct{ Key, Value []byte } `json:"kvs"`
	}
	if err := p.askEtcd(ctx, "range", map[string][]byte{"key": []byte(prefix), "range_end": after(prefix)}, &found); err != nil {
		return nil, fmt.Errorf("reading from etcd: %w", err)
	}
	all := map[string][]byte{}
	for _, each := range found.KVs {
		all[string(each.Key)] = each.Value
	}
	return all, nil
}

// after returns the first key after all that begin with a prefix.
func after(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

// Store replaces what etcd has at a key, as if the API server had stored it: no admission sees it. Tests make objects with it that an older
// installation has left.
func (p *Plane) Store(ctx context.Context, key string, value []byte) error {
	if err := p.askEtcd(ctx, "put", map[string][]byte{"key": []byte(key), "value": value}, &struct{}{}); err != nil {
		return fmt.Errorf("writing to etcd: %w", err)
	}
	return nil
}

// askEtcd sends a request to the gateway of etcd's API, see https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/.
func (p *Plane) askEtcd(ctx context.Context, method string, parameters, answer any) error {
	// The path of a socket is limited.
	folder, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.Symlink(p.folder.file(""), filepath.Join(folder, "plane")); err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, "plane", etcdSocket))
	}}}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(parameters)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, content)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(content, answer)
}
