package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/product"
)

// SharedVariable is the environment variable with the path of the socket at which [Sharing] offers a platform.
const SharedVariable = "STENCIL_SHARED_PLATFORM"

// SharedOptions of the platform that test packages share: everything but CDI.
var SharedOptions = Options{KubeVirt: true, ControllerManager: true, APIServer: true}

// Attachment is what another process needs to use a running platform.
type Attachment struct {
	Plane        *controlplane.Attachment
	Install      install.Options
	APIServerURL string
}

// Sharing offers one platform to the test packages of a run. The platform is started when the first package requests it, and belongs to the process
// that shares it.
type Sharing struct {
	// Path of the socket.
	Path string

	ctx      context.Context
	log      io.Writer
	server   http.Server
	once     sync.Once
	platform *Platform
	err      error
}

// Share offers a platform at a socket in folder, until Stop.
func Share(ctx context.Context, folder string, log io.Writer) (*Sharing, error) {
	s := &Sharing{Path: filepath.Join(folder, "platform.sock"), ctx: ctx, log: log}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", s.Path)
	if err != nil {
		return nil, fmt.Errorf("sharing a platform: %w", err)
	}
	s.server.Handler = http.HandlerFunc(s.serve)
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

func (s *Sharing) serve(w http.ResponseWriter, _ *http.Request) {
	attachment, err := s.attachment()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(attachment)
}

func (s *Sharing) attachment() (*Attachment, error) {
	s.once.Do(func() {
		options := SharedOptions
		options.Log = s.log
		s.platform, s.err = Start(s.ctx, options)
	})
	if s.err != nil {
		return nil, s.err
	}
	plane, err := s.platform.Plane.Attachment()
	if err != nil {
		return nil, err
	}
	return &Attachment{Plane: plane, Install: s.platform.install, APIServerURL: s.platform.APIServer.WebhookURL()}, nil
}

// Stop ends the platform, if one was started.
func (s *Sharing) Stop() error {
	err := s.server.Close()
	// A request that arrives too late starts none any more.
	s.once.Do(func() { s.err = errors.New("the test run is over") })
	if s.platform != nil {
		err = errors.Join(err, s.platform.Stop())
	}
	return err
}

// Shared returns the platform that the packages of this test run share. Tests on it use namespaces of their own, give cluster-scoped objects unique
// names and selectors that match no objects of others, and do not restart or reconfigure anything: a test that does has a platform of its own.
func Shared(ctx context.Context) (*Platform, error) {
	// The programs run in another process, so this call alone makes the results of tests follow them.
	if _, err := product.Digest(); err != nil {
		return nil, err
	}
	// syscall.Getenv, not os.Getenv: the path is another in each run, and results of tests do not depend on it.
	path, found := syscall.Getenv(SharedVariable)
	if !found {
		return nil, fmt.Errorf("%s is not set: run this package with `make e2e PACKAGES=…`", SharedVariable)
	}
	attachment, err := fetch(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("getting the shared platform: %w", err)
	}
	plane, err := controlplane.Attach(attachment.Plane, os.Stderr)
	if err != nil {
		return nil, err
	}
	return &Platform{Plane: plane, ctx: ctx, options: SharedOptions, install: attachment.Install, sharedAPIServerURL: attachment.APIServerURL}, nil
}

func fetch(ctx context.Context, path string) (*Attachment, error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://platform/", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(string(body))
	}
	var attachment Attachment
	if err := json.Unmarshal(body, &attachment); err != nil {
		return nil, fmt.Errorf("decoding the description of the platform: %w", err)
	}
	return &attachment, nil
}
