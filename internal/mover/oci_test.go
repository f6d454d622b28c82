package mover

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/s3/s3test"
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
		"a server":   {HTTP: &v1beta1.ImportSourceHTTP{URL: newSite(t, archive).URL + "/web.tar"}},
		"a bucket":   {S3: &v1beta1.ImportSourceS3{URL: bucket(t, archive) + "/images/a b/web.tar", Region: "here"}},
	} {
		t.Run(of, func(t *testing.T) {
			inspect := fromHTTP(transfer.Inspect, "")
			inspect.Source = source
			inspect.Checksum = digestOf(archive)
			if source.Registry != nil {
				inspect.Checksum = ""
			}
			files := map[string][]byte{
				transfer.SourceFolder + "/images/web.tar": archive, transfer.CredentialsFolder + "/accessKeyId": []byte("key\n"), transfer.CredentialsFolder + "/secretKey": []byte("secret"),
			}
			state := succeed(t, mounts(t, files), inspect)
			if state.Plan.Format != "OCI" || !strings.Contains(string(state.Plan.Template), `"namespace":"imported"`) || strings.Contains(string(state.Plan.Template), "golden") || strings.Contains(string(state.Plan.Template), "team") {
				t.Errorf("plan %+v of template %s", state.Plan, state.Plan.Template)
			}
			task := toImport(inspect, state.Plan)
			f := volumes(t, task)
			for name, content := range files {
				write(t, f.path(name), content)
			}
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

// bucket serves an object in an S3 bucket of the region here, to requests with signatures.
func bucket(t testing.TB, object []byte) string {
	t.Helper()
	s := newSite(t, object)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.URL.Path, "/elsewhere/"):
			http.Redirect(w, r, "/images/a b/web.tar", http.StatusTemporaryRedirect)
		case !s3test.Signed(r.Context(), r, "here", "key", "secret"):
			w.WriteHeader(http.StatusForbidden)
		default:
			return false
		}
		return true
	}
	return s.URL
}

func TestBucketsThatDeny(t *testing.T) {
	url := bucket(t, []byte("hello"))
	for name, tc := range map[string]struct {
		path, region, access string
		want                 transfer.Failure
	}{
		"another key":    {"/images/a%20b/web.tar", "here", "other", transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "URL/images/a%20b/web.tar: the server answers 403 Forbidden: check the credentials of the source"}},
		"another region": {"/images/a%20b/web.tar", "", "key", transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "URL/images/a%20b/web.tar: the server answers 403 Forbidden: check the credentials of the source"}},
		"a bucket that is elsewhere": {"/elsewhere/web.tar", "here", "key", transfer.Failure{Reason: transfer.ReasonUnreachableSource,
			Message: "URL/elsewhere/web.tar: the server answers 307 Temporary Redirect: the bucket may be in another region: set the region of the source, or use the URL https://s3.REGION.amazonaws.com/BUCKET/KEY"}},
		"no key":          {"/images/web.tar", "here", "", transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "the Secret of the source must have the keys accessKeyId and secretKey"}},
		"another content": {"/images/a%20b/web.tar", "here", "key", transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: "OVA: is truncated; transfer it again"}},
	} {
		t.Run(name, func(t *testing.T) {
			task := fromHTTP(transfer.Inspect, "")
			task.Source = &v1beta1.ImportSource{S3: &v1beta1.ImportSourceS3{URL: url + tc.path, Region: tc.region}}
			tc.want.Message = strings.Replace(tc.want.Message, "URL", url, 1)
			fails(t, mounts(t, map[string][]byte{transfer.CredentialsFolder + "/accessKeyId": []byte(tc.access), transfer.CredentialsFolder + "/secretKey": []byte("secret")}), task, tc.want)
		})
	}
}

func TestTheLayersOfAnArchiveMayComeFirst(t *testing.T) {
	archive := repack(t, packageOf(t, v1beta1.ExportOCI), func(all []member) []member { slices.Reverse(all); return all })
	s := newSite(t, archive)
	s.cut = 3 << 20
	inspect := fromHTTP(transfer.Inspect, s.URL)
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	task.Checksum = digestOf(archive)
	f := volumes(t, task)
	s.served.Store(0)
	succeed(t, f, task)
	isImported(t, f, task)
	if s.served.Load() > int64(len(archive))+1<<20 {
		t.Errorf("the import has read %d bytes, and the archive has %d", s.served.Load(), len(archive))
	}
}

// TestTwoDisksMayBeOneLayer tests a template whose disks are equal.
func TestTwoDisksMayBeOneLayer(t *testing.T) {
	s := newSite(t, packageOf(t, v1beta1.ExportOCI))
	inspect := fromHTTP(transfer.Inspect, s.URL)
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	twin := task.Disks[0]
	twin.Name = "twin"
	task.Disks = append(task.Disks[:1], twin)
	f := volumes(t, task)
	succeed(t, f, task)
	for _, d := range task.Disks {
		if got := read(t, f.path(transfer.DisksFolder, d.Name, transfer.DiskFile)); !bytes.Equal(got, rootDisk()) {
			t.Errorf("the disk %s has another content", d.Name)
		}
	}
}

func TestFailedImportsOfArchives(t *testing.T) {
	archive := packageOf(t, v1beta1.ExportOCI)
	zero := "sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		change func(*site, *transfer.Task)
		want   func(*transfer.Task) transfer.Failure
	}{
		"another checksum": {func(_ *site, task *transfer.Task) { task.Checksum = zero }, func(*transfer.Task) transfer.Failure {
			return transfer.Failure{Reason: transfer.ReasonChecksumMismatch, Message: "the package has the digest " + digestOf(archive) + ", and " + zero + " is requested"}
		}},
		// The checksum has to be that of what is written, not that of another answer of the server.
		"a server that answers the whole with another archive than ranges": {func(s *site, task *transfer.Task) {
			other := repack(t, archive, func(all []member) []member { return all[:len(all)-1] })
			other = append(other, make([]byte, len(archive)-len(other))...)
			task.Checksum = digestOf(other)
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Range") == "" {
					w.Header().Set("ETag", `"one"`)
					_, _ = w.Write(other)
					return true
				}
				return false
			}
		}, func(task *transfer.Task) transfer.Failure {
			return transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: "OCI artifact: the blob " + task.Disks[1].File + " is missing"}
		}},
		"another manifest than at the inspection": {func(_ *site, task *transfer.Task) { task.Description = zero }, func(*transfer.Task) transfer.Failure {
			return transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: "the artifact has changed since it was inspected: create the import again"}
		}},
		"a layer that is missing": {func(_ *site, task *transfer.Task) { task.Disks[0].File = zero }, func(*transfer.Task) transfer.Failure {
			return transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: "the artifact has no layer " + zero + " of a disk with 25165824 bytes"}
		}},
		"an archive that ends early": {func(s *site, _ *transfer.Task) { s.content = archive[:len(archive)/2] }, func(*transfer.Task) transfer.Failure {
			return transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: "disk fedora.44: OCI artifact: the archive cannot be read: unexpected EOF"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, archive)
			inspect := fromHTTP(transfer.Inspect, s.URL+"/web.tar")
			task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
			f := volumes(t, task)
			s.mutex.Lock()
			tc.change(s, task)
			s.mutex.Unlock()
			fails(t, f, task, tc.want(task))
		})
	}
}

// TestADamagedLayer is one of two failures: the layer is read ahead of its expansion, so that its end with another digest can be found first.
func TestADamagedLayer(t *testing.T) {
	archive := packageOf(t, v1beta1.ExportOCI)
	s := newSite(t, archive)
	inspect := fromHTTP(transfer.Inspect, s.URL+"/web.tar")
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	f := volumes(t, task)
	damaged := bytes.Clone(archive)
	damaged[len(archive)/2] ^= 1
	s.mutex.Lock()
	s.content = damaged
	s.mutex.Unlock()
	state := work(t, f, task)
	if state.Failure == nil || state.Failure.Reason != transfer.ReasonNotAPackage || state.Failure.Retry || state.Failure.Message != "disk fedora.44: zstd: CRC check failed" &&
		!strings.HasPrefix(state.Failure.Message, "disk fedora.44: OCI artifact: the blob "+task.Disks[0].File+" has the digest sha256:") {
		t.Errorf("got %s %+v", state.Phase, state.Failure)
	}
}

func TestAnArchiveOfAServerWithoutRanges(t *testing.T) {
	s := newSite(t, packageOf(t, v1beta1.ExportOCI))
	s.noRanges = true
	fails(t, mounts(t, nil), fromHTTP(transfer.Inspect, s.URL), transfer.Failure{Reason: transfer.ReasonUnsupported, Message: "the package is the archive of an OCI layout, and the server does not support ranges"})
}
