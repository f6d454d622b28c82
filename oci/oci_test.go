package oci_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/oci"
)

// file is a file of an archive.
type file struct{ name, content string }

// config is a template as KubeVirt 1.9 writes it, with two disks.
const config = `{"kind":"VirtualMachineTemplate","apiVersion":"template.kubevirt.io/v1beta1","metadata":{"name":"web","namespace":"golden","uid":"8f3c","resourceVersion":"7","annotations":{"description":"A server","kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"virtualMachine":{"spec":{"dataVolumeTemplates":[{"metadata":{"name":"${NAME}"},"spec":{"source":{"pvc":{"namespace":"golden","name":"fedora.44"}}}},{"metadata":{"name":"${NAME}-data"},"spec":{"source":{"pvc":{"namespace":"golden","name":"${DATA}"}}}}],"template":{"spec":{"architecture":"${ARCH}","volumes":[{"name":"root","dataVolume":{"name":"${NAME}"}},{"name":"tools","persistentVolumeClaim":{"claimName":"tools"}}]}}}},"parameters":[{"name":"NAME","required":true},{"name":"ARCH","value":"arm64"}]},"status":{}}`

func digest(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

func blob(content string) file {
	return file{"blobs/" + strings.Replace(digest(content), ":", "/", 1), content}
}

// compressed is a disk as KubeVirt writes it.
func compressed(t testing.TB, raw string) string {
	t.Helper()
	var stream bytes.Buffer
	writer, err := zstd.NewWriter(&stream, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err == nil {
		_, err = writer.Write([]byte(raw))
	}
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	return stream.String()
}

func layer(name, size, content string) string {
	return fmt.Sprintf(`{"mediaType":"application/vnd.kubevirt.disk.raw+zstd","digest":"%s","size":%d,"annotations":{"io.kubevirt.disk.name":"%s","io.kubevirt.disk.size":"%s","org.opencontainers.image.title":"%s.raw.zst"}}`, digest(content), len(content), name, size, name)
}

func manifest(layers ...string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.kubevirt.virtualmachinetemplate.v1","config":{"mediaType":"application/vnd.kubevirt.virtualmachinetemplate.config.v1+json","digest":"%s","size":%d},"layers":[%s]}`, digest(config), len(config), strings.Join(layers, ","))
}

func index(manifest string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","artifactType":"application/vnd.kubevirt.virtualmachinetemplate.v1","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"%s","size":%d,"platform":{"architecture":"arm64","os":"linux"}}],"annotations":{"org.opencontainers.image.created":"2026-11-01T12:00:00Z"}}`, digest(manifest), len(manifest))
}

// layout has the files of an artifact in the order of KubeVirt's export, with fields in its order. change may change manifest and files.
func layout(t testing.TB, change func(manifest *string, files *[]file)) []file {
	t.Helper()
	fedora, tools := compressed(t, strings.Repeat("fedora", 1000)), compressed(t, "tools")
	m := manifest(layer("fedora-44", "6000", fedora), layer("tools", "5", tools))
	files := []file{blob(config), blob(fedora), blob(tools)}
	if change != nil {
		change(&m, &files)
	}
	return append([]file{{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`}, {"index.json", index(m)}, blob(m)}, files...)
}

// archive is a tar archive of files.
func archive(t testing.TB, files []file, more ...tar.Header) []byte {
	t.Helper()
	var written bytes.Buffer
	writer := tar.NewWriter(&written)
	for _, each := range files {
		more = append(more, tar.Header{Typeflag: tar.TypeReg, Name: each.name, Size: int64(len(each.content)), Mode: 0o644, Linkname: each.content})
	}
	for _, header := range more {
		content := header.Linkname
		if header.Typeflag == tar.TypeReg {
			header.Linkname = ""
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(writer, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

func openTar(content []byte) (*oci.Layout, error) {
	files, err := oci.OpenTar(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	return oci.Open(files)
}

func TestWhatKubeVirtExportsIsRead(t *testing.T) {
	files := layout(t, nil)
	folder := t.TempDir()
	for _, each := range files {
		path := filepath.Join(folder, each.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(each.content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	fromTar, err := oci.OpenTar(bytes.NewReader(archive(t, files)), int64(len(archive(t, files))))
	if err != nil {
		t.Fatal(err)
	}
	for what, from := range map[string]fs.FS{"archive": fromTar, "folder": os.DirFS(folder)} {
		got, err := oci.Open(from)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got.Kind != oci.VirtualMachineTemplate || got.Resource.Name() != "web" || got.Resource.Architecture() != "arm64" || got.Descriptor.Digest.String() != digest(files[2].content) {
			t.Errorf("%s: %s %s for %s with digest %s", what, got.Kind, got.Resource.Name(), got.Resource.Architecture(), got.Descriptor.Digest)
		}
		claims, err := got.Resource.Claims()
		if diff := cmp.Diff([]oci.Claim{{Namespace: "golden", Name: "fedora.44"}, {Name: "tools"}}, claims); diff != "" || err != nil {
			t.Errorf("%s: claims (-want +got):\n%s%v", what, diff, err)
		}
		var disks []string
		for _, disk := range got.Disks {
			disks = append(disks, fmt.Sprintf("%s %d", disk.Name, disk.Size))
			content, err := got.Blob(disk.Layer)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(content)
			if err := errors.Join(err, content.Close()); err != nil || digest(string(raw)) != disk.Layer.Digest.String() {
				t.Errorf("%s: disk %s has other content, or %v", what, disk.Name, err)
			}
		}
		if diff := cmp.Diff([]string{"fedora-44 6000", "tools 5"}, disks); diff != "" {
			t.Errorf("%s: disks (-want +got):\n%s", what, diff)
		}
	}
}

// disks of the artifact that the tests write.
func disks(contents ...string) []oci.Disk {
	var all []oci.Disk
	for i, content := range contents {
		hash, err := v1.NewHash(digest(content))
		if err != nil {
			panic(err)
		}
		all = append(all, oci.Disk{Name: fmt.Sprintf("disk%d", i), Size: 8 << 20, Layer: v1.Descriptor{Size: int64(len(content)), Digest: hash}})
	}
	return all
}

func TestWhatIsWrittenIsInKubeVirtsOrderAndIsRead(t *testing.T) {
	resource, err := oci.DecodeResource(oci.VirtualMachineTemplate, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := resource.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"uid", "resourceVersion", "status", "last-applied"} {
		if strings.Contains(string(encoded), absent) {
			t.Errorf("%q is in the config %s", absent, encoded)
		}
	}
	contents := map[string]string{"disk0": "compressed", "disk1": "another", "disk2": "compressed"}
	artifact, err := oci.Encode(oci.VirtualMachineTemplate, encoded, disks("compressed", "another", "compressed"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(content func(oci.Disk) string) ([]byte, error) {
		var written bytes.Buffer
		err := oci.WriteTar(&written, artifact, encoded, resource.Architecture(), func(w io.Writer, disk oci.Disk) error {
			_, err := io.WriteString(w, content(disk))
			return err
		})
		return written.Bytes(), err
	}
	written, err := write(func(disk oci.Disk) string { return contents[disk.Name] })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for reader := tar.NewReader(bytes.NewReader(written)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	want := []string{"oci-layout", "index.json", oci.BlobName(artifact.Descriptor.Digest), oci.BlobName(artifact.Config.Digest), blob("compressed").name, blob("another").name}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	read, err := openTar(written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(artifact, read.Artifact); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	if got := artifact.Disks[0].Layer.Annotations; got[oci.SizeAnnotation] != "8Mi" || got[oci.NameAnnotation] != "disk0" || got["org.opencontainers.image.title"] != "disk0.raw.zst" {
		t.Errorf("annotations %v", got)
	}
	for what, content := range map[string]string{"has the digest": "COMPRESSED", "ends at byte 4 of 10": "comp", "has more than its 10 bytes": "compressed twice"} {
		if _, err := write(func(oci.Disk) string { return content }); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
}

// TestAnArchiveInOnePassHasTheBytesOfTheOther also has disks that are equal: each is one blob, and nothing of the others remains.
func TestAnArchiveInOnePassHasTheBytesOfTheOther(t *testing.T) {
	large := strings.Repeat("0123456789", 300_001)
	for _, contents := range [][]string{nil, {"compressed"}, {"compressed", "another", "compressed"}, {strings.Repeat("x", 512), large, large}} {
		all := disks(contents...)
		artifact, err := oci.Encode(oci.VirtualMachineTemplate, []byte(config), all)
		if err != nil {
			t.Fatal(err)
		}
		number := func(d oci.Disk) int { return slices.IndexFunc(all, func(o oci.Disk) bool { return o.Name == d.Name }) }
		var want bytes.Buffer
		if err := oci.WriteTar(&want, artifact, []byte(config), "amd64", func(w io.Writer, d oci.Disk) error {
			_, err := io.WriteString(w, contents[number(d)])
			return err
		}); err != nil {
			t.Fatal(err)
		}
		unknown := slices.Clone(all)
		for i := range unknown {
			unknown[i].Layer = v1.Descriptor{}
		}
		file, err := os.Create(filepath.Join(t.TempDir(), "a.tar"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		made, err := oci.CreateTar(file, oci.VirtualMachineTemplate, []byte(config), "amd64", unknown, func(w io.Writer, i int) (v1.Descriptor, error) {
			_, err := io.WriteString(w, contents[i])
			return all[i].Layer, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(artifact, made); diff != "" {
			t.Errorf("artifact (-want +got):\n%s", diff)
		}
		if got, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%d disks: %v; %d bytes, want %d", len(contents), err, len(got), want.Len())
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "a.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := oci.CreateTar(file, oci.VirtualMachineTemplate, []byte(config), "amd64", disks("abc"), func(w io.Writer, _ int) (v1.Descriptor, error) {
		_, err := io.WriteString(w, "ab")
		return disks("abc")[0].Layer, err
	}); err == nil || err.Error() != "writing the disk disk0: 2 bytes were written of a layer of 3" {
		t.Errorf("error %v", err)
	}
	errDisk := errors.New("the disk has gone")
	if _, err := oci.CreateTar(file, oci.VirtualMachineTemplate, []byte(config), "amd64", disks("a"), func(io.Writer, int) (v1.Descriptor, error) { return v1.Descriptor{}, errDisk }); !errors.Is(err, errDisk) || !strings.HasPrefix(err.Error(), "writing the disk disk0: ") {
		t.Errorf("error %v", err)
	}
}

func TestTheImportOfKubeVirtIteratesOverDataVolumeTemplates(t *testing.T) {
	resource, err := oci.DecodeResource(oci.VirtualMachine, []byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web"},"spec":{"template":{"spec":{"volumes":[{"name":"a","persistentVolumeClaim":{"claimName":"root"}}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := resource.Encode(); err != nil || !strings.Contains(string(raw), `"dataVolumeTemplates":[]`) {
		t.Errorf("config %s, %v", raw, err)
	}
	if resource.Architecture() != "amd64" {
		t.Errorf("architecture %s", resource.Architecture())
	}
}

func TestClaimsOfOneDiskNameAreRejected(t *testing.T) {
	for claims, want := range map[[2]oci.Claim]string{
		{{Namespace: "golden", Name: "a.b"}, {Namespace: "golden", Name: "a-b"}}:     `the claims "golden/a.b" and "golden/a-b" are the same disk "a-b"`,
		{{Namespace: "golden", Name: "fedora"}, {Namespace: "team", Name: "fedora"}}: `the claims "golden/fedora" and "team/fedora" are the same disk "fedora"`,
		{{Namespace: "golden", Name: "fedora"}, {Name: "fedora"}}:                    "",
	} {
		var made []any
		for _, claim := range claims {
			made = append(made, map[string]any{"spec": map[string]any{"source": map[string]any{"pvc": map[string]any{"namespace": claim.Namespace, "name": claim.Name}}}})
		}
		resource := &oci.Resource{Kind: oci.VirtualMachine, Object: map[string]any{"spec": map[string]any{"dataVolumeTemplates": made}}}
		if _, err := resource.Claims(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestHostileArtifacts has everything that can be wrong with an artifact.
func TestHostileArtifacts(t *testing.T) {
	disk := func(name, size string) func(*string, *[]file) {
		return func(m *string, files *[]file) { *m = manifest(layer(name, size, (*files)[1].content)) }
	}
	replace := func(old, by string) func(*string, *[]file) {
		return func(m *string, _ *[]file) {
			if !strings.Contains(*m, old) {
				t.Fatalf("%q is not in %s", old, *m)
			}
			*m = strings.Replace(*m, old, by, 1)
		}
	}
	content := func(number int, by string) func(*string, *[]file) {
		return func(_ *string, files *[]file) { (*files)[number].content = by }
	}
	configured := func(by string) func(*string, *[]file) {
		return func(m *string, files *[]file) {
			*m = strings.Replace(*m, digest(config)+`","size":`+fmt.Sprint(len(config)), digest(by)+`","size":`+fmt.Sprint(len(by)), 1)
			(*files)[0] = blob(by)
		}
	}
	flipped := strings.Replace(config, "golden", "GOLDEN", 1)
	for what, tc := range map[string]struct {
		change func(manifest *string, files *[]file)
		want   string
	}{
		"the config has another digest":     {content(0, flipped), "the blob " + digest(config) + " has the digest " + digest(flipped)},
		"the config has another size":       {content(0, config+" "), "the blob " + digest(config) + fmt.Sprintf(" has %d bytes; want %d", len(config)+1, len(config))},
		"a layer has another size":          {content(1, "short"), "has 5 bytes; want"},
		"a layer is missing":                {func(_ *string, files *[]file) { *files = (*files)[:2] }, "the blob " + digest(compressed(t, "tools")) + " is missing"},
		"the config is missing":             {func(_ *string, files *[]file) { *files = (*files)[1:] }, "the blob " + digest(config) + " is missing"},
		"the artifact has another type":     {replace("vnd.kubevirt.virtualmachinetemplate.v1", "vnd.example.v1"), `the artifact has type "application/vnd.example.v1"; want`},
		"the config has another type":       {replace("virtualmachinetemplate.config.v1", "virtualmachine.config.v1"), `the config has type "application/vnd.kubevirt.virtualmachine.config.v1+json"; want`},
		"the manifest is one of Docker":     {replace("vnd.oci.image.manifest.v1", "vnd.docker.distribution.manifest.v2"), "the manifest has version 2 and type"},
		"the manifest has another version":  {replace(`"schemaVersion":2`, `"schemaVersion":1`), "the manifest has version 1 and type"},
		"the manifest is no JSON":           {func(m *string, _ *[]file) { *m = "{" }, "the manifest cannot be read: unexpected end of JSON input"},
		"a digest leads out of the layout":  {replace(digest(config), "sha256:../../../../etc/passwd"), "the manifest cannot be read: found non-hex character in hash: ."},
		"a digest has another algorithm":    {replace(digest(config), "sha512:"+strings.Repeat("0", 128)), `the config has a digest of "sha512"; want sha256`},
		"a layer is stored elsewhere":       {replace(`"annotations"`, `"urls":["http://169.254.169.254/"],"annotations"`), `layer 0 is stored at another address, "http://169.254.169.254/"`},
		"a layer has a negative size":       {replace(fmt.Sprintf(`"size":%d,"annotations"`, len(compressed(t, "tools"))), `"size":-1,"annotations"`), "layer 1 has -1 bytes"},
		"the config is huge":                {replace(fmt.Sprintf(`"size":%d}`, len(config)), `"size":4194305}`), "the config has 4194305 bytes; at most 4194304 are allowed"},
		"two disks have one name":           {replace(`"io.kubevirt.disk.name":"tools"`, `"io.kubevirt.disk.name":"fedora-44"`), `two layers are the disk "fedora-44"`},
		"a disk's name leads out":           {disk("../../root", "6000"), `layer 0 has the annotation io.kubevirt.disk.name: "../../root"; want lower case letters, digits and hyphens`},
		"a disk's name is absolute":         {disk("/etc/passwd", "6000"), `layer 0 has the annotation io.kubevirt.disk.name: "/etc/passwd"`},
		"a disk has no name":                {disk("", "6000"), `layer 0 has the annotation io.kubevirt.disk.name: ""`},
		"a disk's size is no quantity":      {disk("a", "large"), `layer 0, disk "a", has the annotation io.kubevirt.disk.size: "large"; want a quantity`},
		"a disk has no size":                {disk("a", ""), `layer 0, disk "a", has the annotation io.kubevirt.disk.size: ""`},
		"a disk's size is zero":             {disk("a", "0"), `layer 0, disk "a", has 0 bytes; want whole bytes, 1 to 70368744177664`},
		"a disk's size is negative":         {disk("a", "-1Gi"), `layer 0, disk "a", has -1Gi bytes`},
		"a disk's size is a part of a byte": {disk("a", "1500m"), `layer 0, disk "a", has 1500m bytes`},
		"a disk's size overflows":           {disk("a", "16Ei"), `layer 0, disk "a", has 16Ei bytes`},
		"a disk is larger than the limit":   {disk("a", "65Ti"), `layer 0, disk "a", has 65Ti bytes`},
		"there are too many layers":         {func(m *string, _ *[]file) { *m = manifest(slicesOf(257, layer("a", "1", "x"))...) }, "there are 257 layers; at most 256 are allowed"},
		"the resource is no JSON":           {configured("kind: VirtualMachineTemplate"), "the config is no VirtualMachineTemplate in JSON"},
		"the resource is another kind":      {configured(strings.Replace(config, `"kind":"VirtualMachineTemplate"`, `"kind":"Secret"`, 1)), `the config is a "Secret" of "template.kubevirt.io/v1beta1"; want a VirtualMachineTemplate of template.kubevirt.io`},
		"the resource is of another group":  {configured(strings.Replace(config, "template.kubevirt.io/v1beta1", "template.openshift.io/v1", 1)), `of "template.openshift.io/v1"; want`},
		"the resource's name leads out":     {configured(strings.Replace(config, `"name":"web"`, `"name":"../web"`, 1)), `the config has the name "../web"; want a DNS subdomain`},
	} {
		_, err := openTar(archive(t, layout(t, tc.change)))
		expect(t, what, err, tc.want)
	}
}

func slicesOf(count int, value string) []string {
	return strings.Split(strings.Repeat(value+"\n", count-1)+value, "\n")
}

func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	var malformed *oci.Error
	if !errors.As(err, &malformed) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", what, err, want)
	}
}

func TestHostileLayouts(t *testing.T) {
	good := layout(t, nil)
	with := func(number int, content string) []file {
		all := append([]file(nil), good...)
		all[number].content = content
		return all
	}
	entry := func(kind byte, name, link string) tar.Header {
		return tar.Header{Typeflag: kind, Name: name, Linkname: link, Mode: 0o644}
	}
	for what, tc := range map[string]struct {
		archive []byte
		want    string
	}{
		"no archive":                      {[]byte(strings.Repeat("no archive ", 100)), "the archive cannot be read: archive/tar: invalid tar header"},
		"an empty archive":                {archive(t, nil), "oci-layout is missing; want a layout"},
		"no index":                        {archive(t, good[:1]), "index.json is missing"},
		"no manifest":                     {archive(t, good[:2]), "the blob " + digest(good[2].content) + " is missing"},
		"another version":                 {archive(t, with(0, `{"imageLayoutVersion":"2.0.0"}`)), `oci-layout has the version "2.0.0"; want "1.0.0"`},
		"a huge index":                    {archive(t, with(1, strings.Repeat(" ", oci.MaxManifestBytes+1))), "index.json has more than 4194304 bytes"},
		"two manifests":                   {archive(t, with(1, strings.Replace(good[1].content, `"manifests":[`, `"manifests":[{"mediaType":"a","size":1,"digest":"`+digest("a")+`"},`, 1))), "the index has 2 manifests; want one"},
		"a manifest of Docker":            {archive(t, with(1, strings.Replace(good[1].content, "vnd.oci.image.manifest.v1", "vnd.docker.distribution.manifest.v2", 1))), "the index refers to a manifest of type"},
		"a manifest larger than declared": {archive(t, with(2, good[2].content+" ")), "has more than its"},
		"another manifest":                {archive(t, with(2, strings.Replace(good[2].content, "6000", "7000", 1))), "has the digest"},
		"a symbolic link":                 {archive(t, good, entry(tar.TypeSymlink, "blobs/sha256/0", "/etc/passwd")), `"blobs/sha256/0" in the archive is no regular file`},
		"a hard link":                     {archive(t, good, entry(tar.TypeLink, "blobs/sha256/0", "index.json")), `"blobs/sha256/0" in the archive is no regular file`},
		"a device":                        {archive(t, good, entry(tar.TypeBlock, "disk", "")), `"disk" in the archive is no regular file`},
		"a name that leads out":           {archive(t, good, entry(tar.TypeReg, "../../etc/cron.d/x", "")), `the archive has the name "../../etc/cron.d/x", which leads out of it`},
		"an absolute name":                {archive(t, good, entry(tar.TypeReg, "/etc/cron.d/x", "")), `the archive has the name "/etc/cron.d/x"`},
		"a name twice":                    {archive(t, append(good, file{"./index.json", "{}"})), `the archive has "index.json" twice`},
	} {
		_, err := openTar(tc.archive)
		expect(t, what, err, tc.want)
	}
	whole := archive(t, good)
	for at := 1; at <= len(whole)-1024-512; at += 97 {
		if _, err := openTar(whole[:at]); err == nil {
			t.Errorf("an archive of %d bytes of %d is no error", at, len(whole))
		}
	}
	// A folder in the place of a blob.
	files := fstest.MapFS{}
	for _, each := range good {
		files[each.name] = &fstest.MapFile{Data: []byte(each.content)}
	}
	files[good[4].name].Mode = fs.ModeDevice
	if _, err := oci.Open(files); err == nil || !strings.Contains(err.Error(), "the blob "+digest(good[4].content)+" has") {
		t.Errorf("error %v", err)
	}
}

func TestVerifyEndsAtTheDeclaredSize(t *testing.T) {
	of := v1.Descriptor{Size: 4, Digest: disks("1234")[0].Layer.Digest}
	endless := &counting{}
	_, err := io.ReadAll(oci.Verify(endless, of))
	expect(t, "endless", err, "has more than its 4 bytes")
	if endless.count > 5 {
		t.Errorf("%d bytes were read", endless.count)
	}
}

type counting struct{ count int }

func (c *counting) Read(p []byte) (int, error) {
	c.count += len(p)
	return len(p), nil
}

func FuzzOpen(f *testing.F) {
	f.Add(archive(f, layout(f, nil)))
	f.Add(archive(f, layout(f, func(m *string, _ *[]file) { *m = "{}" })))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := openTar(content)
		if err != nil {
			var malformed *oci.Error
			if !errors.As(err, &malformed) {
				t.Errorf("error %v", err)
			}
			return
		}
		for _, disk := range got.Disks {
			if strings.ContainsAny(disk.Name, "/\\") || disk.Size < 1 {
				t.Errorf("disk %+v", disk)
			}
		}
		if _, err := got.Resource.Claims(); err != nil {
			expect(t, "claims", err, "are the same disk")
		}
		if _, err := got.Resource.Encode(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzDecode is a target of its own, because no random archive has the digests of its content.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(manifest(layer("a", "1Gi", "x"))), []byte(config))
	f.Fuzz(func(t *testing.T, manifest, config []byte) {
		var malformed *oci.Error
		a, err := oci.Decode(manifest)
		if err != nil {
			if !errors.As(err, &malformed) {
				t.Errorf("error %v", err)
			}
			return
		}
		again, err := oci.Encode(a.Kind, config, a.Disks)
		if err != nil && !errors.As(err, &malformed) {
			t.Errorf("error %v", err)
		}
		if err == nil && len(again.Disks) != len(a.Disks) {
			t.Errorf("%d disks, then %d", len(a.Disks), len(again.Disks))
		}
		resource, err := oci.DecodeResource(a.Kind, config)
		if err != nil {
			return
		}
		if _, err := resource.Encode(); err != nil && !errors.As(err, &malformed) {
			t.Error(err)
		}
	})
}
