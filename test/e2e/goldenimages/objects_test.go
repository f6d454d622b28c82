package goldenimages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// fromSource returns a GoldenImage with this source and these fields of its spec, in YAML flow style.
func fromSource(named, source, fields string) string {
	return fmt.Sprintf(`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: GoldenImage, metadata: {name: %s}, spec: {source: %s, storage: {size: 1Gi}%s}}`, named, source, fields)
}

// TestAClaimIsTheSource replaces the claim that an image comes from, as a user with the role edit.
func TestAClaimIsTheSource(t *testing.T) {
	own := namespace(t)
	must(t, own, fromSource("windows", "{pvc: {name: uploaded}}", ", retention: Delete, channels: [{name: stable, promote: {manual: true}}]"), "create", "-f", "-")
	const missing = "spec.source.pvc: PersistentVolumeClaim "
	becomes(t, own, "windows", "UpToDate", "False CheckFailed: "+missing+own+"/uploaded does not exist")
	uploads := func() string {
		t.Helper()
		filled(t, own, "uploaded")
		return "uid:" + must(t, own, "", "get", "pvc", "uploaded", "-o", "jsonpath={.metadata.uid}")
	}
	removes := func() {
		t.Helper()
		must(t, own, "", "delete", "dv,pvc", "uploaded", "--ignore-not-found", "--timeout=60s")
		vanishes(t, own, "pvc/uploaded")
	}
	first := uploads()
	refresh(t, own, "windows", "first")
	standsFor(t, own, "windows", first)
	standsFor(t, own, "windows-stable", first)
	becomes(t, own, "windows", "UpToDate", "True Latest: DataSource windows stands for "+first)
	has(t, own, "dv/"+volume("windows", first), "{.spec.source.pvc.name}", "uploaded")

	removes()
	refresh(t, own, "windows", "missing")
	becomes(t, own, "windows", "UpToDate", "Unknown CheckFailed: "+missing)
	standsFor(t, own, "windows", first)

	second := uploads()
	refresh(t, own, "windows", "second")
	standsFor(t, own, "windows", second)
	standsFor(t, own, "windows-stable", first)
	uid := must(t, own, "", "get", "pvc", volume("windows", first), "-o", "jsonpath={.metadata.uid}")
	patch(t, own, "windows", fmt.Sprintf(`{"digest": %q}`, first))
	standsFor(t, own, "windows", first)
	becomes(t, own, "windows", "UpToDate", "True Pinned")
	has(t, own, "pvc/"+volume("windows", first), "{.metadata.uid}", uid)
	// CDI would clone the claim that there is under the name of another.
	const other = "uid:00000000-0000-4000-8000-000000000000"
	patch(t, own, "windows", fmt.Sprintf(`{"digest": %q}`, other))
	becomes(t, own, "windows", "UpToDate", "False DigestUnknown: spec.digest: no image has the digest "+other+": take one of status.history")
	standsFor(t, own, "windows", first)
	patch(t, own, "windows", `{"digest": null}`)
	standsFor(t, own, "windows", second)

	must(t, own, "", "delete", "gimg", "windows", "--timeout=60s")
	eventuallyOnly(t, own, "uploaded")
}

// eventuallyOnly waits until a namespace has one claim.
func eventuallyOnly(t *testing.T, own, claim string) {
	t.Helper()
	eventually(t, "there is only the claim "+claim, func() error {
		if got := kubectl(t, own, "", "get", "pvc", "-o", "jsonpath={.items[*].metadata.name}"); got.Stdout != claim {
			return fmt.Errorf("there are %s%s", got.Stdout, got.Stderr)
		}
		return nil
	})
}

// imageStreams is a definition of the kind ImageStream, which stands in for that of OpenShift: its controllers are not here, so that the test writes
// the status.
const imageStreams = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: imagestreams.image.openshift.io,
    annotations: {api-approved.kubernetes.io: unapproved}},
  spec: {group: image.openshift.io, scope: Namespaced, names: {kind: ImageStream, plural: imagestreams},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

func TestAnImageStreamIsTheSource(t *testing.T) {
	own := namespace(t)
	first, second := push(t, "stream/fedora", "first"), push(t, "stream/fedora", "second")
	must(t, own, fromSource("fedora", "{registry: {imageStream: os, tag: stable}}", ""), "create", "-f", "-")
	const of = "False CheckFailed: spec.source.registry.imageStream: "
	becomes(t, own, "fedora", "UpToDate", of+"the cluster has no ImageStreams, because it is not OpenShift: use spec.source.registry.url")
	asAdmin(t, own, imageStreams, "apply", "-f", "-")
	t.Cleanup(func() { asAdmin(t, own, "", "delete", "crd", "imagestreams.image.openshift.io") })
	eventually(t, "ImageStreams are served", func() error {
		refresh(t, own, "fedora", time.Now().Format(time.RFC3339Nano))
		if got := condition(get(t, own, "fedora"), "UpToDate"); !strings.HasPrefix(got, of+"ImageStream "+own+"/os does not exist") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	moves := func(digests ...string) {
		t.Helper()
		var items []string
		for _, digest := range digests {
			items = append(items, fmt.Sprintf("{image: %q, dockerImageReference: %q}", digest, images+"/stream/fedora@"+digest))
		}
		asAdmin(t, own, fmt.Sprintf(`{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: os}, status: {tags: [{tag: other}, {tag: stable, items: [%s]}]}}`, strings.Join(items, ", ")), "apply", "-f", "-")
		refresh(t, own, "fedora", fmt.Sprint(len(digests)))
	}
	moves()
	becomes(t, own, "fedora", "UpToDate", of+"ImageStream "+own+"/os has no image for tag stable")
	imports := func(digest string) {
		t.Helper()
		standsFor(t, own, "fedora", digest)
		has(t, own, "dv/"+volume("fedora", digest), "{.spec.source.registry.url} {.spec.source.registry.pullMethod}", "docker://"+images+"/stream/fedora@"+digest+" node")
	}
	moves(first)
	imports(first)
	becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+first+" (tag stable)")
	moves(second, first)
	imports(second)
	patch(t, own, "fedora", fmt.Sprintf(`{"digest": %q}`, first))
	standsFor(t, own, "fedora", first)
	has(t, own, "dataimportcron/fedora", `{.metadata.annotations.cdi\.kubevirt\.io/storage\.import\.imageStreamDockerRef}`, images+"/stream/fedora@"+first)
	becomes(t, own, "fedora", "UpToDate", "True Pinned")
}
