package debian

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keyring has the keys with which Debian signs its indexes.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// uriPattern is a line of apt-get --print-uris: address, name of the file with an escaped version, size, and checksum.
var uriPattern = regexp.MustCompile(`^'[a-z]+://.*/(debian(?:-security)?/pool/\S+\.deb)' ([^_ ]+)_([^_ ]+)_([a-z0-9]+)\.deb (\d+) SHA256:([0-9a-f]{64})$`)

// Resolve returns the current packages of the set of a mirror, such as https://deb.debian.org, with their dependencies. It calls apt-get, which verifies the
// signature of the indexes, with a configuration and an empty list of installed packages of its own.
func (s Set) Resolve(ctx context.Context, mirror string, at time.Time) (*Lock, error) {
	folder, err := os.MkdirTemp("", "stencil-debian-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for apt-get: %w", err)
	}
	defer os.RemoveAll(folder)
	var sources strings.Builder
	for _, each := range s.archives {
		fmt.Fprintf(&sources, "deb [arch=%s signed-by=%s] %s/%s main\n", s.Architecture, keyring, mirror, each)
	}
	list, status := filepath.Join(folder, "sources.list"), filepath.Join(folder, "status")
	for path, content := range map[string]string{list: sources.String(), status: ""} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, fmt.Errorf("configuring apt-get: %w", err)
		}
	}
	for _, each := range []string{"state/lists/partial", "cache/archives/partial", "parts"} {
		if err := os.MkdirAll(filepath.Join(folder, each), 0o755); err != nil {
			return nil, fmt.Errorf("configuring apt-get: %w", err)
		}
	}
	var options []string
	for _, each := range []string{
		"Dir::State=" + filepath.Join(folder, "state"), "Dir::State::status=" + status, "Dir::Cache=" + filepath.Join(folder, "cache"),
		"Dir::Etc::sourcelist=" + list, "Dir::Etc::sourceparts=" + filepath.Join(folder, "parts"), "Dir::Etc::preferencesparts=" + filepath.Join(folder, "parts"),
		"APT::Architecture=" + s.Architecture, "APT::Architectures=" + s.Architecture, "APT::Sandbox::User=", "Acquire::ForceHash=SHA256", "Acquire::Languages=none",
	} {
		options = append(options, "-o", each)
	}
	if _, err := apt(ctx, append(options, "update", "-qq")); err != nil {
		return nil, err
	}
	output, err := apt(ctx, slices.Concat(options, []string{"install", "-qq", "--yes", "--no-install-recommends", "--print-uris"}, s.wanted))
	if err != nil {
		return nil, err
	}
	return s.lockOf(output, at)
}

func apt(ctx context.Context, arguments []string) (string, error) {
	command := exec.CommandContext(ctx, "apt-get", arguments...)
	var problems strings.Builder
	command.Stderr = &problems
	command.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("apt-get, of a computer with Debian or Ubuntu and the package debian-archive-keyring: %w\n%s", err, problems.String())
	}
	return string(output), nil
}

// lockOf returns the lock file for what apt-get would download.
func (s Set) lockOf(uris string, at time.Time) (*Lock, error) {
	lock := &Lock{Distribution: s.distribution, Snapshot: at.UTC().Format("20060102T150405Z")}
	for line := range strings.Lines(uris) {
		fields := uriPattern.FindStringSubmatch(strings.TrimSpace(line))
		if fields == nil {
			return nil, fmt.Errorf("apt-get printed %q: want the address, name, size and SHA-256 of a package", line)
		}
		if slices.Contains(s.leftOut, fields[2]) || s.only && !slices.Contains(s.wanted, fields[2]) {
			continue
		}
		size, err := strconv.ParseInt(fields[5], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("apt-get printed %q: %w", line, err)
		}
		lock.Packages = append(lock.Packages, Package{
			Name: fields[2], Version: strings.ReplaceAll(fields[3], "%3a", ":"), Architecture: fields[4], Size: size, SHA256: fields[6], Path: fields[1],
		})
	}
	slices.SortFunc(lock.Packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	// What is written can be read.
	return Parse(lock.Marshal())
}
