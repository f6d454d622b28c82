package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

const (
	imagesAt    = "/apis/stencil.kubevirt.io/v1alpha1/namespaces/golden/goldenimages"
	allImagesAt = "/apis/stencil.kubevirt.io/v1alpha1/goldenimages"
	fedoraAt    = imagesAt + "/fedora"
)

var refreshAnnotation = regexp.MustCompile(`"stencil.kubevirt.io/refresh":"([^"]+)"`)

// Digests of images, the oldest first. The last two begin alike.
var (
	first  = "sha256:" + strings.Repeat("1a", 32)
	second = "sha256:" + strings.Repeat("3c", 32)
	third  = "sha256:" + strings.Repeat("3c", 8) + strings.Repeat("5e", 24)
)

// imported returns an image of the history.
func imported(digest, tag string) v1alpha1.ImportedImage {
	day := map[string]int{first: 1, second: 2, third: 3}[digest]
	return v1alpha1.ImportedImage{Digest: digest, Tag: tag, ImportedAt: metav1.Date(2026, 11, day, 8, 30, 0, 0, time.UTC), Volume: "fedora-" + digest[7:19]}
}

// fedora returns a GoldenImage in JSON that stands for the newest of three images. Its history is not in the order of time.
func fedora(set ...func(*v1alpha1.GoldenImage)) string {
	newest := imported(third, "42")
	image := &v1alpha1.GoldenImage{}
	image.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("GoldenImage"))
	image.Namespace, image.Name, image.Generation, image.ResourceVersion = "golden", "fedora", 2, "7"
	image.Status = v1alpha1.GoldenImageStatus{
		DataSource:    "fedora",
		Architectures: []v1alpha1.GoldenImageArchitecture{{DataSource: "fedora", Current: &newest}},
		History:       []v1alpha1.ImportedImage{imported(second, "41"), newest, imported(first, "")},
	}
	condition("UpToDate True Latest: DataSource fedora stands for " + third + " (tag 42)")(image)
	for _, one := range set {
		one(image)
	}
	raw, err := json.Marshal(image)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// condition sets a condition TYPE STATUS REASON: MESSAGE of the current generation.
func condition(text string) func(*v1alpha1.GoldenImage) {
	head, message, _ := strings.Cut(text, ": ")
	words := strings.Fields(head)
	return func(image *v1alpha1.GoldenImage) {
		meta.SetStatusCondition(&image.Status.Conditions, metav1.Condition{
			Type: words[0], Status: metav1.ConditionStatus(words[1]), Reason: words[2], Message: message, ObservedGeneration: image.Generation,
			LastTransitionTime: metav1.Date(2026, 11, 3, 8, 30, 0, 0, time.UTC),
		})
	}
}

func channels(image *v1alpha1.GoldenImage) {
	image.Spec.Channels = []v1alpha1.GoldenImageChannel{
		{Name: "next"},
		{Name: "slow", Promote: &v1alpha1.GoldenImagePromotion{After: &metav1.Duration{Duration: 24 * time.Hour}}},
		{Name: "stable", Promote: &v1alpha1.GoldenImagePromotion{Manual: true}},
		{Name: "old", Digest: first},
	}
	for i, digest := range []string{third, second, second, first} {
		name := image.Spec.Channels[i].Name
		image.Status.Channels = append(image.Status.Channels, v1alpha1.GoldenImageChannelStatus{Name: name, DataSource: "fedora-" + name, Digest: digest})
	}
}

func channelStandsFor(name, digest string) func(*v1alpha1.GoldenImage) {
	return func(image *v1alpha1.GoldenImage) {
		for i := range image.Status.Channels {
			if image.Status.Channels[i].Name == name {
				image.Status.Channels[i].Digest = digest
			}
		}
	}
}

func standsFor(digest string) func(*v1alpha1.GoldenImage) {
	return func(image *v1alpha1.GoldenImage) {
		now := imported(digest, "")
		image.Status.Architectures[0].Current = &now
	}
}

func importedAgo(age time.Duration) func(*v1alpha1.GoldenImage) {
	return func(image *v1alpha1.GoldenImage) {
		image.Status.Architectures[0].Current.ImportedAt = metav1.NewTime(time.Now().Add(-age))
	}
}

func pinnedTo(digest string) func(*v1alpha1.GoldenImage) {
	return func(image *v1alpha1.GoldenImage) { image.Spec.Digest = digest }
}

// changed is the image after its spec was changed; the conditions are those of before.
func changed(image *v1alpha1.GoldenImage) { image.Generation++ }

func suspended(image *v1alpha1.GoldenImage) { image.Spec.Suspended = true }

func refreshed(image *v1alpha1.GoldenImage) { image.Status.Refreshed = "NOW" }

func checkFailed(image *v1alpha1.GoldenImage) {
	image.Status.CheckError = "reading quay.io/containerdisks/fedora: the registry denies access"
}

func twoArchitectures(image *v1alpha1.GoldenImage) {
	image.Spec.Architectures = []string{"amd64", "arm64"}
	newest := *image.Status.Architectures[0].Current
	newest.Architecture = "amd64"
	image.Status.Architectures = []v1alpha1.GoldenImageArchitecture{{Name: "amd64", DataSource: "fedora-amd64", Current: &newest}, {Name: "arm64", DataSource: "fedora-arm64"}}
	image.Status.Channels = []v1alpha1.GoldenImageChannelStatus{{Name: "next", Architecture: "amd64", Digest: second}, {Name: "next", Architecture: "arm64"}}
	image.Status.History[0].Architecture, image.Status.History[1].Architecture, image.Status.History[2].Architecture = "amd64", "amd64", "arm64"
}

// indexed has two architectures whose second and third index are complete. The newest image of amd64 has the second and the third.
func indexed(image *v1alpha1.GoldenImage) {
	twoArchitectures(image)
	index := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	of := func(architecture, digest, tag string, indexes ...string) v1alpha1.ImportedImage {
		one := imported(digest, tag)
		one.Architecture, one.Volume, one.Indexes = architecture, "fedora-"+architecture+"-"+digest[7:19], indexes
		return one
	}
	image.Status.History = []v1alpha1.ImportedImage{
		of("amd64", third, "41", index("d"), index("c")), of("arm64", third, "42", index("d")),
		of("arm64", second, "41", index("c")), of("amd64", first, "40", index("b")),
	}
	image.Status.Architectures[0].Current, image.Status.Architectures[1].Current = &image.Status.History[0], &image.Status.History[1]
}

func used(templates, vms int32) func(*v1alpha1.GoldenImage) {
	return func(image *v1alpha1.GoldenImage) {
		image.Status.Usage = &v1alpha1.GoldenImageUsage{Templates: templates, VirtualMachines: &vms}
	}
}

func fresh(image *v1alpha1.GoldenImage) {
	image.Generation, image.Status = 1, v1alpha1.GoldenImageStatus{}
}

// is are the responses for the image of the tests.
func is(images ...string) map[string][]string {
	return map[string][]string{"GET " + fedoraAt: images, "PATCH " + fedoraAt: {images[0]}}
}

// imageCommands are lines after `stencilctl image`, with the responses of the cluster as in clustered.
var imageCommands = map[string]struct {
	line    string
	answers map[string][]string
}{
	"list": {"list -n golden", map[string][]string{"GET " + imagesAt: {fmt.Sprintf(`{"items": [%s, %s, %s]}`,
		fedora(channels, used(3, 41), importedAgo(26*time.Hour)), fedora(fresh, func(i *v1alpha1.GoldenImage) { i.Name = "debian" }),
		fedora(twoArchitectures, importedAgo(50*time.Hour), func(i *v1alpha1.GoldenImage) { i.Name = "many" }))}}},
	"list, all namespaces": {"list -A", map[string][]string{"GET " + allImagesAt: {`{"items": [` + fedora(importedAgo(5*time.Hour)) + `]}`}}},
	"list, as YAML":        {"list -n golden -o yaml", map[string][]string{"GET " + imagesAt: {`{"items": [` + fedora() + `]}`}}},
	"list, as JSON":        {"list -n golden -o json", map[string][]string{"GET " + imagesAt: {`{"items": []}`}}},
	"list, names":          {"list -n golden -o name", map[string][]string{"GET " + imagesAt: {`{"items": [` + fedora() + `]}`}}},
	"list, none":           {"list -n golden", map[string][]string{"GET " + imagesAt: {`{"items": []}`}}},
	"list, none anywhere":  {"list -A", map[string][]string{"GET " + allImagesAt: {`{"items": []}`}}},
	"list, not served":     {"list -n golden", nil},
	"list, forbidden":      {"list -n golden", map[string][]string{"GET " + imagesAt: {respondWithError(403, "Forbidden", "ada cannot list them")}}},
	"list, a name":         {"list fedora", nil},

	"history":               {"history golden/fedora", is(fedora(channels))},
	"history, as JSON":      {"history fedora -n golden -o json", is(fedora(channels))},
	"history, as YAML":      {"history fedora -n golden -o yaml", is(fedora(fresh))},
	"history, none":         {"history fedora -n golden", is(fedora(fresh))},
	"history, two":          {"history fedora -n golden", is(fedora(twoArchitectures))},
	"history, indexes":      {"history fedora -n golden", is(fedora(indexed))},
	"history, no image":     {"history fedora -n golden", nil},
	"history, no name":      {"history a/b/c", nil},
	"history, forbidden":    {"history fedora -n golden", map[string][]string{"GET " + fedoraAt: {respondWithError(403, "Forbidden", "ada cannot get it")}}},
	"history, unknown form": {"history fedora -o name", nil},

	"pin":                     {"pin fedora 41 -n golden", is(fedora())},
	"pin, a digest":           {"pin golden/fedora " + first, is(fedora())},
	"pin, part of a digest":   {"pin fedora 1a1a1a -n golden", is(fedora())},
	"pin, not imported":       {"pin fedora sha256:" + strings.Repeat("9", 64) + " -n golden", is(fedora())},
	"pin, a channel":          {"pin fedora sha256:1 -n golden --channel slow", is(fedora(channels))},
	"pin, ambiguous":          {"pin fedora 3c3c3c3c -n golden", is(fedora())},
	"pin, a tag twice":        {"pin fedora latest -n golden", is(fedora(func(i *v1alpha1.GoldenImage) { i.Status.History[0].Tag, i.Status.History[1].Tag = "latest", "latest" }))},
	"pin, no such tag":        {"pin fedora 3c -n golden", is(fedora())},
	"pin, no history":         {"pin fedora 41 -n golden", is(fedora(fresh))},
	"pin, no such channel":    {"pin fedora 41 -n golden --channel beta", is(fedora(channels))},
	"pin, no channel":         {"pin fedora 41 -n golden --channel beta", is(fedora())},
	"pin, a manual channel":   {"pin fedora 41 -n golden --channel stable", is(fedora(channels))},
	"pin, channel not there":  {"pin fedora sha256:" + strings.Repeat("9", 64) + " -n golden --channel next", is(fedora(channels))},
	"pin, two architectures":  {"pin fedora 41 -n golden", is(fedora(twoArchitectures))},
	"pin, a claim's UID":      {"pin fedora 1a1a1a1a-1 -n golden", is(fedora(func(i *v1alpha1.GoldenImage) { i.Status.History[0].Digest = "uid:1a1a1a1a-1a1a-1a1a-1a1a-1a1a1a1a1a1a" }))},
	"pin, an index":           {"pin fedora cccccc -n golden", is(fedora(indexed))},
	"pin, index incomplete":   {"pin fedora 40 -n golden", is(fedora(indexed))},
	"pin, nothing":            {"pin fedora", nil},
	"pin, changed meanwhile":  {"pin fedora 41 -n golden --channel next", map[string][]string{"GET " + fedoraAt: {fedora(channels)}, "PATCH " + fedoraAt: {respondWithError(409, "Conflict", "the object has been modified")}}},
	"pin, denied":             {"pin fedora 41 -n golden", map[string][]string{"GET " + fedoraAt: {fedora()}, "PATCH " + fedoraAt: {respondWithError(403, "Forbidden", "ada cannot patch it")}}},
	"unpin an image":          {"unpin fedora -n golden", is(fedora(pinnedTo(first)))},
	"unpin a channel":         {"unpin fedora -n golden --channel old", is(fedora(channels))},
	"unpin a slow channel":    {"unpin fedora -n golden --channel old --after 24h", is(fedora(channels))},
	"unpin, not pinned":       {"unpin fedora -n golden", is(fedora())},
	"unpin, channel follows":  {"unpin fedora -n golden --channel slow --after 1h", is(fedora(channels))},
	"unpin, no such channel":  {"unpin fedora -n golden --channel beta", is(fedora(channels))},
	"unpin, after no channel": {"unpin fedora -n golden --after 1h", nil},
	"unpin, after never":      {"unpin fedora -n golden --after -1h", nil},

	"rollback": {"rollback fedora -n golden --poll-interval 1ms", is(fedora(changed), fedora(), fedora(changed),
		fedora(changed, condition("UpToDate False Importing: "+second+" is being imported for DataSource fedora")), fedora(changed, standsFor(second), condition("UpToDate True Pinned: DataSource fedora stands for "+second)))},
	"rollback, to one":            {"rollback fedora -n golden --to sha256:1a --wait=false", is(fedora())},
	"rollback, a channel":         {"rollback fedora -n golden --channel slow --poll-interval 1ms", is(fedora(channels), fedora(channels, channelStandsFor("slow", first)))},
	"rollback, a manual channel":  {"rollback fedora -n golden --channel stable --poll-interval 1ms", is(fedora(channels), fedora(channels, channelStandsFor("stable", first)))},
	"rollback, not imported":      {"rollback fedora -n golden --poll-interval 1ms --tolerate 0s", is(fedora(condition("UpToDate False ImportFailed: no space")))},
	"rollback, too late":          {"rollback fedora -n golden --poll-interval 1h --timeout 1s", is(fedora())},
	"rollback, not possible":      {"rollback fedora -n golden --poll-interval 1ms", is(fedora(condition("UpToDate False Conflict: DataSource golden/fedora belongs to another operator")))},
	"rollback, the oldest":        {"rollback fedora -n golden", is(fedora(standsFor(first)))},
	"rollback, nothing":           {"rollback fedora -n golden", is(fedora(fresh))},
	"rollback, no such image":     {"rollback fedora -n golden --to 40", is(fedora())},
	"rollback, no such channel":   {"rollback fedora -n golden --channel beta", is(fedora(channels))},
	"rollback, two architectures": {"rollback fedora -n golden", is(fedora(twoArchitectures))},
	"rollback, an index":          {"rollback fedora -n golden --wait=false", is(fedora(indexed))},
	"rollback, index mixed":       {"rollback fedora -n golden", is(fedora(indexed, func(i *v1alpha1.GoldenImage) { i.Status.Architectures[0].Current = &i.Status.History[3] }))},
	"rollback, no time":           {"rollback fedora -n golden --timeout 0s", nil},

	"refresh": {"refresh fedora -n golden --poll-interval 1ms", is(fedora(), fedora(), fedora(),
		fedora(refreshed, condition("UpToDate False Importing: it is being imported"), condition("Importing True Importing: it: waiting for CDI")),
		fedora(refreshed, condition("UpToDate False Importing: it is being imported"), condition("Importing True Importing: it: 42.0%")),
		fedora(refreshed, condition("UpToDate True Latest: DataSource fedora stands for it"), condition("Importing False Imported: No import is going on")))},
	"refresh, nothing newer":    {"refresh fedora -n golden --poll-interval 1ms", is(fedora(), fedora(), fedora(refreshed))},
	"refresh, not waiting":      {"refresh fedora -n golden --wait=false", is(fedora())},
	"refresh, the check fails":  {"refresh fedora -n golden --poll-interval 1ms", is(fedora(), fedora(), fedora(refreshed, checkFailed))},
	"refresh, the import fails": {"refresh fedora -n golden --poll-interval 1ms --tolerate 10ms", is(fedora(), fedora(), fedora(refreshed, condition("UpToDate False ImportFailed: no space"), condition("Importing True ImportFailed: it: no space")))},
	"refresh, an older import failed": {"refresh fedora -n golden --poll-interval 1ms", is(fedora(condition("UpToDate False ImportFailed: no space")), fedora(condition("UpToDate False ImportFailed: no space")),
		fedora(refreshed, condition("UpToDate False ImportFailed: no space")), fedora(refreshed, condition("UpToDate False Importing: another one")), fedora(refreshed))},
	"refresh, not enabled":     {"refresh fedora -n golden --poll-interval 1ms", is(fedora(condition("UpToDate Unknown NamespaceNotEnabled: Golden images are not enabled in the namespace")))},
	"refresh, provided":        {"refresh fedora -n golden --poll-interval 1ms", is(fedora(), fedora(), fedora(refreshed, condition("UpToDate Unknown Provided: DataSource fedora was made by a user")))},
	"refresh, invalid":         {"refresh fedora -n golden --poll-interval 1ms", is(fedora(condition("UpToDate False InvalidSpec: spec.schedule.cron: it is none")))},
	"refresh, suspended":       {"refresh fedora -n golden", is(fedora(suspended))},
	"refresh, deleted":         {"refresh fedora -n golden --poll-interval 1ms", is(fedora(), respondWithError(404, "NotFound", "it is gone"))},
	"refresh, too late":        {"refresh fedora -n golden --timeout 1s --poll-interval 1h", is(fedora())},
	"refresh, no tolerance":    {"refresh fedora -n golden --tolerate -1s", nil},
	"refresh, no interval":     {"refresh fedora -n golden --poll-interval 0s", nil},
	"refresh, may not":         {"refresh fedora -n golden", map[string][]string{"GET " + fedoraAt: {fedora()}, "PATCH " + fedoraAt: {respondWithError(403, "Forbidden", "ada cannot patch it")}}},
	"promote":                  {"promote fedora stable -n golden", is(fedora(channels))},
	"promote, an older one":    {"promote fedora stable sha256:1a -n golden", is(fedora(channels))},
	"promote, not manual":      {"promote fedora slow -n golden", is(fedora(channels))},
	"promote, no such channel": {"promote fedora beta -n golden", is(fedora(channels))},
	"promote, no such image":   {"promote fedora stable 40 -n golden", is(fedora(channels))},
	"promote, none yet":        {"promote fedora stable -n golden", is(fedora(channels, fresh))},
	"promote, two of them":     {"promote fedora stable -n golden", is(fedora(channels, twoArchitectures))},
	"promote, an index":        {"promote fedora stable -n golden", is(fedora(channels, indexed))},
	"promote, nothing":         {"promote fedora", nil},
	"add, minimal":             {"add fedora -n golden --registry quay.io/containerdisks/fedora --wait=false", map[string][]string{"POST " + imagesAt: {fedora(fresh)}}},
	"add, a dry run":           {"add golden/fedora --registry quay.io:5000/containerdisks/fedora --semver >=41,<43 --pattern [0-9.]+ --exclude 42.0 --size 5Gi --storage-class fast --schedule @daily --architecture amd64,arm64 --adopt IfNotReady --dry-run=client -o yaml", nil},
	"add, evaluated":           {"add fedora -n golden --registry quay.io/containerdisks/fedora --tag 42 --dry-run=server", map[string][]string{"POST " + imagesAt: {fedora(fresh)}}},
	"add, the name":            {"add fedora -n golden --registry quay.io/containerdisks/fedora --dry-run=client -o name", nil},
	"add, following": {"add fedora -n golden --registry quay.io/containerdisks/fedora --poll-interval 1ms -o yaml", map[string][]string{"POST " + imagesAt: {fedora(fresh)},
		"GET " + fedoraAt: {fedora(fresh), fedora(fresh, condition("UpToDate Unknown NotChecked: The source was not checked yet")),
			fedora(fresh, condition("UpToDate False Importing: it is being imported"), condition("Importing True Importing: it: 7.0%")),
			fedora(fresh, condition("UpToDate True Latest: DataSource fedora stands for it"))}}},
	"add, the check fails": {"add fedora -n golden --registry quay.io/containerdisks/fedora --poll-interval 1ms", map[string][]string{"POST " + imagesAt: {fedora(fresh)},
		"GET " + fedoraAt: {fedora(fresh, checkFailed, condition("UpToDate False CheckFailed: the registry denies access"))}}},
	"add, it exists":        {"add fedora -n golden --registry quay.io/containerdisks/fedora", map[string][]string{"POST " + imagesAt: {respondWithError(409, "AlreadyExists", `goldenimages "fedora" already exists`)}}},
	"add, a claim":          {"add fedora -n golden --claim uploaded --dry-run=client -o yaml", nil},
	"add, an image stream":  {"add fedora -n golden --image-stream fedora --tag 42 --dry-run=client -o yaml", nil},
	"add, two sources":      {"add fedora -n golden --claim uploaded --registry quay.io/containerdisks/fedora", nil},
	"add, a claim's tag":    {"add fedora -n golden --claim uploaded --tag 42", nil},
	"add, a stream's range": {"add fedora -n golden --image-stream fedora --semver 42", nil},
	"add, a claim for two":  {"add fedora -n golden --claim uploaded --architecture amd64,arm64", nil},
	"add, no registry":      {"add fedora -n golden", nil},
	"add, a file":           {"add fedora -n golden --http https://images.example.com/fedora.qcow2 --checksum-file https://images.example.com/SHA256SUMS --secret images --dry-run=client -o yaml", nil},
	"add, an object":        {"add fedora -n golden --s3 https://s3.example.com/images/fedora.qcow2 --secret images --architecture arm64 --dry-run=client -o yaml", nil},
	"add, a file too":       {"add fedora -n golden --registry quay.io/a/b --http https://images.example.com/fedora.qcow2", nil},
	"add, a tag of a file":  {"add fedora -n golden --http https://images.example.com/fedora.qcow2 --tag 42", nil},
	"add, two checksums":    {"add fedora -n golden --http https://images.example.com/fedora.qcow2 --checksum sha256:1 --checksum-file https://images.example.com/S", nil},
	"add, a checksum alone": {"add fedora -n golden --registry quay.io/a/b --checksum sha256:1", nil},
	"add, no Secret":        {"add fedora -n golden --s3 https://s3.example.com/images/fedora.qcow2", nil},
	"add, two for a file":   {"add fedora -n golden --http https://images.example.com/fedora.qcow2 --architecture amd64,arm64", nil},
	"add, a tag in the URL": {"add fedora -n golden --registry quay.io/containerdisks/fedora:42", nil},
	"add, a digest in it":   {"add fedora -n golden --registry docker://quay.io/containerdisks/fedora@sha256:12", nil},
	"add, tag and range":    {"add fedora -n golden --registry quay.io/containerdisks/fedora --tag 42 --semver 42", nil},
	"add, only exclude":     {"add fedora -n golden --registry quay.io/containerdisks/fedora --exclude 42", nil},
	"add, no range":         {"add fedora -n golden --registry quay.io/containerdisks/fedora --semver new", nil},
	"add, no pattern":       {"add fedora -n golden --registry quay.io/containerdisks/fedora --pattern (", nil},
	"add, no size":          {"add fedora -n golden --registry quay.io/containerdisks/fedora --size large", nil},
	"add, too small":        {"add fedora -n golden --registry quay.io/containerdisks/fedora --size 0", nil},
	"add, no schedule":      {"add fedora -n golden --registry quay.io/containerdisks/fedora --schedule often", nil},
	"add, no architecture":  {"add fedora -n golden --registry quay.io/containerdisks/fedora --architecture x86_64", nil},
	"add, no adoption":      {"add fedora -n golden --registry quay.io/containerdisks/fedora --adopt Maybe", nil},
	"add, no name":          {"add Fedora -n golden --registry quay.io/containerdisks/fedora --dry-run=client", nil},
	"add, no time":          {"add fedora -n golden --registry quay.io/containerdisks/fedora --timeout -1s", nil},
}

func TestImage(t *testing.T) {
	t.Chdir("testdata")
	for name, tc := range imageCommands {
		t.Run(name, func(t *testing.T) { golden(t, "image "+name, runInCluster(t, "image "+tc.line, tc.answers)) })
	}
}

func TestImageCompletion(t *testing.T) {
	c := &fakeCluster{test: t, answers: map[string][]string{"GET " + fedoraAt: {fedora(channels)}, "GET " + imagesAt: {`{"items": [{"metadata": {"name": "fedora"}}]}`}}}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	digests := third + "\t42\n" + second + "\t41\n" + first + "\n"
	for line, want := range map[string]string{
		"history f":                  "fedora\n",
		"history fedora ":            "",
		"pin fedora ":                digests,
		"pin fedora 41 --channel ":   "next\nslow\nstable\nold\n",
		"pin --channel ":             "",
		"rollback fedora --to ":      digests,
		"rollback other --to ":       "",
		"promote fedora ":            "stable\n",
		"promote fedora stable ":     digests,
		"promote fedora stable 41 ":  "",
		"add ":                       "",
		"add fedora --adopt ":        "Never\nIfNotReady\nAlways\n",
		"add fedora --architecture ": "amd64\narm64\ns390x\nppc64le\n",
		"list ":                      "",
		"history fedora -o ":         "table\njson\nyaml\n",
		"add fedora --dry-run ":      "none\nclient\nserver\n",
		"unpin fedora --channel ":    "next\nslow\nstable\nold\n",
		"rollback fedora --channel ": "next\nslow\nstable\nold\n",
		"rollback golden/f":          "golden/fedora\n",
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Split(line, " ")
			arguments := append([]string{"stencilctl", "__complete", "image", words[0], "--server", server.URL, "-n", "golden"}, words[1:]...)
			var out strings.Builder
			run(t.Context(), arguments, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
			got, _, _ := strings.Cut(out.String(), ":4\n")
			if got != want {
				t.Errorf("offered %q, want %q", got, want)
			}
		})
	}
}
