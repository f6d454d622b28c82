package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes the images and the chart of the output folder, with the credentials of `docker login`.
func (r release) push(ctx context.Context) error {
	var named []name.Option
	if r.plainHTTP {
		named = append(named, name.Insecure)
	}
	for _, repository := range r.repositories() {
		if err := checkBlobs(filepath.Join(r.output, layouts, filepath.FromSlash(repository))); err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		folder, err := layout.ImageIndexFromPath(filepath.Join(r.output, layouts, filepath.FromSlash(repository)))
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		tag, err := name.NewTag(r.repository+"/"+repository+":"+r.tag(), named...)
		if err != nil {
			return fmt.Errorf("-repository: %w", err)
		}
		manifest, err := folder.IndexManifest()
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		if len(manifest.Manifests) != 1 {
			return fmt.Errorf("the layout of %s has %d images, want one", repository, len(manifest.Manifests))
		}
		options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
		digest := manifest.Manifests[0].Digest
		if manifest.Manifests[0].MediaType.IsIndex() {
			index, err := folder.ImageIndex(digest)
			if err == nil {
				err = remote.WriteIndex(tag, index, options...)
			}
			if err != nil {
				return fmt.Errorf("pushing %s: %w", tag, err)
			}
		} else {
			image, err := folder.Image(digest)
			if err == nil {
				err = remote.Write(tag, image, options...)
			}
			if err != nil {
				return fmt.Errorf("pushing %s: %w", tag, err)
			}
		}
		fmt.Printf("%s@%s\n", tag, digest)
	}
	return nil
}

// checkBlobs compares the blobs of a layout with their names. A registry compares only what it does not have yet.
func checkBlobs(layout string) error {
	folder := filepath.Join(layout, "blobs", "sha256")
	blobs, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, each := range blobs {
		file, err := os.Open(filepath.Join(folder, each.Name()))
		if err != nil {
			return err
		}
		digest, _, err := v1.SHA256(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		if digest.Hex != each.Name() {
			return fmt.Errorf("blob %s was changed: its digest is %s", each.Name(), digest)
		}
	}
	return nil
}

// repositories returns the names of all repositories of the release in the output folder.
func (r release) repositories() []string {
	var all []string
	for _, each := range append(slices.Clone(programs), debianDefaulter, launcherDefaulter) {
		if _, err := os.Stat(filepath.Join(r.output, layouts, each.repository())); err == nil || !each.optional() {
			all = append(all, each.repository())
		}
	}
	for _, each := range charts {
		all = append(all, chartFolder+"/"+each)
	}
	return all
}
