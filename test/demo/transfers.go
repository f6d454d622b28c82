package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/packages"
)

// shelf is a web server with one package.
type shelf struct {
	*httptest.Server

	mutex   sync.Mutex
	content []byte
}

func newShelf() *shelf {
	s := &shelf{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		content := s.content
		s.mutex.Unlock()
		http.ServeContent(w, r, "workbench.ova", time.Time{}, bytes.NewReader(content))
	}))
	return s
}

// put downloads the package of the export in the workshop.
func (s *shelf) put(ctx context.Context, plane *controlplane.Plane) error {
	offered, err := packages.Of(ctx, plane, nil, "workshop", "workbench")
	if err != nil {
		return err
	}
	response, err := offered.Get(ctx, offered.Authorized())
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(response.Body); response.Code != http.StatusOK || offered.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return fmt.Errorf("downloading the package: status %d, %d bytes with another digest than that of the export", response.Code, len(response.Body))
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.content = response.Body
	return nil
}

const exportWorkbench = `apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplateExport
metadata:
  name: workbench
spec:
  templateRef: {name: workbench}
  format: OVA
`

const importWorkbench = `apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplateImport
metadata:
  name: workbench
spec:
  source:
    http: {url: %s/workbench.ova}
  verification: Require
`

// transferSteps take the captured template through a package.
func transferSteps(ctx context.Context, plane *controlplane.Plane, server *shelf) []step {
	return []step{
		{chapter: "transfers", text: "The template becomes a package: an OVA with its disk, which other products read, too.", stdin: exportWorkbench,
			args: []string{"create", "--namespace=workshop", "-f", "-"}},
		{holds: "Ready", args: []string{"get", "vmte", "workbench", "--namespace=workshop", "-o", `jsonpath={.status.phase}, {.status.size} bytes, {.status.digest}{"\n"}`}},
		{quiet: true, args: []string{"create", "namespace", "branch"}},
		{text: "Downloaded with the token of the export, and put on a web server, it is imported elsewhere. One pod reads it once; the template is created when all digests are verified.",
			does:  func() error { return server.put(ctx, plane) },
			stdin: fmt.Sprintf(importWorkbench, server.URL), args: []string{"create", "--namespace=branch", "-f", "-"}},
		{holds: "Succeeded", args: []string{"get", "vmti", "--namespace=branch"}},
		{args: []string{"get", "vmt,pvc", "--namespace=branch"}},
	}
}
