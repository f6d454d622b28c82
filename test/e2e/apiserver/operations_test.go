package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
`

// TestASecondServer is about what a server has to itself: it is called past the aggregator.
func TestASecondServer(t *testing.T) {
	folder := t.TempDir()
	policy, log := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "audit.log")
	testfile.Write(t, policy, auditPolicy)
	user, err := stencil.Options().APIServerUser(stencil.Plane)
	if err != nil {
		t.Fatal(err)
	}
	second, err := manager.Start(context.WithoutCancel(t.Context()), manager.Options{
		Program: manager.StencilAPIServer, Kubeconfig: user.Kubeconfig, Namespace: install.Namespace,
		// net/http waits for an HTTP/2 connection with a handshake that ends during the shutdown until this timeout (golang.org/issue/39776).
		Args: append(stencil.Options().APIServerArgs(), "--request-timeout=10s", "--max-mutating-requests-in-flight=1", "--audit-policy-file="+policy, "--audit-log-path="+log, "--audit-log-mode=blocking"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
	host := second.WebhookURL()
	process := request{as: bob, host: host, path: subresource(t, "v1beta1", "box", "process"), body: "parameters: {NAME: web-1}"}

	t.Run("a person is known by their certificate", func(t *testing.T) {
		decode(t, process.do(t))
	})
	t.Run("anybody may ask how it is", func(t *testing.T) {
		for _, path := range []string{"/livez", "/readyz", "/healthz"} {
			if got := (request{method: http.MethodGet, host: host, path: path}).do(t); got.code != http.StatusOK {
				t.Errorf("%s: %d %s", path, got.code, got.body)
			}
		}
	})
	t.Run("metrics take a right", func(t *testing.T) {
		metrics := request{as: bob, method: http.MethodGet, host: host, path: "/metrics"}
		if got := metrics.do(t); got.code != http.StatusForbidden {
			t.Errorf("%d", got.code)
		}
		prometheus := harness.User(t, stencil.Plane, "prometheus", gen.Permits("", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}))
		metrics.as = prometheus
		got := metrics.do(t)
		for _, want := range []string{"stencil_template_cache_templates", "stencil_build_info", "apiserver_request_duration_seconds_bucket", "stencil_serving_certificate_expiry_timestamp_seconds"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%d, no %s", got.code, want)
			}
		}
	})
	t.Run("TLS before 1.2 is not spoken", func(t *testing.T) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}}
		connection, err := dialer.DialContext(t.Context(), "tcp", second.WebhookAddress())
		if err == nil {
			connection.Close()
			t.Error("a handshake with TLS 1.1 succeeds")
		}
	})
	t.Run("more requests than it takes are answered with 429", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var refused atomic.Int32
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				for refused.Load() == 0 && ctx.Err() == nil && !t.Failed() {
					switch got := process.do(t); got.code {
					case http.StatusTooManyRequests:
						refused.Add(1)
					case http.StatusOK:
					default:
						t.Errorf("%d %s", got.code, got.body)
					}
				}
			})
		}
		work.Wait()
		if refused.Load() == 0 {
			t.Error("none was refused")
		}
	})
	t.Run("the audit log says who did what", func(t *testing.T) {
		file, err := os.Open(log)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var event auditv1.Event
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				t.Fatal(err)
			}
			if r := event.ObjectRef; event.User.Username == "bob" && r != nil && r.Resource == "virtualmachinetemplates" && r.Subresource == "process" && r.Name == "box" && event.Verb == "create" {
				return
			}
		}
		t.Errorf("nothing of bob in the log: %v", lines.Err())
	})
}
