package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/test/product"
)

const (
	// floorName is the name of the process, by which its processor time is found.
	floorName = "webhook-floor"
	// floorConfiguration is the name of the floor's configurations.
	floorConfiguration = "bench-floor"
)

// floor is a running command floor: webhooks that do the least that a webhook can do, in a process of their own as Stencil's are.
type floor struct {
	command *exec.Cmd
	// input ends the process when it is closed, and so when this program ends.
	input    io.Closer
	folder   string
	url      string
	caBundle string
	client   *http.Client
}

// startFloor builds and starts the process, with its patches by VM name.
func startFloor(ctx context.Context, patches map[string][]byte) (*floor, error) {
	folder, err := os.MkdirTemp("", "stencil-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the floor: %w", err)
	}
	f := &floor{folder: folder}
	if err := f.start(ctx, patches); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the floor: %w", err), f.close())
	}
	return f, nil
}

func (f *floor) start(ctx context.Context, patches map[string][]byte) error {
	root, err := product.Root()
	if err != nil {
		return err
	}
	binary := filepath.Join(f.folder, floorName)
	// As Stencil's own programs are built.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", binary, "./bench/admission/floor")
	build.Dir = filepath.Join(root, "test")
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building it: %w\n%s", err, output)
	}
	command := exec.Command(binary)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	f.command, f.input = command, input
	if err := json.NewEncoder(input).Encode(patches); err != nil {
		return fmt.Errorf("writing the patches: %w", err)
	}
	var address struct {
		URL      string `json:"url"`
		CABundle string `json:"caBundle"`
	}
	if err := json.NewDecoder(output).Decode(&address); err != nil {
		return fmt.Errorf("reading its address: %w", err)
	}
	f.url, f.caBundle = address.URL, address.CABundle
	f.client, err = trusting(f.caBundle)
	return err
}

// trusting returns a client that trusts the authorities of a caBundle.
func trusting(caBundle string) (*http.Client, error) {
	content, err := base64.StdEncoding.DecodeString(caBundle)
	if err != nil {
		return nil, fmt.Errorf("decoding a caBundle: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, errors.New("a caBundle holds no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}, nil
}

// close ends the process.
func (f *floor) close() error {
	var err error
	if f.command != nil {
		err = errors.Join(f.input.Close(), f.command.Wait())
	}
	return errors.Join(err, os.RemoveAll(f.folder))
}

// calls returns how often the webhooks were called so far.
func (f *floor) calls(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/calls", nil)
	if err != nil {
		return 0, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking the floor for its calls: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("asking the floor for its calls: %w", err)
	}
	return strconv.Atoi(string(content))
}

// mutating returns the configuration of the floor's mutating webhook, validating that of the other one. Rules and conditions are those of the webhook
// that they are compared with.
func (f *floor) mutating(name string, like map[string]any) registered {
	return registered{mutatingConfigurations, f.configuration("MutatingWebhookConfiguration", name, "/mutate", like)}
}

func (f *floor) validating(like map[string]any) registered {
	return registered{validatingConfigurations, f.configuration("ValidatingWebhookConfiguration", floorConfiguration, "/validate", like)}
}

func (f *floor) configuration(kind, name, path string, like map[string]any) *unstructured.Unstructured {
	webhook := runtime.DeepCopyJSON(like)
	webhook["name"] = "floor.bench.stencil.test"
	webhook["clientConfig"] = map[string]any{"url": f.url + path, "caBundle": f.caBundle}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": name},
		"webhooks": []any{webhook},
	}}
}
