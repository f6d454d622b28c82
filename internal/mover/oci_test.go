package mover

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/transfer"
)

// layer is a blob of a layout.
type layer struct {
	of   v1.Descriptor
	from *oci.Layout
}

func (l *layer) Digest() (v1.Hash, error)             { return l.of.Digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.of.Digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.from.Blob(l.of) }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return l.from.Blob(l.of) }
func (l *layer) Size() (int64, error)                 { return l.of.Size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return l.of.MediaType, nil }

type manifest struct{ *oci.Artifact }

func (m manifest) RawManifest() ([]byte, error)        { return m.Manifest, nil }
func (m manifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// push pushes the artifact of an archive to a registry on loopback, and returns its reference.
func push(t testing.TB, archive []byte) string {
	t.Helper()
	server := httptest.NewServer(ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	files, err := oci.OpenTar(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	layout, err := oci.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/templates/web:v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range layout.Blobs() {
		if err := remote.WriteLayer(reference.Context(), &layer{blob, layout}); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.Put(reference, manifest{layout.Artifact}); err != nil {
		t.Fatal(err)
	}
	return reference.String()
}

func TestAnExportedArtifactIsImported(t *testing.T) {
	archive := packageOf(t, v1beta1.ExportOCI)
	for of, source := range map[string]*v1beta1.ImportSource{
		"a registry": {Registry: &v1beta1.ImportSourceRegistry{Image: push(t, archive)}},
		"a volume":   {PVC: &v1beta1.ImportSourcePVC{Name: "packages", Path: "images/web.tar"}},
	} {
		t.Run(of, func(t *testing.T) {
			inspect := fromHTTP(transfer.Inspect, "")
			inspect.Source = source
			volume := map[string][]byte{transfer.SourceFolder + "/images/web.tar": archive}
			state := succeed(t, mounts(t, volume), inspect)
			if state.Plan.Format != "OCI" || !strings.Contains(string(state.Plan.Template), `"namespace":"imported"`) || strings.Contains(string(state.Plan.Template), "golden") || strings.Contains(string(state.Plan.Template), "team") {
				t.Errorf("plan %+v of template %s", state.Plan, state.Plan.Template)
			}
			task := toImport(inspect, state.Plan)
			f := volumes(t, task)
			write(t, f.path(transfer.SourceFolder, "images/web.tar"), archive)
			state = succeed(t, f, task)
			isImported(t, f, task)
			for _, d := range state.Disks {
				if d.Done != d.Total || d.Done == 0 || d.Digest == "" {
					t.Errorf("progress %+v", d)
				}
			}
		})
	}
}
