package definitions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// fullImage uses every field.
const fullImage = `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: GoldenImage
metadata: {name: full, namespace: default}
spec:
  source:
    registry:
      url: registry.example.com:5000/disks/fedora
      tags: {semver: ">=41 <43", pattern: '\d+', exclude: "40"}
      pullMethod: pod
      secretRef: registry
      certConfigMap: authorities
  architectures: [amd64, arm64]
  schedule: {cron: "0 2 * * *", window: 90m0s}
  storage: {size: 10Gi, storageClassName: fast, accessModes: [ReadWriteMany]}
  importsToKeep: 5
  retention: Delete
  dataSource: fedora-latest
  channels:
  - {name: slow, promote: {after: 24h0m0s, test: {templateRef: {name: smoke}}}}
  - {name: stable, promote: {manual: true}}
  - {name: old, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
  defaults: {instancetype: u1.medium, instancetypeKind: VirtualMachineClusterInstancetype, preference: fedora, preferenceKind: VirtualMachineClusterPreference}
  staleAfter: 720h0m0s
  adopt: IfNotReady
  suspended: true
  verify:
    publicKeys:
    - |
      -----BEGIN PUBLIC KEY-----
      MCowBQYDK2VwAyEAAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
      -----END PUBLIC KEY-----
`

func TestAGoldenImageIsStoredAsItIsWritten(t *testing.T) {
	must(t, fullImage, "apply", "--server-side", "-f", "-")
	got := kubectl(t, "", "get", "gimg", "full", "-n", "default", "-o", "json")
	var stored, written struct{ Spec any }
	if err := json.Unmarshal([]byte(got.Stdout), &stored); err != nil {
		t.Fatal(err, got.Stderr)
	}
	if err := yaml.Unmarshal([]byte(fullImage), &written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written.Spec, stored.Spec); diff != "" {
		t.Errorf("spec (-written +stored):\n%s", diff)
	}
	if err := yaml.UnmarshalStrict([]byte(got.Stdout), &v1alpha1.GoldenImage{}); err != nil {
		t.Errorf("the types do not have every field: %v", err)
	}
	for _, patch := range []string{`{"spec": {"dataSource": "other"}}`, `{"spec": {"dataSource": null}}`} {
		got = kubectl(t, "", "patch", "gimg", "full", "-n", "default", "--type=merge", "-p", patch)
		if got.Code == 0 || !strings.Contains(got.Stderr, "dataSource cannot be changed: create another GoldenImage") {
			t.Errorf("%s: %s%s", patch, got.Stdout, got.Stderr)
		}
	}
}

// TestFilesAreStoredAsTheyAreWritten has every field of the sources that are files, and every kind of digest.
func TestFilesAreStoredAsTheyAreWritten(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	for name, spec := range map[string]string{
		"checksum":      `{"source":{"http":{"url":"https://a.example/a.qcow2?b=c","checksum":"sha512:` + hex + hex + `","secretRef":"a","certConfigMap":"b"}},"digest":"sha512:` + hex + hex + `"`,
		"checksum-file": `{"source":{"http":{"url":"http://a.example/a.qcow2","checksumFile":"https://b.example/SHA256SUMS"}},"digest":"version:` + hex + `"`,
		"object":        `{"source":{"s3":{"url":"https://s3.a.example/bucket/images/a.raw.xz","secretRef":"a","certConfigMap":"b"}},"digest":"uid:01234567-89ab-cdef-0123-456789abcdef","architectures":["arm64"]`,
	} {
		object := `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"GoldenImage","metadata":{"name":"` + name + `","namespace":"default"},"spec":` + spec + `,"storage":{"size":"1Gi"}}}`
		must(t, object, "create", "-f", "-")
		got := kubectl(t, "", "get", "gimg", name, "-n", "default", "-o", "jsonpath={.spec}")
		var stored, written struct{ Source, Digest any }
		if err := json.Unmarshal([]byte(got.Stdout), &stored); err != nil {
			t.Fatal(err, got.Stderr)
		}
		if err := json.Unmarshal([]byte(spec+`}`), &written); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(written, stored); diff != "" {
			t.Errorf("%s (-written +stored):\n%s", name, diff)
		}
	}
}

func TestTheLeastGoldenImageHasDefaults(t *testing.T) {
	const least = `{apiVersion: stencil.kubevirt.io/v1alpha1, kind: GoldenImage, metadata: {name: least, namespace: default},
		spec: {source: {registry: {url: quay.io/containerdisks/fedora}}, storage: {size: 10Gi}}}`
	must(t, least, "apply", "-f", "-")
	got := kubectl(t, "", "get", "gimg", "least", "-n", "default", "-o", "jsonpath={.spec}")
	want := `{"adopt":"Never","importsToKeep":3,"retention":"Keep","schedule":{"cron":"0 */12 * * *","window":"4h"},` +
		`"source":{"registry":{"pullMethod":"pod","url":"quay.io/containerdisks/fedora"}},"storage":{"size":"10Gi"}}`
	if diff := cmp.Diff(want, got.Stdout); diff != "" {
		t.Errorf("spec (-want +got):\n%s\n%s", diff, got.Stderr)
	}
}

func TestWhatTheAPIServerRefusesOfAGoldenImage(t *testing.T) {
	const digest = `"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`
	from := func(registry string) string {
		return `{"source":{"registry":{"url":"quay.io/a/b",` + registry + `}},"storage":{"size":"1Gi"}}`
	}
	image := func(url string) string {
		return `{"source":{"registry":{"url":"` + url + `"}},"storage":{"size":"1Gi"}}`
	}
	file := func(kind, source, more string) string {
		return `{"source":{"` + kind + `":{` + source + `}},"storage":{"size":"1Gi"}` + more + `}`
	}
	with := func(more string) string {
		return `{"source":{"registry":{"url":"quay.io/a/b"}},"storage":{"size":"1Gi"},` + more + `}`
	}
	long := `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"GoldenImage","metadata":{"name":"` + strings.Repeat("a", 41) + `","namespace":"default"},"spec":` + with(`"adopt":"Never"`) + `}`
	if got := kubectl(t, long, "create", "--dry-run=server", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, "metadata.name may have 63 characters with spec.dataSource, and 40 without") {
		t.Errorf("a name of 41 characters: %s%s", got.Stdout, got.Stderr)
	}
	for _, tc := range []struct{ name, spec, want string }{
		{"no source", `{"source":{},"storage":{"size":"1Gi"}}`, "exactly one of registry, http, s3 and pvc must be given"},
		{"two sources", `{"source":{"pvc":{"name":"a"},"registry":{"url":"quay.io/a/b"}},"storage":{"size":"1Gi"}}`, "exactly one of registry, http, s3 and pvc must be given"},
		{"a claim of the name of the DataSource", `{"source":{"pvc":{"name":"refused"}},"storage":{"size":"1Gi"}}`, "the claim must have another name than the DataSource"},
		{"a claim for two architectures", `{"source":{"pvc":{"name":"a"}},"storage":{"size":"1Gi"},"architectures":["amd64","arm64"]}`, "this source has one image: make one GoldenImage per architecture"},
		{"an image stream for two architectures", `{"source":{"registry":{"imageStream":"a"}},"storage":{"size":"1Gi"},"architectures":["amd64","arm64"]}`, "this source has one image: make one GoldenImage per architecture"},
		{"an image stream with a URL", from(`"imageStream":"a"`), "exactly one of url and imageStream must be given"},
		{"a URL with a tag", image("quay.io/a/b:41"), "url is the image without tag and digest: the tag belongs in tag, a digest in spec.digest"},
		{"a URL with a port and a tag", image("docker://registry.example:5000/a/b:41"), "url is the image without tag and digest"},
		{"a URL with a digest", image("quay.io/a/b@sha256:12"), "url is the image without tag and digest"},
		{"a URL with another scheme", image("https://quay.io:443/a/b"), "url must be HOST/REPOSITORY, such as quay.io/containerdisks/fedora; docker:// before it is allowed, and the repository is in lower case"},
		{"a URL in capitals", image("quay.io/A/b"), "url must be HOST/REPOSITORY"},
		{"a URL without host", image("fedora"), "url must be HOST/REPOSITORY"},
		{"neither an image stream nor a URL", `{"source":{"registry":{"tag":"41"}},"storage":{"size":"1Gi"}}`, "exactly one of url and imageStream must be given"},
		{"an image stream with tags", `{"source":{"registry":{"imageStream":"a","tags":{"semver":"41"}}},"storage":{"size":"1Gi"}}`, "an image stream has a tag only"},
		{"an image stream with credentials", `{"source":{"registry":{"imageStream":"a","secretRef":"b"}},"storage":{"size":"1Gi"}}`, "an image stream has a tag only"},
		{"a signature of a claim", `{"source":{"pvc":{"name":"a"}},"storage":{"size":"1Gi"},"verify":{"publicKeys":["-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----"]}}`, "only images of source.registry.url have signatures"},
		{"a registry and a file", `{"source":{"registry":{"url":"quay.io/a/b"},"http":{"url":"https://a.example/a.qcow2"}},"storage":{"size":"1Gi"}}`, "exactly one of registry, http, s3 and pvc must be given"},
		{"a file for two architectures", file("http", `"url":"https://a.example/a"`, `,"architectures":["amd64","arm64"]`), "spec.architectures: Invalid value: this source has one image: make one GoldenImage per architecture"},
		{"an object for two architectures", file("s3", `"url":"https://a.example/a/b","secretRef":"a"`, `,"architectures":["amd64","arm64"]`), "this source has one image: make one GoldenImage per architecture"},
		{"a checksum by SHA-1", file("http", `"url":"https://a.example/a","checksum":"sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709"`, ""), `spec.source.http.checksum: Invalid value: "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709": checksum must be sha256: with 64 or sha512: with 128 hexadecimal digits in lower case; sha1 and md5 are too weak`},
		{"a checksum by MD5", file("http", `"url":"https://a.example/a","checksum":"md5:d41d8cd98f00b204e9800998ecf8427e"`, ""), "sha1 and md5 are too weak"},
		{"a checksum and a file of checksums", file("http", `"url":"https://a.example/a","checksumFile":"https://a.example/SHA256SUMS","checksum":`+digest, ""), "spec.source.http.checksumFile: Invalid value: only one of checksum and checksumFile may be given"},
		{"a password in a URL", file("http", `"url":"https://user:secret@a.example/a"`, ""), "a URL must not contain a username or a password: use secretRef"},
		{"a password in the URL of checksums", file("http", `"url":"https://a.example/a","checksumFile":"https://user@a.example/a"`, ""), "a URL must not contain a username or a password: use secretRef"},
		{"a password in the URL of an object", file("s3", `"url":"https://user:secret@a.example/a/b","secretRef":"a"`, ""), "a URL must not contain a username or a password: use secretRef"},
		{"credentials in plain text", file("http", `"url":"http://a.example/a","secretRef":"a"`, ""), "spec.source.http.url: Invalid value: secretRef and certConfigMap need a URL with https"},
		{"authorities without TLS", file("s3", `"url":"http://a.example/a/b","secretRef":"a","certConfigMap":"a"`, ""), "spec.source.s3.url: Invalid value: certConfigMap needs a URL with https"},
		{"a URL that is no file", file("http", `"url":"https://a.example/folder/"`, ""), "spec.source.http.url: Invalid value"},
		{"a file of another protocol", file("http", `"url":"file:///etc/passwd"`, ""), "spec.source.http.url: Invalid value"},
		{"a bucket without an object", file("s3", `"url":"https://a.example/bucket","secretRef":"a"`, ""), "spec.source.s3.url: Invalid value"},
		{"an object without credentials", file("s3", `"url":"https://a.example/a/b"`, ""), "spec.source.s3.secretRef: Required value"},
		{"no storage", `{"source":{"registry":{"url":"quay.io/a/b"}}}`, "spec.storage: Required value"},
		{"a URL with a tag", `{"source":{"registry":{"url":"quay.io/a/b:41"}},"storage":{"size":"1Gi"}}`, "spec.source.registry.url: Invalid value"},
		{"a URL without a registry", `{"source":{"registry":{"url":"fedora"}},"storage":{"size":"1Gi"}}`, "spec.source.registry.url: Invalid value"},
		{"a URL of another kind", `{"source":{"registry":{"url":"https://quay.io/a/b"}},"storage":{"size":"1Gi"}}`, "spec.source.registry.url: Invalid value"},
		{"tag and tags", from(`"tag":"41","tags":{"semver":">40"}`), "spec.source.registry.tag: Invalid value: only one of tag and tags may be given"},
		{"tags of nothing", from(`"tags":{"exclude":"a"}`), "at least one of semver and pattern must be given"},
		{"a tag that is none", from(`"tag":"a b"`), "spec.source.registry.tag: Invalid value"},
		{"credentials for a node", from(`"secretRef":"a","pullMethod":"node"`), "secretRef needs pullMethod pod: a node pulls with its own credentials"},
		{"an architecture that there is not", with(`"architectures":["x86"]`), "spec.architectures[0]: Unsupported value"},
		{"an architecture twice", with(`"architectures":["amd64","amd64"]`), "Duplicate value"},
		{"a digest that is none", with(`"digest":"sha256:01"`), "spec.digest: Invalid value"},
		{"a window of months", with(`"schedule":{"window":"1000h"}`), "window must be 0s to 168h"},
		{"nothing to keep", with(`"importsToKeep":0`), "spec.importsToKeep: Invalid value"},
		{"an adoption that there is not", with(`"adopt":"Sometimes"`), "spec.adopt: Unsupported value"},
		{"a retention that there is not", with(`"retention":"Recycle"`), "spec.retention: Unsupported value"},
		{"stale at once", with(`"staleAfter":"0s"`), "staleAfter must be at least 1s"},
		{"no duration", with(`"staleAfter":"a month"`), "spec.staleAfter"},
		{"a name that is too long", with(`"dataSource":"` + strings.Repeat("a", 41) + `"`), "spec.dataSource: Too long"},
		{"two channels of a name", with(`"channels":[{"name":"a"},{"name":"a"}]`), "Duplicate value"},
		{"a channel named like an architecture", with(`"channels":[{"name":"arm64"}]`), "the name of an architecture must not be the name of a channel"},
		{"a pinned channel that follows", with(`"channels":[{"name":"a","digest":` + digest + `,"promote":{"manual":true}}]`), "a channel that is pinned by digest follows nothing, so it must not have promote"},
		{"a promotion at no time", with(`"channels":[{"name":"a","promote":{}}]`), "at least one of after, manual and test must be given"},
		{"a promotion at two times", with(`"channels":[{"name":"a","promote":{"manual":true,"after":"1h"}}]`), "only one of after and manual may be given"},
		{"a test with nothing", with(`"channels":[{"name":"a","promote":{"test":{}}}]`), "spec.channels[0].promote.test.templateRef: Required value"},
		{"no key", with(`"verify":{"publicKeys":[]}`), "spec.verify.publicKeys: Invalid value: 0"},
		{"a private key", with(`"verify":{"publicKeys":["-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----"]}`), "spec.verify.publicKeys[0]: Invalid value"},
		{"a kind of nothing", with(`"defaults":{"preferenceKind":"VirtualMachinePreference"}`), "preferenceKind needs preference"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := `{"apiVersion":"stencil.kubevirt.io/v1alpha1","kind":"GoldenImage","metadata":{"name":"refused","namespace":"default"},"spec":` + tc.spec + `}`
			if got := kubectl(t, object, "create", "--dry-run=server", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, tc.want) {
				t.Errorf("got exit code %d and %q, want a refusal with %q", got.Code, got.Stderr, tc.want)
			}
		})
	}
}
