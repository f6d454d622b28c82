package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes the images and the chart of the output folder, with the credentials of `docker login`.
func (r release) push(ctx context.Context) error {
	for _, repository := range r.repositories() {
		folder, err := layout.ImageIndexFromPath(filepath.Join(r.output, layouts, filepath.FromSlash(repository)))
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", repository, err)
		}
		tag, err := name.NewTag(r.repository + "/" + repository + ":" + r.tag())
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

// repositories returns the names of all repositories of the release.
func (release) repositories() []string {
	var all []string
	for _, each := range programs {
		all = append(all, each.name)
	}
	return append(all, chartRepository)
}
