package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// signer calls cosign.
type signer struct {
	// program is the path of cosign.
	program string
	// key is the path of a private key or the address of one in a key service; without it cosign requests a certificate.
	key string
	// offline omits the public transparency log.
	offline bool
}

func (s signer) run(ctx context.Context, command string, arguments ...string) error {
	all := []string{command, "--yes"}
	if s.key != "" {
		all = append(all, "--key="+s.key)
	}
	if s.offline {
		all = append(all, "--use-signing-config=false", "--tlog-upload=false")
	}
	run := exec.CommandContext(ctx, s.program, append(all, arguments...)...)
	// It reads a password, and shows an address to visit.
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stderr, os.Stderr
	if err := run.Run(); err != nil {
		return fmt.Errorf("cosign %s %s: %w", command, strings.Join(arguments, " "), err)
	}
	return nil
}

// sign signs what was pushed: images and chart by their digests, with the provenance, and each image of a platform with its SBOM. The registry has
// all of it as referrers. The checksums are signed in a file beside them.
func (r release) sign(ctx context.Context, s signer) error {
	for _, repository := range r.repositories() {
		path := filepath.Join(r.output, layouts, filepath.FromSlash(repository))
		named, err := layout.ImageIndexFromPath(path)
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		manifest, err := named.IndexManifest()
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		top := manifest.Manifests[0]
		reference := r.repository + "/" + repository + "@"
		if err := errors.Join(
			s.run(ctx, "sign", "--recursive", reference+top.Digest.String()),
			s.run(ctx, "attest", "--type=slsaprovenance1", "--predicate="+filepath.Join(r.output, provenanceFile), reference+top.Digest.String()),
		); err != nil {
			return err
		}
		if !top.MediaType.IsIndex() {
			continue
		}
		index, err := named.ImageIndex(top.Digest)
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		images, err := index.IndexManifest()
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		for _, each := range images.Manifests {
			on := platform{each.Platform.OS, each.Platform.Architecture}
			if err := s.run(ctx, "attest", "--type=spdxjson", "--predicate="+filepath.Join(r.output, sbomFile(repository, on)), reference+each.Digest.String()); err != nil {
				return err
			}
		}
	}
	sums := filepath.Join(r.output, checksums)
	return s.run(ctx, "sign-blob", "--bundle="+sums+".sigstore.json", sums)
}

// sbomFile returns the name of the SBOM of a program in the release.
func sbomFile(program string, on platform) string {
	return filepath.Join(sboms, program+"-"+on.os+"-"+on.arch+".spdx.json")
}
