package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/test/cluster/image"
	"github.com/vmstencil/stencil/test/controlplane"
)

// startRegistry serves the images of the stores at the addresses of the registry, and at a socket. Others may be pushed.
func (c Config) startRegistry(ctx context.Context, plane *controlplane.Plane) error {
	blobs := c.file("data", "blobs")
	var stores []*image.Store
	for _, each := range c.Stores {
		store, err := image.Open(each)
		if err != nil {
			return err
		}
		if err := linkAll(store.Blobs(), blobs); err != nil {
			return err
		}
		stores = append(stores, store)
	}
	handler := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0)))
	serving, err := plane.ServingCertificate(Address)
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	if err != nil {
		return err
	}
	for _, address := range [][2]string{{"tcp", Registry}, {"tcp", SecureRegistry}, {"unix", c.file(RegistrySocket)}} {
		listener, err := new(net.ListenConfig).Listen(ctx, address[0], address[1])
		if err != nil {
			return err
		}
		if address[1] == SecureRegistry {
			listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		}
		// It serves until the process ends.
		go func() { _ = (&http.Server{Handler: handler}).Serve(listener) }()
	}
	for _, store := range stores {
		if err := push(ctx, store); err != nil {
			return err
		}
	}
	return nil
}

// push adds the images of a store to the registry, which has their blobs.
func push(ctx context.Context, store *image.Store) error {
	images, err := store.All()
	if err != nil {
		return err
	}
	for reference, each := range images {
		to, err := InRegistry(reference)
		if err == nil {
			err = remote.Write(to, each, remote.WithContext(ctx))
		}
		if err != nil {
			return fmt.Errorf("pushing %s: %w", reference, err)
		}
	}
	return nil
}

// InRegistry returns where the registry has an image: containerd requests images of all registries from it.
func InRegistry(reference string) (name.Reference, error) {
	parsed, err := name.ParseReference(reference)
	if err != nil {
		return nil, err
	}
	return name.ParseReference(Registry+"/"+parsed.Context().RepositoryStr()+":"+parsed.Identifier(), name.Insecure)
}

// linkAll makes the blobs of a store appear in the folder of the registry, where pushed ones are added.
func linkAll(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "sha256", "*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, "sha256"), 0o755); err != nil {
		return err
	}
	for _, each := range files {
		err := os.Symlink(each, filepath.Join(to, "sha256", filepath.Base(each)))
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}
