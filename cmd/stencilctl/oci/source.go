package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/registry"
	"github.com/vmstencil/stencil/oci"
)

// scheme begins the names of artifacts in registries.
const scheme = "oci://"

// reader opens artifacts.
type reader struct {
	options registry.Options
	key     string
}

func (r *reader) register(command *cobra.Command) {
	command.Flags().BoolVar(&r.options.PlainHTTP, "plain-http", false, "connect to the registry without TLS; on loopback it is not needed")
	command.Flags().StringVar(&r.key, "key", "", "file with a public key in PEM; the artifact must have a signature that cosign made with its private key")
}

// found is an artifact.
type found struct {
	*oci.Artifact
	resource *oci.Resource
	from     string
	// layout has the blobs of a local artifact, repository those of another one.
	layout     *oci.Layout
	repository *registry.Repository
	digests    []string
	closer     func() error
}

// open opens an artifact. Its manifest and its config are verified.
func (r *reader) open(ctx context.Context, from string) (*found, error) {
	if reference, is := strings.CutPrefix(from, scheme); is {
		repository, err := registry.Open(reference, r.options)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: %w", from, err))
		}
		remote, err := repository.Artifact(ctx)
		if err != nil {
			return nil, marked(from, err)
		}
		return &found{Artifact: remote.Artifact, resource: remote.Resource, from: from, repository: repository, digests: remote.Digests, closer: func() error { return nil }}, nil
	}
	if r.key != "" {
		return nil, cli.Usage(errors.New("--key needs an artifact in a registry, which has the signature"))
	}
	files, closer, err := layoutFiles(from)
	if err != nil {
		return nil, marked(from, err)
	}
	layout, err := oci.Open(files)
	if err != nil {
		return nil, errors.Join(marked(from, err), closer())
	}
	return &found{Artifact: layout.Artifact, resource: layout.Resource, from: from, layout: layout, closer: closer}, nil
}

// layoutFiles returns the files of a folder or an archive.
func layoutFiles(path string) (fs.FS, func() error, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, cli.Usage(fmt.Errorf("%w; an artifact in a registry begins with %s", err, scheme))
	}
	if info.IsDir() {
		// Symbolic links do not lead out of a root.
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, nil, cli.Usage(err)
		}
		return root.FS(), root.Close, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	files, err := oci.OpenTar(file, info.Size())
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return files, file.Close, nil
}

// isLayout reports whether a path is a layout, and not a folder with a template.
func isLayout(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, cli.Usage(err)
	}
	if !info.IsDir() {
		return true, nil
	}
	_, err = os.Stat(filepath.Join(path, oci.LayoutFile))
	return err == nil, nil
}

// signed reports whether the artifact has a signature by the key.
func (r *reader) signed(ctx context.Context, f *found) (bool, error) {
	key, err := os.ReadFile(r.key)
	if err != nil {
		return false, cli.Usage(err)
	}
	verifier, err := registry.NewVerifier(string(key))
	if err != nil {
		return false, cli.Usage(fmt.Errorf("%s: %w", r.key, err))
	}
	signed, err := f.repository.Signed(ctx, f.digests, verifier)
	if err != nil {
		return false, cli.Cluster(fmt.Errorf("reading the signatures of %s: %w", f.from, err))
	}
	return signed, nil
}

// marked gives an error its exit code.
func marked(from string, err error) error {
	err = fmt.Errorf("%s: %w", from, err)
	var malformed *oci.Error
	if errors.As(err, &malformed) {
		return cli.Usage(err)
	}
	var local *fs.PathError
	if strings.HasPrefix(from, scheme) && !errors.As(err, &local) {
		return cli.Cluster(err)
	}
	return cli.Internal(err)
}
