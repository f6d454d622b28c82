package mover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vmstencil/stencil/internal/s3"
	"github.com/vmstencil/stencil/transfer"
)

// Folders are the mounts of a mover. Root is put before the paths of package transfer; it is empty in a pod.
type Folders struct{ Root string }

func (f Folders) path(parts ...string) string {
	return filepath.Join(append([]string{string(filepath.Separator), f.Root}, parts...)...)
}

// Certificate and Key are the files for the server.
func (f Folders) Certificate() string { return f.path(transfer.TaskFolder, transfer.CertificateFile) }

// Key is the file of the certificate's key.
func (f Folders) Key() string { return f.path(transfer.TaskFolder, transfer.KeyFile) }

// maxSmall bounds files of Secrets and ConfigMaps, which are at most 1 MiB together.
const maxSmall = 4 << 20

func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSmall+1))
	if err == nil && len(content) > maxSmall {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSmall)
	}
	return content, err
}

// Task reads the task, which has to have a digest, sha256:HEX: the task is in a Secret that users of the namespace may be permitted to replace, and the digest
// in the pod, which they are not. An empty digest permits every task.
func (f Folders) Task(digest string) (*transfer.Task, error) {
	content, err := readSmall(f.path(transfer.TaskFolder, transfer.TaskFile))
	if err != nil {
		return nil, fmt.Errorf("reading the task: %w", err)
	}
	if sum := sha256.Sum256(content); digest != "" && digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return nil, errors.New("the task is not that of the manager: the Secret was replaced")
	}
	task := &transfer.Task{}
	if err := json.Unmarshal(content, task); err != nil {
		return nil, fmt.Errorf("decoding the task: %w", err)
	}
	return task, nil
}

// Token reads the manager's token.
func (f Folders) Token() (string, error) {
	content, err := readSmall(f.path(transfer.TaskFolder, transfer.TokenFile))
	token := strings.TrimSpace(string(content))
	if err == nil && token == "" {
		err = fmt.Errorf("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return token, nil
}

// credentials of the source.
type credentials struct {
	username, password, token string
	// accessKey and secretKey of a bucket.
	accessKey, secretKey string
	authorities          [][]byte
}

func (f Folders) credentials() (c credentials, err error) {
	for key, value := range map[string]*string{
		"username": &c.username, "password": &c.password, "token": &c.token, s3.AccessKey: &c.accessKey, s3.SecretKey: &c.secretKey,
	} {
		content, err := readSmall(f.path(transfer.CredentialsFolder, key))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return c, failed(transfer.ReasonInvalidTask, false, "the credentials of the source cannot be read: %v", err)
		}
		*value = strings.TrimRight(string(content), "\r\n")
	}
	entries, err := os.ReadDir(f.path(transfer.AuthoritiesFolder))
	if os.IsNotExist(err) {
		return c, nil
	}
	if err != nil {
		return c, failed(transfer.ReasonInvalidTask, false, "the certificates of the source cannot be read: %v", err)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, entry := range entries {
		// Kubernetes mounts the keys as links, beside folders whose names begin with dots.
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		content, err := readSmall(f.path(transfer.AuthoritiesFolder, entry.Name()))
		if err != nil {
			return c, failed(transfer.ReasonInvalidTask, false, "the certificates of the source cannot be read: %v", err)
		}
		c.authorities = append(c.authorities, content)
	}
	return c, nil
}

// disk opens a disk: the device, or the file in the volume. Users write volumes, so that a link in one is not followed out of it, and a pipe does not block.
func (f Folders) disk(d transfer.Disk, flags int) (*os.File, error) {
	if !filepath.IsLocal(d.Name) {
		return nil, errors.New("its name is a path")
	}
	path := f.path(transfer.DisksFolder, d.Name)
	if d.Block {
		return os.OpenFile(path, flags, 0)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if flags != os.O_RDONLY {
		flags |= os.O_CREATE
	}
	return root.OpenFile(transfer.DiskFile, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o660)
}

// TerminationLog is the file for the message of the pod's status.
func (f Folders) TerminationLog(path string) string { return f.path(path) }
