package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	var r release
	var images, clients, base string
	var push, sign, uncommitted, lock, defaulter bool
	var s signer
	flag.StringVar(&r.version, "version", "", "Version of the release, such as v0.1.0.")
	flag.StringVar(&r.root, "root", ".", "Folder of the checkout.")
	flag.StringVar(&r.output, "output", "dist/release", "Folder to write to. It must be empty or not exist.")
	flag.StringVar(&r.repository, "repository", "ghcr.io/vmstencil", "Registry and folder in it, in which the images and the chart will be.")
	flag.StringVar(&images, "platforms", "linux/amd64,linux/arm64", "Platforms of the images.")
	flag.StringVar(&clients, "client-platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "Platforms of the archives of stencilctl.")
	flag.BoolVar(&uncommitted, "uncommitted", false, "Build a checkout with changes that are not committed.")
	flag.BoolVar(&push, "push", false, "Push what the output folder has to the repository, and build nothing.")
	flag.BoolVar(&r.plainHTTP, "plain-http", false, "Push to a registry that is served over HTTP without TLS.")
	flag.BoolVar(&sign, "sign", false, "Sign what was pushed, and build nothing.")
	flag.BoolVar(&lock, "debian-lock", false, "Write the lock files of Debian packages with the current versions, and build nothing; needs apt-get and no -version.")
	flag.BoolVar(&defaulter, "defaulter", false, "Build the image of stencil-defaulter with Debian's packages too, on linux/amd64.")
	flag.StringVar(&base, "launcher", "", "Build the image of stencil-defaulter on this image of KubeVirt's virt-launcher too, on linux/amd64: a reference with tag and digest, such as quay.io/kubevirt/virt-launcher:v1.8.2@sha256:….")
	flag.StringVar(&r.debian.Archive, "debian-archive", defaultArchive, "Address from which Debian packages are downloaded that the mirror does not have any more.")
	flag.StringVar(&r.debian.Cache, "debian-cache", "", "Folder for downloaded Debian packages; stencil/debian in the user's folder of caches by default.")
	flag.StringVar(&r.debian.Mirror, "debian-mirror", defaultMirror, "Address of the mirror from which Debian packages are downloaded.")
	flag.StringVar(&s.program, "cosign", "cosign", "Path of cosign.")
	flag.StringVar(&s.key, "key", "", "Path of a private key, or its address in a key service, as cosign takes it. If empty, cosign requests a certificate from Sigstore.")
	flag.BoolVar(&s.offline, "offline", false, "Sign without the public transparency log; needs -key.")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "release -version VERSION [FLAGS]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case lock:
		err = r.lock(ctx)
	case !versionPattern.MatchString(r.version):
		err = fmt.Errorf("-version is %q: want a version such as v0.1.0 or v0.1.0-rc.1", r.version)
	case push && sign:
		err = errors.New("give either -push or -sign")
	case push:
		err = r.push(ctx)
	case sign:
		err = r.sign(ctx, s)
	default:
		if defaulter || base != "" {
			err = r.addDefaulter(ctx, defaulter, base)
		}
		if err == nil {
			err = build(ctx, r, images, clients, uncommitted)
		}
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, r release, images, clients string, uncommitted bool) (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.images, err = parsePlatforms(images); err != nil {
		return fmt.Errorf("-platforms: %w", err)
	}
	if r.clients, err = parsePlatforms(clients); err != nil {
		return fmt.Errorf("-client-platforms: %w", err)
	}
	if r.launcher != nil {
		if err := r.checkLauncher(); err != nil {
			return fmt.Errorf("-launcher: %w", err)
		}
	}
	if err := r.readCommit(ctx, os.Getenv("SOURCE_DATE_EPOCH"), uncommitted); err != nil {
		return err
	}
	return r.write(ctx)
}

// readCommit sets the revision, and the time: that of the commit, unless epoch has seconds since 1970, see
// https://reproducible-builds.org/specs/source-date-epoch/.
func (r *release) readCommit(ctx context.Context, epoch string, uncommitted bool) error {
	revision, err := git(ctx, r.root, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	changed, err := git(ctx, r.root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" && uncommitted {
		revision += modified
	} else if changed != "" {
		return fmt.Errorf("%s has changes that are not committed, and others could not build the same:\n%s", r.root, changed)
	}
	if epoch == "" {
		if epoch, err = git(ctx, r.root, "log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q: want seconds since 1970", epoch)
	}
	r.revision, r.created = revision, time.Unix(seconds, 0).UTC()
	return nil
}

func git(ctx context.Context, folder string, arguments ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, arguments...)...).Output()
	if err != nil {
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return "", fmt.Errorf("git %s: %w", arguments[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
