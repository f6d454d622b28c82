package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// store has volumes and snapshots: ID.disk has the content, ID.json describes it.
type store struct {
	folder string
	mutex  sync.Mutex
}

// item is a volume or a snapshot.
type item struct {
	ID   string
	Name string
	// Size is the size of the content in bytes.
	Size int64
	// Source is the ID that the content was copied from.
	Source string
	// Mount is where a volume is mounted, empty if it is not.
	Mount string
	Made  time.Time
}

func openStore(folder string) (*store, error) {
	for _, kind := range []string{"volumes", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(folder, kind), 0o700); err != nil {
			return nil, err
		}
	}
	return &store{folder: folder}, nil
}

// idOf is the ID of the volume or snapshot with a name, so that a repeated request finds it.
func idOf(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:32] }

func (s *store) disk(kind, id string) string { return filepath.Join(s.folder, kind, id+".disk") }

// get returns an item; codes.NotFound if there is none.
func (s *store) get(kind, id string) (item, error) {
	var found item
	if id == "" || id != filepath.Base(id) {
		return found, status.Errorf(codes.InvalidArgument, "%q is no ID", id)
	}
	content, err := os.ReadFile(filepath.Join(s.folder, kind, id+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return found, status.Errorf(codes.NotFound, "there is no %s in %s", id, kind)
	}
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(content, &found)
}

// put writes the description of an item, after its content.
func (s *store) put(kind string, each item) error {
	content, err := json.Marshal(each)
	if err != nil {
		return err
	}
	partial := filepath.Join(s.folder, kind, each.ID+".partial")
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(s.folder, kind, each.ID+".json"))
}

// remove removes an item, if there is one.
func (s *store) remove(kind, id string) error {
	if id == "" || id != filepath.Base(id) {
		return status.Errorf(codes.InvalidArgument, "%q is no ID", id)
	}
	for _, path := range []string{filepath.Join(s.folder, kind, id+".json"), s.disk(kind, id)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// create makes the content of a volume: a copy of from, or empty.
func (s *store) create(ctx context.Context, volume item, from string) error {
	path := s.disk("volumes", volume.ID)
	if from != "" {
		if err := copyDisk(ctx, from, path); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(file.Truncate(volume.Size), file.Close())
	if err != nil {
		return err
	}
	if from == "" {
		return command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard", path)
	}
	return grow(ctx, path)
}

// grow makes a file system that is not mounted as large as its file.
func grow(ctx context.Context, path string) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	return command(ctx, "resize2fs", path)
}

// check corrects a file system that was copied while it was mounted. e2fsck has exit code 1 after corrections.
func check(ctx context.Context, path string) error {
	output, err := exec.CommandContext(ctx, "e2fsck", "-f", "-y", path).CombinedOutput()
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("e2fsck: %w: %s", err, output)
	}
	return nil
}

// copyVolume copies the present content of a volume, at one point in time: writes to it wait meanwhile.
func (s *store) copyVolume(ctx context.Context, volume item, to string) (err error) {
	if volume.Mount != "" {
		if err := command(ctx, "fsfreeze", "--freeze", volume.Mount); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, command(context.WithoutCancel(ctx), "fsfreeze", "--unfreeze", volume.Mount))
		}()
	}
	return copyDisk(ctx, s.disk("volumes", volume.ID), to)
}

// copyDisk copies a file without its holes, and shares blocks where the file system of the host can.
func copyDisk(ctx context.Context, from, to string) error {
	partial := to + ".partial"
	if err := command(ctx, "cp", "--reflink=auto", "--sparse=always", from, partial); err != nil {
		return err
	}
	return os.Rename(partial, to)
}

func command(ctx context.Context, program string, arguments ...string) error {
	if output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, output)
	}
	return nil
}
