package mover

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/internal/registry"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/transfer"
)

// isLayout reports whether a file is the archive of an OCI layout, and not an OVA. One that is read as a stream only is none: what describes a layout may be
// anywhere in its archive.
func isLayout(ctx context.Context, from origin) (bool, error) {
	content := from.random(ctx)
	if content == nil {
		return false, nil
	}
	reader := tar.NewReader(io.NewSectionReader(content, 0, from.Size()))
	for range oci.MaxEntries {
		header, err := reader.Next()
		if err != nil {
			known := (*transfer.Failure)(nil)
			if errors.As(err, &known) {
				return false, known
			}
			break
		}
		switch name := path.Clean(header.Name); {
		case name == oci.LayoutFile:
			return true, nil
		case strings.HasSuffix(strings.ToLower(name), ".ovf"):
			return false, nil
		}
	}
	return false, nil
}

// tarBlock is the size of a header in a tar archive.
const tarBlock = 512

// startsLayout reports whether the header of the first file of an archive is one of a layout, whose files may have any order.
func startsLayout(header []byte) bool {
	first, err := tar.NewReader(bytes.NewReader(header)).Next()
	if err != nil {
		return false
	}
	top, _, _ := strings.Cut(path.Clean(first.Name), "/")
	return top == oci.LayoutFile || top == "index.json" || top == "blobs"
}

// artifact is an OCI artifact of a source.
type artifact struct {
	*oci.Artifact
	resource *oci.Resource
	// digests of the manifest, and of the index that refers to it.
	digests []string
	// layer opens a layer. Its reader ends with an error if the content is another.
	layer func(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
	close func() error
}

// layout opens the archive of a layout.
func layout(ctx context.Context, from origin) (*artifact, error) {
	files, err := oci.OpenTar(from.random(ctx), from.Size())
	if err != nil {
		return nil, err
	}
	opened, err := oci.Open(files)
	if err != nil {
		return nil, err
	}
	return &artifact{
		Artifact: opened.Artifact, resource: opened.Resource, close: func() error { return nil },
		layer: func(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) { return opened.Blob(d) },
	}, nil
}

// registry opens the artifact in a registry.
func (m *Mover) registry(ctx context.Context) (*artifact, error) {
	source := m.Task.Source.Registry
	repository, closeIt, err := m.repository("source", source.Image, source.Insecure, m.stall())
	if err != nil {
		return nil, err
	}
	found, err := repository.Artifact(ctx)
	if err != nil {
		return nil, m.unreachable(err)
	}
	return &artifact{
		Artifact: found.Artifact, resource: found.Resource, digests: found.Digests,
		layer: func(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
			stream, err := repository.Stream(ctx, d, m.stall())
			if err != nil {
				return nil, m.unreachable(err)
			}
			return &reachable{stream, m}, nil
		},
		close: func() error { closeIt(); return nil },
	}, nil
}

// repository opens the repository of an image, which is that of the source or the target. The registry has this time to begin an answer.
func (m *Mover) repository(of, image string, insecure bool, answers time.Duration) (repository *registry.Repository, closeIt func(), err error) {
	networks, err := m.networks()
	if err != nil {
		return nil, nil, err
	}
	with, err := m.Folders.credentials()
	if err != nil {
		return nil, nil, err
	}
	transport, err := outbound.Transport(networks, outbound.Transfers, with.authorities)
	if err != nil {
		return nil, nil, failed(transfer.ReasonInvalidTask, false, "the certificates of the %s: %v", of, err)
	}
	transport.ResponseHeaderTimeout = answers
	options := registry.Options{PlainHTTP: insecure, PlainHTTPHint: "insecure of the " + of, Transport: transport, Credentials: authn.Anonymous, Wait: m.Wait, Pace: m.pace()}
	switch {
	case with.username != "" || with.password != "":
		options.Credentials = &authn.Basic{Username: with.username, Password: with.password}
	case with.token != "":
		options.Credentials = &authn.Bearer{Token: with.token}
	}
	if repository, err = registry.Open(image, options); err != nil {
		return nil, nil, failed(transfer.ReasonInvalidTask, false, "the image of the %s: %v", of, err)
	}
	return repository, transport.CloseIdleConnections, nil
}

// unreachable makes an error of a registry one of the source. What the package itself causes stays as it is.
func (m *Mover) unreachable(err error) error {
	if f := classify(err); f.Reason != transfer.ReasonInternal {
		return f
	}
	return failed(transfer.ReasonUnreachableSource, registry.Temporary(err), "%s: %v", m.Task.Source.Registry.Image, err)
}

// reachable is a layer whose errors are those of the source.
type reachable struct {
	io.ReadCloser
	m *Mover
}

func (r *reachable) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.m.unreachable(err)
	}
	return n, err
}

func (m *Mover) planLayout(ctx context.Context, from origin) (*transfer.Plan, error) {
	a, err := layout(ctx, from)
	if err != nil {
		return nil, err
	}
	plan, err := m.planArtifact(a)
	if err == nil {
		plan.Size = from.Size()
	}
	return plan, err
}

func (m *Mover) planRegistry(ctx context.Context) (*transfer.Plan, error) {
	a, err := m.registry(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.close() }()
	if err := m.compareDigest(a); err != nil {
		return nil, err
	}
	return m.planArtifact(a)
}

// compareDigest compares the digest of an artifact in a registry with the requested one.
func (m *Mover) compareDigest(a *artifact) error {
	for _, digest := range a.digests {
		if m.Task.Checksum == "" || digest == m.Task.Checksum {
			return nil
		}
	}
	return failed(transfer.ReasonChecksumMismatch, false, "the artifact has the digest %s, and %s is requested", a.Descriptor.Digest, m.Task.Checksum)
}

// planArtifact makes the plan of an artifact.
func (m *Mover) planArtifact(a *artifact) (*transfer.Plan, error) {
	plan := &transfer.Plan{Format: "OCI", Description: a.Descriptor.Digest.String(), Size: int64(len(a.Manifest)), Verified: "SHA-256", Disks: []transfer.PlannedDisk{}}
	for _, blob := range a.Blobs() {
		plan.Size += blob.Size
	}
	note := func(action conversion.Action, source, format string, arguments ...any) {
		plan.Notes = append(plan.Notes, conversion.Note{Action: action, Source: source, Result: fmt.Sprintf(format, arguments...)})
	}
	claims, err := a.resource.Claims()
	if err != nil {
		return nil, err
	}
	made, err := makeTemplate(a.resource, m.Task.Conversion, claims, note)
	if err != nil {
		return nil, err
	}
	of := map[string]oci.Claim{}
	for _, claim := range claims {
		of[claim.Disk()] = claim
	}
	has := map[string]bool{}
	for _, d := range a.Disks {
		claim, found := of[d.Name]
		if !found {
			note(conversion.ActionDropped, "disk "+d.Name, "it belongs to no claim of the %s", a.Kind)
			continue
		}
		has[claim.Name] = true
		plan.Disks = append(plan.Disks, transfer.PlannedDisk{Name: claim.Name, Volume: made.volumes[claim.Name], File: d.Layer.Digest.String(), Size: d.Size})
	}
	for _, claim := range claims {
		if !has[claim.Name] {
			note(conversion.ActionWarning, "claim "+claim.Name, "the artifact has no disk for it: the namespace has to have it")
		}
	}
	for _, ignored := range a.Ignored {
		note(conversion.ActionDropped, "layer", "its type %.80q is not that of a disk", ignored.MediaType)
	}
	plan.Template, err = encodeTemplate(made.template)
	return plan, err
}

// importLayout writes the disks of the archive of a layout, which is read once, in the order in which it arrives: the checksum is that of what was written.
func (m *Mover) importLayout(ctx context.Context, from origin) error {
	raw := from.Stream(ctx)
	defer raw.Close()
	stream := m.summed(&bounded{from: raw, left: m.mostStored()})
	archive := oci.NewTarStream(stream)
	done, err := m.importBlobs(ctx, archive)
	if err != nil {
		return err
	}
	if err := m.compareChecksum(stream); err != nil {
		return err
	}
	read, err := oci.Open(archive.Files())
	if err != nil {
		return err
	}
	return m.importArtifact(ctx, &artifact{Artifact: read.Artifact, layer: func(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
		// A blob of two disks is read again, by random access.
		again, err := layout(ctx, from)
		if err != nil {
			return nil, err
		}
		return again.layer(ctx, d)
	}}, done)
}

// importBlobs writes the disks whose blobs pass, the first one of those with the same blob, and keeps the small files. It returns the names of the disks.
func (m *Mover) importBlobs(ctx context.Context, archive *oci.TarStream) (done map[string]bool, err error) {
	type blob struct {
		disk   transfer.Disk
		digest v1.Hash
	}
	of := map[string]blob{}
	for _, d := range slices.Backward(m.Task.Disks) {
		if digest, err := v1.NewHash(d.File); err == nil {
			of[oci.BlobName(digest)] = blob{d, digest}
		}
	}
	done = map[string]bool{}
	for {
		file, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return nil, err
		}
		made, found := of[archive.Name()]
		switch {
		case found:
			layer := v1.Descriptor{Digest: made.digest, Size: file.Size()}
			if err := named(made.disk.Name, m.importLayer(ctx, made.disk, layer, oci.Verify(archive, layer))); err != nil {
				return nil, err
			}
			done[made.disk.Name] = true
		case file.Size() <= oci.MaxManifestBytes:
			if err := archive.Keep(); err != nil {
				return nil, err
			}
		}
	}
}

func (m *Mover) importRegistry(ctx context.Context) error {
	a, err := m.registry(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.close() }()
	if err := m.compareDigest(a); err != nil {
		return err
	}
	return m.importArtifact(ctx, a, nil)
}

// importArtifact writes the disks of an artifact that are not done, and compares those that are with it.
func (m *Mover) importArtifact(ctx context.Context, a *artifact, done map[string]bool) error {
	if got := a.Descriptor.Digest.String(); m.Task.Description != "" && got != m.Task.Description {
		return failed(transfer.ReasonSourceChanged, false, "the artifact has changed since it was inspected: create the import again")
	}
	for _, d := range m.Task.Disks {
		i := slices.IndexFunc(a.Disks, func(of oci.Disk) bool { return of.Layer.Digest.String() == d.File && of.Size == d.Size })
		if i < 0 {
			return failed(transfer.ReasonSourceChanged, false, "the artifact has no layer %.100s of a disk with %d bytes", d.File, d.Size)
		}
		if done[d.Name] {
			continue
		}
		if err := named(d.Name, m.fetchLayer(ctx, a, d, a.Disks[i].Layer)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mover) fetchLayer(ctx context.Context, a *artifact, d transfer.Disk, layer v1.Descriptor) error {
	blob, err := a.layer(ctx, layer)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	return m.importLayer(ctx, d, layer, blob)
}

// importLayer writes a disk from its layer, whose reader verifies the digest at its end.
func (m *Mover) importLayer(ctx context.Context, d transfer.Disk, layer v1.Descriptor, blob io.Reader) (err error) {
	stored := m.counted(d, &interruptible{ctx, blob}, layer.Size)
	t, err := m.openTarget(ctx, d, stored.n.Load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.file.Close()) }()
	if err := rawzstd.Expand(ctx, t, stored, d.Size, nil); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, stored); err != nil {
		return err
	}
	if err := t.finish(); err != nil {
		return err
	}
	m.report.disk(d.Name)(func(p *transfer.Progress) { p.Digest = layer.Digest.String() })
	return nil
}
