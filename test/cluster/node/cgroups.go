package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// controlGroups is where hierarchies of control groups are mounted: one, or one for each controller.
const controlGroups = "/sys/fs/cgroup"

// group is the name of a node's control group, which all of its pods are below.
func (c Config) group() string { return "stencil-node-" + c.ID }

// hierarchies returns the folders of the hierarchies of control groups.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(controlGroups, "cgroup.controllers")); err == nil {
		return []string{controlGroups}, nil
	}
	folders, err := filepath.Glob(filepath.Join(controlGroups, "*", "cgroup.procs"))
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	return folders, err
}

// createGroups creates the node's control group in each hierarchy.
func (c Config) createGroups() error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, each := range all {
		group := filepath.Join(each, c.group())
		if err := os.MkdirAll(group, 0o755); err != nil {
			return fmt.Errorf("creating a control group: %w", err)
		}
		// A group of version 1 without processors and memory cannot have processes.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(each, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(group, file), value, 0)
			}
			if err != nil {
				return fmt.Errorf("preparing a control group: %w", err)
			}
		}
	}
	return nil
}

// RemoveGroups removes the control groups of a node whose processes have ended.
func (c Config) RemoveGroups() error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, each := range all {
		var groups []string
		root := filepath.Join(each, c.group())
		err = errors.Join(err, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}))
		slices.SortFunc(groups, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
		for _, group := range groups {
			err = errors.Join(err, os.Remove(group))
		}
	}
	return err
}
