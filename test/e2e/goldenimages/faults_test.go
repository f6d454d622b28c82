package goldenimages_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/controlplane/kubelet"
	"github.com/vmstencil/stencil/test/gen"
)

// filled imports a volume of this name, without a GoldenImage.
func filled(t *testing.T, namespace, name string) {
	t.Helper()
	must(t, namespace, gen.Manifest(gen.DataVolume(name, `{http: {url: "http://images.example/by-hand.qcow2"}}`)), "create", "-f", "-")
	has(t, namespace, "dv/"+name, "{.status.phase}", "Succeeded")
}

// dataSource creates a DataSource of a claim, as a user would.
func dataSource(t *testing.T, namespace, name, claim, annotations string) {
	t.Helper()
	must(t, namespace, fmt.Sprintf(`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataSource, metadata: {name: %s, annotations: {%s}},
  spec: {source: {pvc: {name: %s, namespace: %s}}}}`, name, annotations, claim, namespace), "create", "-f", "-")
}

// has waits until a JSONPath of an object has a value.
func has(t *testing.T, namespace, object, path, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s of %s is %q", path, object, want), func() error {
		got := kubectl(t, namespace, "", "get", object, "-o", "jsonpath="+path)
		if got.Code != 0 || got.Stdout != want {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
}

// vanishes waits until an object does not exist.
func vanishes(t *testing.T, namespace, object string) {
	t.Helper()
	eventually(t, object+" is gone", func() error {
		if got := kubectl(t, namespace, "", "get", object, "--ignore-not-found", "-o", "yaml"); got.Code != 0 || got.Stdout != "" {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
}

// volume is the name of the volume that an image is imported into.
func volume(dataSource, digest string) string {
	_, digits, _ := strings.Cut(digest, ":")
	return dataSource + "-" + digits[:12]
}

const ready = `{.status.conditions[?(@.type=="Ready")].status}`

func TestAnImportThatFailsLeavesTheOlderImage(t *testing.T) {
	own := namespace(t)
	first := push(t, "failing/fedora", "latest")
	must(t, own, manifest("fedora", "failing/fedora", ""), "create", "-f", "-")
	standsFor(t, own, "fedora", first)
	recover := stage.Plane.Nodes().When(kubelet.Rule{Namespace: own, Prefix: "importer-", Fail: "Unable to process data: 404 Not Found"})
	defer recover()
	second := push(t, "failing/fedora", "latest")
	refresh(t, own, "fedora", "second")
	image := becomes(t, own, "fedora", "Importing", "True ImportFailed: "+second+" into "+volume("fedora", second)+": ")
	for _, kind := range []string{"Importing", "UpToDate"} {
		if got := condition(image, kind); !strings.Contains(got, "404 Not Found") {
			t.Errorf("%s is %s", kind, got)
		}
	}
	becomes(t, own, "fedora", "UpToDate", "False ImportFailed: ")
	standsFor(t, own, "fedora", first)
	third := push(t, "failing/fedora", "latest")
	refresh(t, own, "fedora", "third")
	becomes(t, own, "fedora", "Importing", "True ImportFailed: "+third)
	vanishes(t, own, "dv/"+volume("fedora", second))
	standsFor(t, own, "fedora", first)
	recover()
	standsFor(t, own, "fedora", third)
	image = becomes(t, own, "fedora", "UpToDate", "True Latest")
	if len(image.Status.History) != 2 {
		t.Errorf("history %+v", image.Status.History)
	}
	becomes(t, own, "fedora", "Importing", "False Imported")
}

// TestTheSourceIsChanged changes what CDI does not allow to change in a DataImportCron.
func TestTheSourceIsChanged(t *testing.T) {
	own := namespace(t)
	first, second := push(t, "changed/old", "latest"), push(t, "changed/new", "latest")
	must(t, own, manifest("fedora", "changed/old", ""), "create", "-f", "-")
	standsFor(t, own, "fedora", first)
	patch(t, own, "fedora", fmt.Sprintf(`{"source": {"registry": {"url": "%s/changed/new"}}}`, images))
	standsFor(t, own, "fedora", second)
	has(t, own, "dataimportcron/fedora", "{.spec.template.spec.source.registry.url}", "docker://"+images+"/changed/new")
	must(t, own, "", "get", "pvc", volume("fedora", first))
	uid := must(t, own, "", "get", "pvc", volume("fedora", second), "-o", "jsonpath={.metadata.uid}")
	patch(t, own, "fedora", `{"storage": {"size": "2Gi"}}`)
	has(t, own, "dataimportcron/fedora", "{.spec.template.spec.storage.resources.requests.storage}", "2Gi")
	becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+second)
	has(t, own, "pvc/"+volume("fedora", second), "{.metadata.uid}", uid)
}

func TestADataSourceOfAUserIsTakenOverAndGivenBack(t *testing.T) {
	own := namespace(t)
	first := push(t, "adopted/fedora", "latest")
	filled(t, own, "by-hand")
	dataSource(t, own, "fedora", "by-hand", "")
	has(t, own, "datasource/fedora", ready, "True")
	spec := must(t, own, "", "get", "datasource", "fedora", "-o", "jsonpath={.spec}")
	must(t, own, manifest("fedora", "adopted/fedora", ""), "create", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "Unknown Provided: DataSource fedora exists: to take it over, set spec.adopt to IfNotReady or Always")
	patch(t, own, "fedora", `{"adopt": "IfNotReady"}`)
	becomes(t, own, "fedora", "UpToDate", "Unknown Provided: DataSource fedora exists and is ready: to take it over, set spec.adopt to Always")
	if got := must(t, own, "", "get", "dataimportcron,datasource", "-o", "jsonpath={.items[*].spec}"); got != spec {
		t.Errorf("it is not left alone: %s", got)
	}
	patch(t, own, "fedora", `{"adopt": "Always"}`)
	standsFor(t, own, "fedora", first)
	becomes(t, own, "fedora", "UpToDate", "True Latest")
	becomes(t, own, "fedora", "Adopted", "True Adopted: Taken over: DataSource fedora")
	must(t, own, "", "delete", "gimg", "fedora", "--timeout=60s")
	has(t, own, "datasource/fedora", "{.spec}", spec)
	has(t, own, "datasource/fedora", ready, "True")
	left := must(t, own, "", "get", "datasource", "fedora", "-o", "jsonpath={.metadata.labels} {.metadata.annotations} {.metadata.ownerReferences}")
	for _, of := range []string{"stencil.kubevirt.io", "dataImportCron", "GoldenImage"} {
		if strings.Contains(left, of) {
			t.Errorf("%q is left: %s", of, left)
		}
	}

	dataSource(t, own, "dangling", "missing", "")
	must(t, own, manifest("dangling", "adopted/fedora", ", adopt: IfNotReady, retention: Delete"), "create", "-f", "-")
	standsFor(t, own, "dangling", first)
	must(t, own, "", "delete", "gimg", "dangling", "--timeout=60s")
	has(t, own, "datasource/dangling", "{.spec.source.pvc.name}", "missing")
}

func TestAClaimOfTheNameOfTheDataSourceIsWhatItStandsFor(t *testing.T) {
	own := namespace(t)
	first := push(t, "provided/fedora", "latest")
	filled(t, own, "fedora")
	must(t, own, manifest("fedora", "provided/fedora", ""), "create", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "Unknown Provided: PersistentVolumeClaim fedora exists, so that DataSource fedora stands for it: ")
	has(t, own, "datasource/fedora", ready+"{.spec.source.pvc.name}", "Truefedora")
	patch(t, own, "fedora", `{"adopt": "Always"}`)
	standsFor(t, own, "fedora", first)
	must(t, own, "", "get", "pvc", "fedora")
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	own := namespace(t)
	first := push(t, "others/fedora", "latest")
	t.Run("a DataSource of another operator", func(t *testing.T) {
		dataSource(t, own, "operated", "missing", "operator-sdk/primary-resource: ssp/ssp")
		must(t, own, manifest("operated", "others/fedora", ", adopt: Always"), "create", "-f", "-")
		const conflict = "Conflict: DataSource operated belongs to another operator: it has the annotation operator-sdk/primary-resource"
		becomes(t, own, "operated", "Conflict", "True "+conflict)
		becomes(t, own, "operated", "UpToDate", "False "+conflict)
		must(t, own, "", "delete", "datasource", "operated")
		standsFor(t, own, "operated", first)
		becomes(t, own, "operated", "Conflict", "False NoConflict")
	})
	theirs := func(name, dataSource string) string {
		return fmt.Sprintf(`{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataImportCron,
  metadata: {name: %s, annotations: {cdi.kubevirt.io/storage.import.sourceDesiredDigest: %q}}, spec: {managedDataSource: %s, schedule: "", garbageCollect: Never, retentionPolicy: All,
  template: {spec: {source: {registry: {url: "docker://%s/others/fedora"}}, storage: {resources: {requests: {storage: 1Gi}}}}}}}`, name, first, dataSource, images)
	}
	t.Run("a DataSource of another DataImportCron", func(t *testing.T) {
		asAdmin(t, own, theirs("theirs", "moved"), "create", "-f", "-")
		has(t, own, "datasource/moved", ready, "True")
		must(t, own, manifest("moved", "others/fedora", ", adopt: Always, retention: Delete"), "create", "-f", "-")
		becomes(t, own, "moved", "Conflict", "True Conflict: DataSource moved is moved by DataImportCron theirs")
		must(t, own, "", "delete", "gimg", "moved", "--timeout=60s")
		has(t, own, "datasource/moved", ready+`{.metadata.labels.cdi\.kubevirt\.io/dataImportCron}`, "Truetheirs")
	})
	t.Run("a DataImportCron of the name, and what it imported", func(t *testing.T) {
		asAdmin(t, own, theirs("taken", "other"), "create", "-f", "-")
		has(t, own, "datasource/other", ready, "True")
		must(t, own, manifest("taken", "others/fedora", ", retention: Delete"), "create", "-f", "-")
		becomes(t, own, "taken", "Conflict", "True Conflict: DataImportCron taken exists and was not made for this GoldenImage: delete or rename one of them")
		must(t, own, "", "delete", "gimg", "taken", "--timeout=60s")
		must(t, own, "", "get", "dataimportcron", "taken")
		has(t, own, "pvc/"+volume("other", first), "{.metadata.deletionTimestamp}{.status.phase}", "Bound")
	})
}

//suite:long
func TestARegistryThatIsDown(t *testing.T) {
	own := namespace(t)
	var down atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "no registry today", http.StatusServiceUnavailable)
			return
		}
		http.Redirect(w, r, "http://"+images+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer front.Close()
	address := strings.TrimPrefix(front.URL, "http://")
	first := push(t, "down/fedora", "latest")
	of := func(name string) string {
		return strings.Replace(manifest(name, "down/fedora", `, schedule: {cron: "0 0 1 1 *", window: 0s}`), images, address, 1)
	}
	must(t, own, of("fedora"), "create", "-f", "-")
	standsFor(t, own, "fedora", first)
	before := becomes(t, own, "fedora", "UpToDate", "True Latest")

	down.Store(true)
	second := push(t, "down/fedora", "latest")
	refresh(t, own, "fedora", "1")
	failed := becomes(t, own, "fedora", "UpToDate", "Unknown CheckFailed: reading "+address+"/down/fedora:latest: ")
	if failed.Status.CheckFailures != 1 || !failed.Status.LastCheckTime.Equal(before.Status.LastCheckTime) || !failed.Status.NextCheckTime.Before(before.Status.NextCheckTime) {
		t.Errorf("status %+v", failed.Status)
	}
	refresh(t, own, "fedora", "2")
	has(t, own, "gimg/fedora", "{.status.checkFailures}", "2")
	if again := get(t, own, "fedora").Status.NextCheckTime; again.Sub(failed.Status.NextCheckTime.Time).Seconds() < 59 {
		t.Errorf("the second delay is not longer: %s after %s", again, failed.Status.NextCheckTime)
	}
	standsFor(t, own, "fedora", first)
	must(t, own, of("absent"), "create", "-f", "-")
	becomes(t, own, "absent", "UpToDate", "False CheckFailed: ")

	down.Store(false)
	for _, name := range []string{"fedora", "absent"} {
		refresh(t, own, name, "3")
		standsFor(t, own, name, second)
		recovered := becomes(t, own, name, "UpToDate", "True Latest")
		if recovered.Status.CheckFailures != 0 || recovered.Status.CheckError != "" {
			t.Errorf("status %+v", recovered.Status)
		}
	}
}

func TestCredentialsThatMustNotBeRead(t *testing.T) {
	own := namespace(t)
	push(t, "secret/fedora", "latest")
	for field, resource := range map[string]string{"secretRef": "secrets", "certConfigMap": "configmaps"} {
		name := strings.ToLower(field)
		manifest := strings.Replace(manifest(name, "secret/fedora", ""), "registry: {", "registry: {"+field+": access, ", 1)
		must(t, own, manifest, "create", "-f", "-")
		want := fmt.Sprintf("spec.source.registry.%s: %s %s/access must not be read: add it to the chart's value goldenImages.readable", field, resource, own)
		if got := becomes(t, own, name, "UpToDate", "False CheckFailed: "); got.Status.CheckError != want {
			t.Errorf("got  %s\nwant %s", got.Status.CheckError, want)
		}
	}
}

func TestASuspendedImage(t *testing.T) {
	own := namespace(t)
	first := push(t, "suspended/fedora", "latest")
	must(t, own, manifest("fedora", "suspended/fedora", ", suspended: true"), "create", "-f", "-")
	image := becomes(t, own, "fedora", "UpToDate", "Unknown Suspended: spec.suspended stops checks")
	if image.Status.LastCheckTime != nil || image.Status.NextCheckTime != nil {
		t.Errorf("status %+v", image.Status)
	}
	patch(t, own, "fedora", `{"suspended": false}`)
	standsFor(t, own, "fedora", first)
	patch(t, own, "fedora", `{"suspended": true}`)
	becomes(t, own, "fedora", "UpToDate", "Unknown Suspended: spec.suspended stops checks; DataSource fedora stands for "+first)
	second := push(t, "suspended/fedora", "latest")
	refresh(t, own, "fedora", "1")
	patch(t, own, "fedora", `{"importsToKeep": 2}`)
	has(t, own, "gimg/fedora", "{.status.observedGeneration}", must(t, own, "", "get", "gimg", "fedora", "-o", "jsonpath={.metadata.generation}"))
	standsFor(t, own, "fedora", first)
	if image = get(t, own, "fedora"); image.Status.NextCheckTime != nil || image.Status.Architectures[0].Available.Digest != first {
		t.Errorf("status %+v", image.Status)
	}
	patch(t, own, "fedora", `{"suspended": false}`)
	standsFor(t, own, "fedora", second)
}

// TestTheDefaultStorageClassChanges lets CDI import again, for another class.
//
//suite:long
func TestTheDefaultStorageClassChanges(t *testing.T) {
	own := namespace(t)
	first := push(t, "class/fedora", "latest")
	must(t, own, manifest("fedora", "class/fedora", ""), "create", "-f", "-")
	becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+first)
	prefer := func(class, not string) {
		for class, is := range map[string]string{class: "true", not: "false"} {
			asAdmin(t, "", "", "annotate", "storageclass", class, "storageclass.kubernetes.io/is-default-class="+is, "--overwrite")
		}
	}
	prefer(controlplane.StorageClassWaiting, controlplane.StorageClass)
	defer prefer(controlplane.StorageClass, controlplane.StorageClassWaiting)
	second := push(t, "class/fedora", "latest")
	refresh(t, own, "fedora", "1")
	standsFor(t, own, "fedora", second)
	// CDI deletes the first image for the other class, and imports it again only if that was before the second was found.
	has(t, own, "pvc/"+volume("fedora", second), "{.spec.storageClassName} {.status.phase}", controlplane.StorageClassWaiting+" Bound")
	becomes(t, own, "fedora", "UpToDate", "True Latest: DataSource fedora stands for "+second)
}
