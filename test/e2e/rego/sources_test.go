package rego_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/install"
)

// publisher pushes artifacts with oras and signs them with cosign, as docs/policies/sources.md shows.
type publisher struct {
	tools      map[string]string
	folder     string
	repository string
	// connect are flags of oras for the registry, environment variables of cosign.
	connect, environment []string
}

func newPublisher(t *testing.T, repository string) *publisher {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), "cosign", "oras")
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{tools: tools, folder: t.TempDir(), repository: repository, connect: []string{"--plain-http"}}
	p.run(t, "cosign", "generate-key-pair")
	return p
}

func (p *publisher) run(t *testing.T, tool string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.tools[tool], arguments...)
	command.Dir = p.folder
	command.Env = append(append(os.Environ(), "COSIGN_PASSWORD=", "HOME="+p.folder), p.environment...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", tool, strings.Join(arguments, " "), err, output)
	}
	t.Logf("$ %s %s\n%s", tool, strings.Join(arguments, " "), output)
	return string(output)
}

// push pushes files, whose names are the keys, as one artifact, and returns its digest.
func (p *publisher) push(t *testing.T, tag string, files map[string]string) string {
	t.Helper()
	arguments := append(append([]string{"push"}, p.connect...), "--artifact-type", "application/vnd.stencil.policies.v1", p.repository+":"+tag)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, name+":application/vnd.stencil.policies.v1+yaml")
	}
	output := p.run(t, "oras", arguments...)
	_, digest, found := strings.Cut(output, "Digest: ")
	if !found {
		t.Fatalf("oras printed no digest: %s", output)
	}
	return strings.TrimSpace(digest)
}

// sign signs an artifact without a transparency log, which would need the internet.
func (p *publisher) sign(t *testing.T, digest string) {
	t.Helper()
	p.run(t, "cosign", "sign", "--key", "cosign.key", "--use-signing-config=false", "--tlog-upload=false", "--yes", p.repository+"@"+digest)
}

// source returns the manifest of a source that follows a tag.
func (p *publisher) source(t *testing.T, name, tag, more string) string {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(p.folder, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := json.Marshal(string(pem))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicySource, metadata: {name: %s},
spec: {url: "oci://%s:%s", verify: {publicKeys: [%s]}%s}}`, name, p.repository, tag, key, more)
}

const ready = `jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.reason}: {.message}{end}`

// refreshed checks a source now, and waits until its condition Ready begins with these words.
func refreshed(t *testing.T, name, value, words string) {
	t.Helper()
	must(t, "", "annotate", "vmpolsrc", name, "stencil.kubevirt.io/refresh="+value, "--overwrite")
	becomesReady(t, name, words)
	harness.Eventually(t, "the annotation is handled", func() error {
		if got := must(t, "", "get", "vmpolsrc", name, "-o", "jsonpath={.status.refreshed}"); got != value {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	becomesReady(t, name, words)
}

func becomesReady(t *testing.T, name, words string) {
	t.Helper()
	harness.Eventually(t, "source "+name+" is "+words, func() error {
		if got := must(t, "", "get", "vmpolsrc", name, "-o", ready); !strings.HasPrefix(got, words) {
			return fmt.Errorf("it is %s\n%s", got, must(t, "", "get", "vmpolsrc", name, "-o", "yaml"))
		}
		return nil
	})
}

// noSources deletes the sources and then their policies when the test ends. Called last, it runs before a policy that the test has applied is deleted,
// which a source would restore.
func noSources(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		must(t, "", "delete", "vmpolsrc", "--all")
		must(t, "", "delete", "vmpol", "--selector=stencil.kubevirt.io/policy-source")
	})
}

func TestPolicySources(t *testing.T) {
	registry := images.Start()
	t.Cleanup(registry.Close)
	noSources(t)
	platform := newPublisher(t, registry.Address()+"/platform/policies")
	admin := harness.User(t, stencil.Plane, "sources-admin", gen.Role("", "stencil-policy-admin"))
	writer := rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines"}, Verbs: []string{"*"}}
	ada := harness.User(t, stencil.Plane, "ada", gen.Role("default", "stencil-edit"), gen.Permits("default", writer))
	selecting := func(label string) string { return "match: {objectSelector: {matchLabels: {test: " + label + "}}}" }
	red, blue := policy("source-red", selecting("red"), denies("red")), policy("source-blue", selecting("blue"), denies("blue"))

	first := platform.push(t, "v1", map[string]string{"red.yaml": red, "blue.yaml": blue})
	manifest := platform.source(t, "platform", "v1", "")
	tries(t, ada, manifest, false, `cannot create resource "virtualmachinepolicysources"`, "create", "-f", "-")
	tries(t, admin, manifest, true, "created", "create", "-f", "-")
	becomesReady(t, "platform", "False NotSigned: "+platform.repository+":v1, "+first+": no signature of spec.verify.publicKeys: sign this digest with cosign, or correct the keys; no policy was applied yet")
	platform.sign(t, first)
	refreshed(t, "platform", "signed", "True Applied: 2 policies of "+first+" are applied")
	tries(t, ada, vmManifest("one", "red"), false, "policy source-red (high): no red here", "create", "--dry-run=server", "-f", "-")
	tries(t, ada, vmManifest("one", "blue"), false, "policy source-blue (high): no blue here", "create", "--dry-run=server", "-f", "-")
	t.Log("\n" + must(t, "", "get", "vmpolsrc") + must(t, "", "get", "vmpol", "--selector=stencil.kubevirt.io/policy-source=platform") + must(t, "", "get", "vmpolsrc", "-o", "yaml"))

	// A policy that a user changes or deletes is restored.
	must(t, "", "patch", "vmpol", "source-red", "--type=merge", "-p", `{"spec": {"enforcement": "Audit"}}`)
	must(t, "", "delete", "vmpol", "source-blue")
	tries(t, ada, vmManifest("one", "red"), false, "policy source-red (high): no red here", "create", "--dry-run=server", "-f", "-")
	tries(t, ada, vmManifest("one", "blue"), false, "policy source-blue (high): no blue here", "create", "--dry-run=server", "-f", "-")

	// A newer artifact that is not signed, is signed with another key or is not valid is not applied.
	second := platform.push(t, "v1", map[string]string{"red.yaml": red})
	other := newPublisher(t, platform.repository)
	other.sign(t, second)
	remain := "; 2 policies of " + first + " remain"
	refreshed(t, "platform", "another key", "False NotSigned: "+platform.repository+":v1, "+second+": no signature of spec.verify.publicKeys: sign this digest with cosign, or correct the keys"+remain)
	broken := platform.push(t, "v1", map[string]string{"red.yaml": strings.Replace(red, "\nspec:\n", "\nspec:\n  enforcment: Warn\n", 1)})
	platform.sign(t, broken)
	refreshed(t, "platform", "broken", "False InvalidArtifact: "+platform.repository+":v1, "+broken+`: layer 0 ("red.yaml"), document 0: unknown field "spec.enforcment"; 2 policies of `+first+" remain")
	t.Log("\n" + must(t, "", "get", "vmpolsrc", "-o", "wide"))
	rejected := platform.push(t, "v1", map[string]string{"red.yaml": policy("source-green", selecting("green"), denies("green")) + "\n---\n" + policy("source-red", selecting("red"), "package test\n\ndeny contains x if {")})
	platform.sign(t, rejected)
	refreshed(t, "platform", "rejected", "False PolicyRejected: applying policy source-red: ")
	if got := kubectl(t, "", "get", "vmpol", "source-green"); got.Code == 0 {
		t.Error("a policy beside one that is rejected was applied")
	}
	tries(t, ada, vmManifest("one", "blue"), false, "policy source-blue (high): no blue here", "create", "--dry-run=server", "-f", "-")

	// A new manager restores what is applied, by its digest, and without a registry nothing changes.
	restart(t, nil)
	must(t, "", "patch", "vmpol", "source-red", "--type=merge", "-p", `{"spec": {"failureMode": "Allow", "match": {"subjects": {"exclude": [{"kind": "User", "name": "ada"}]}}}}`)
	harness.Eventually(t, "the policy is restored", func() error {
		if got := get(t, "source-red").Spec; got.FailureMode != "Deny" || got.Match.Subjects != nil {
			return fmt.Errorf("failureMode %s, match %+v", got.FailureMode, got.Match)
		}
		return nil
	})
	registry.Down()
	restart(t, nil)
	refreshed(t, "platform", "down", "False CheckFailed: reading "+platform.repository+":v1: ")
	if got := must(t, "", "get", "vmpolsrc", "platform", "-o", ready); !strings.HasSuffix(got, remain) {
		t.Error(got)
	}
	tries(t, ada, vmManifest("one", "blue"), false, "policy source-blue (high): no blue here", "create", "--dry-run=server", "-f", "-")
	registry.Up()

	// A policy that left the artifact remains until spec.prune is set.
	third := platform.push(t, "v1", map[string]string{"red.yaml": red})
	platform.sign(t, third)
	refreshed(t, "platform", "third", "True Applied: policy source-red of "+third+" is applied; not in the artifact any more, but they remain without spec.prune: source-blue")
	tries(t, ada, vmManifest("one", "blue"), false, "policy source-blue (high): no blue here", "create", "--dry-run=server", "-f", "-")
	must(t, "", "patch", "vmpolsrc", "platform", "--type=merge", "-p", `{"spec": {"prune": true, "enforcement": "Warn"}}`)
	harness.Eventually(t, "the policy is deleted", func() error {
		if got := must(t, "", "get", "vmpol", "--selector=stencil.kubevirt.io/policy-source=platform", "-o", "name"); got != "virtualmachinepolicy.stencil.kubevirt.io/source-red\n" {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
	becomesReady(t, "platform", "True Applied: policy source-red of "+third+" is applied")
	tries(t, ada, vmManifest("one", "red"), true, "Warning: policy source-red: no red here", "create", "--dry-run=server", "-f", "-")

	// Neither a suspended nor a deleted source changes a policy.
	must(t, "", "patch", "vmpolsrc", "platform", "--type=merge", "-p", `{"spec": {"enforcement": null, "suspended": true}}`)
	becomesReady(t, "platform", "Unknown Suspended: spec.suspended stops checks and changes of policies; policy source-red of "+third+" remains")
	must(t, "", "delete", "vmpolsrc", "platform")
	tries(t, ada, vmManifest("one", "red"), true, "Warning: policy source-red: no red here", "create", "--dry-run=server", "-f", "-")
}

func TestAPolicySourceTakesNoPolicyOver(t *testing.T) {
	registry := images.Start()
	t.Cleanup(registry.Close)
	team := newPublisher(t, registry.Address()+"/team/policies")
	applied(t, "source-own", "match: {objectSelector: {matchLabels: {test: own}}}", denies("own"))
	noSources(t)
	digest := team.push(t, "latest", map[string]string{
		"own.yaml": policy("source-own", "enforcement: Audit", denies("own")), "new.yaml": policy("source-new", "enforcement: Audit", denies("new")),
	})
	team.sign(t, digest)
	must(t, team.source(t, "team", "latest", ""), "create", "-f", "-")
	becomesReady(t, "team", "False PolicyConflict: policies of other owners have these names: source-own; rename or delete them, or give them label stencil.kubevirt.io/policy-source=team so that the source replaces them; no policy was applied yet")
	if got := get(t, "source-own").Spec.Enforcement; got != "Deny" {
		t.Errorf("it was changed to %s", got)
	}
	if got := kubectl(t, "", "get", "vmpol", "source-new"); got.Code == 0 {
		t.Error("a policy beside one of another owner was applied")
	}
	must(t, "", "label", "vmpol", "source-own", "stencil.kubevirt.io/policy-source=team")
	becomesReady(t, "team", "True Applied: 2 policies of "+digest+" are applied")
	if got := get(t, "source-own").Spec.Enforcement; got != "Audit" {
		t.Errorf("enforcement %s", got)
	}

	// A digest pins the artifact, and credentials that cannot be read are named.
	must(t, "", "patch", "vmpolsrc", "team", "--type=merge", "-p", `{"spec": {"url": "oci://`+team.repository+"@"+digest+`", "secretRef": "registry"}}`)
	becomesReady(t, "team", "False CheckFailed: spec.secretRef: Secret stencil-system/registry does not exist; 2 policies of "+digest+" remain")
	must(t, "", "patch", "vmpolsrc", "team", "--type=merge", "-p", `{"spec": {"secretRef": "other"}}`)
	becomesReady(t, "team", "False CheckFailed: spec.secretRef: Secret stencil-system/other must not be read: add it to the chart's value policySources.readable; 2 policies of "+digest+" remain")
	must(t, "", "patch", "vmpolsrc", "team", "--type=merge", "-p", `{"spec": {"secretRef": null}}`)
	becomesReady(t, "team", "True Applied: 2 policies of "+digest+" are applied")
}

// dockerConfig is the configuration of Docker's client with a password for a registry.
func dockerConfig(address, user, password string) string {
	return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, address, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func TestAPolicySourceOfAPrivateRegistry(t *testing.T) {
	const password = "correct-horse-battery"
	registry := images.StartPrivate("puller", password)
	t.Cleanup(registry.Close)
	noSources(t)
	team := newPublisher(t, registry.Address()+"/team/policies")
	certificate := filepath.Join(team.folder, "registry.pem")
	team.connect, team.environment = []string{"--ca-file", certificate}, []string{"SSL_CERT_FILE=" + certificate}
	if err := os.Mkdir(filepath.Join(team.folder, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"registry.pem": string(registry.Certificate()), ".docker/config.json": dockerConfig(registry.Address(), "puller", password)} {
		if err := os.WriteFile(filepath.Join(team.folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest := team.push(t, "v1", map[string]string{"private.yaml": policy("source-private", "match: {objectSelector: {matchLabels: {test: private}}}", denies("private"))})
	team.sign(t, digest)

	t.Cleanup(func() {
		must(t, "", "delete", "secret/registry", "configmap/authority", "--namespace="+install.Namespace, "--ignore-not-found")
	})
	secret := func(password string) {
		t.Helper()
		must(t, "", "delete", "secret", "registry", "--namespace="+install.Namespace, "--ignore-not-found")
		must(t, "", "create", "secret", "docker-registry", "registry", "--namespace="+install.Namespace, "--docker-server="+registry.Address(), "--docker-username=puller", "--docker-password="+password)
	}
	secret("wrong-horse-battery")
	must(t, team.source(t, "private", "v1", ", secretRef: registry, certConfigMap: authority"), "create", "-f", "-")
	becomesReady(t, "private", "False CheckFailed: spec.certConfigMap: ConfigMap stencil-system/authority does not exist; no policy was applied yet")
	must(t, "", "create", "configmap", "authority", "--namespace="+install.Namespace, "--from-file=registry.pem="+certificate)
	refreshed(t, "private", "authority", "False CheckFailed: reading "+team.repository+":v1: GET https://"+registry.Address()+"/v2/team/policies/manifests/v1: unexpected status code 401 Unauthorized: a user and a password are required")
	secret(password)
	refreshed(t, "private", "password", "True Applied: policy source-private of "+digest+" is applied")
	awaitDenial(t, "private", "no private here")

	// Without the authority the certificate is not trusted, and nothing is sent in plain text.
	must(t, "", "patch", "vmpolsrc", "private", "--type=merge", "-p", `{"spec": {"certConfigMap": null}}`)
	becomesReady(t, "private", "False CheckFailed: reading "+team.repository+":v1: ")
	if got := must(t, "", "get", "vmpolsrc", "private", "-o", ready); !strings.Contains(got, "certificate signed by unknown authority") {
		t.Error(got)
	}
	everything := must(t, "", "get", "vmpolsrc", "private", "-o", "yaml") + must(t, "", "get", "events", "-A", "-o", "yaml") + stencil.first.Logs()
	for _, word := range []string{password, "wrong-horse", base64.StdEncoding.EncodeToString([]byte("puller:" + password))} {
		if strings.Contains(everything, word) {
			t.Errorf("%s is in a status, an event or the log", word)
		}
	}
}
