package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/policies/library"
)

// fakeVM is a VM like those of the benchmarks of policies: with a disk, cloud-init, a network and labels.
const fakeVM = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"vm-%[1]d","namespace":"ns-%[2]d","uid":"%[1]d","labels":{"app":"web","owner":"team-%[2]d"},
"annotations":{"description":"a web server of the shop"}},"spec":{"runStrategy":"Always","template":{"metadata":{"labels":{"app":"web"}},"spec":{"domain":{"cpu":{"cores":%[3]d},"memory":{"guest":"4Gi"},
"devices":{"disks":[{"name":"root","disk":{"bus":"virtio"}},{"name":"init","disk":{"bus":"virtio"}}],"interfaces":[{"name":"default","masquerade":{}}],"rng":{}},"machine":{"type":"q35"},"firmware":{"uuid":"5d307ca9-b3ef-428c-8861-06e72d69f223"}},
"networks":[{"name":"default","pod":{}}],"terminationGracePeriodSeconds":180,"volumes":[{"name":"root","containerDisk":{"image":"quay.io/containerdisks/fedora:42"}},{"name":"init","cloudInitNoCloud":{"userData":"#cloud-config\nuser: fedora\n"}}]}}}}`

// fakeAPIServer serves so many VMs in namespaces of 100, page by page, and the namespaces. Odd VMs have two cores, the others one.
func fakeAPIServer(t testing.TB, vms int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if name, found := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"); found {
			fmt.Fprintf(w, `{"metadata":{"name":%q,"labels":{"kubernetes.io/metadata.name":%q}}}`, name, name)
			return
		}
		if r.URL.Path != "/apis/kubevirt.io/v1/virtualmachines" {
			fmt.Fprint(w, `{"items":[]}`) // there are no templates and requests
			return
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		to, next := min(from+cluster.PageSize, vms), ""
		if to < vms {
			next = strconv.Itoa(to)
		}
		var items []json.RawMessage
		for i := from; i < to; i++ {
			items = append(items, json.RawMessage(fmt.Sprintf(fakeVM, i, i/100, 1+i%2)))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"continue": next}, "items": items})
	}))
	t.Cleanup(server.Close)
	return server
}

func simulate(ctx context.Context, streams cli.Streams, server *httptest.Server, policy string, arguments ...string) error {
	command := newSimulate(streams)
	command.SetArgs(append([]string{"-p", policy, "-A", "--kubeconfig", os.DevNull, "--server", server.URL}, arguments...))
	command.SetOut(streams.Out)
	command.SetErr(streams.Err)
	command.SilenceErrors, command.SilenceUsage = true, true
	return command.ExecuteContext(ctx)
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const odd = "package odd\n\ndeny contains \"two cores\" if input.object.spec.template.spec.domain.cpu.cores == 2\n"

var notes = regexp.MustCompile(`(?m)^  note .*\n`)

func TestSimulateHasTheOrderOfTheCluster(t *testing.T) {
	const many = 1100 // five pages
	server, policy := fakeAPIServer(t, many), write(t, "odd.rego", odd)
	var table bytes.Buffer
	if err := simulate(t.Context(), cli.Streams{Out: &table, Err: &table}, server, policy); !errors.Is(err, cli.ErrFindings) {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := 1; i < many; i += 2 {
		fmt.Fprintf(&want, "VirtualMachine ns-%d/vm-%d (CREATE): denied\n  deny odd (medium): two cores\n  odd: deny\n", i/100, i)
	}
	fmt.Fprintf(&want, "%d objects were evaluated: %d would be denied, 0 warned about, 0 only recorded\n", many, many/2)
	// On a busy host there are notes about evaluations that take longer than a cluster permits.
	if got := notes.ReplaceAllString(table.String(), ""); got != want.String() {
		t.Errorf("got:\n%.2000s\nwant:\n%.2000s", got, want.String())
	}
	var out bytes.Buffer
	if err := simulate(t.Context(), cli.Streams{Out: &out, Err: &out}, server, policy, "-o", "json"); !errors.Is(err, cli.ErrFindings) {
		t.Fatal(err)
	}
	var found struct {
		Evaluated int
		Objects   []struct{ Name string }
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil || found.Evaluated != many || len(found.Objects) != many/2 || found.Objects[0].Name != "vm-1" {
		t.Errorf("%v: %.300s", err, out.String())
	}
}

func TestSimulateDoesNotCountWhatTheUserDecides(t *testing.T) {
	server := fakeAPIServer(t, 3)
	policy := write(t, "admins.rego", "package admins\n\ndeny contains \"not an admin\" if not \"admins\" in input.request.userInfo.groups\n")
	var out bytes.Buffer
	if err := simulate(t.Context(), cli.Streams{Out: &out, Err: &out}, server, policy); err != nil {
		t.Fatal(err)
	}
	got := notes.ReplaceAllString(out.String(), "")
	for _, want := range []string{
		"VirtualMachine ns-0/vm-0 (CREATE): allowed\n  unknown admins (medium): not an admin\n",
		"3 objects were evaluated: 0 would be denied, 0 warned about, 0 only recorded, 3 unknown, because policies read the time or the user of a request\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

type prompt struct{ cli.Prompter }

func TestSimulateShowsProgressOnATerminal(t *testing.T) {
	server, policy := fakeAPIServer(t, 3), write(t, "odd.rego", odd)
	var out, terminal bytes.Buffer
	if err := simulate(t.Context(), cli.Streams{Out: &out, Err: &terminal, Prompt: prompt{}}, server, policy); !errors.Is(err, cli.ErrFindings) {
		t.Fatal(err)
	}
	// The line is removed before a result is printed.
	if got, want := terminal.String(), "\robjects evaluated: 1\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSimulateEndsWithItsContext(t *testing.T) {
	server, policy := fakeAPIServer(t, 100_000), write(t, "odd.rego", odd)
	ctx, cancel := context.WithCancel(t.Context())
	out := writerFunc(func([]byte) { cancel() })
	if err := simulate(ctx, cli.Streams{Out: out, Err: out}, server, policy); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte)

func (w writerFunc) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// BenchmarkSimulate evaluates all policies of the library for 20 000 VMs of an API server that answers at once.
func BenchmarkSimulate(b *testing.B) {
	const vms = 20_000
	policies, err := library.Policies()
	if err != nil {
		b.Fatal(err)
	}
	var manifests []string
	for _, policy := range policies {
		raw, err := yaml.Marshal(policy)
		if err != nil {
			b.Fatal(err)
		}
		manifests = append(manifests, string(raw))
	}
	server, path := fakeAPIServer(b, vms), write(b, "library.yaml", strings.Join(manifests, "---\n"))
	for b.Loop() {
		var out, problems bytes.Buffer
		if err := simulate(b.Context(), cli.Streams{Out: &out, Err: &problems}, server, path, "-o", "json"); err != nil && !errors.Is(err, cli.ErrFindings) {
			b.Fatal(err, problems.String())
		}
		var found simulated
		if err := json.Unmarshal(out.Bytes(), &found); err != nil || found.Evaluated != vms {
			b.Fatalf("%v: %d evaluated", err, found.Evaluated)
		}
	}
	b.ReportMetric(vms*float64(b.N)/b.Elapsed().Seconds(), "VMs/s")
	b.ReportMetric(float64(len(policies)), "policies")
}
