package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	program "github.com/vmstencil/stencil/internal/server"
)

// environmentOf looks up variables in a map.
func environmentOf(variables map[string]string) program.Lookup {
	return func(name string) (string, bool) {
		value, found := variables[name]
		return value, found
	}
}

// seen is the part of the options that TestParse compares.
type seen struct {
	ShutdownDelay   time.Duration
	HTTP2           bool
	LeaseNamespace  string
	SecretNamespace string
	Names           string
	Configurations  string
	QPS             float64
}

func TestParse(t *testing.T) {
	pod := map[string]string{"POD_NAMESPACE": "stencil-system"}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{"POD_NAMESPACE": "stencil-system"}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	defaults := seen{
		ShutdownDelay: 10 * time.Second, LeaseNamespace: "stencil-system", SecretNamespace: "stencil-system",
		Names: "localhost,127.0.0.1,::1", QPS: -1,
	}
	but := func(change func(*seen)) seen {
		changed := defaults
		change(&changed)
		return changed
	}
	cases := map[string]struct {
		arguments   []string
		environment map[string]string
		want        seen
	}{
		"in a pod nothing has to be given": {environment: pod, want: defaults},
		"a flag wins over its environment variable": {
			arguments:   []string{"--shutdown-delay=3s"},
			environment: with(map[string]string{"STENCIL_SHUTDOWN_DELAY": "4s"}),
			want:        but(func(s *seen) { s.ShutdownDelay = 3 * time.Second }),
		},
		"even when it says what is the default": {
			arguments:   []string{"--shutdown-delay=10s"},
			environment: with(map[string]string{"STENCIL_SHUTDOWN_DELAY": "4s"}),
			want:        defaults,
		},
		"every kind of flag can be an environment variable": {
			environment: with(map[string]string{
				"STENCIL_SHUTDOWN_DELAY":         "4s",
				"STENCIL_WEBHOOK_HTTP2":          "true",
				"STENCIL_CERTIFICATE_DNS_NAMES":  "a.example.com, b.example.com",
				"STENCIL_KUBE_API_QPS":           "50",
				"STENCIL_ZAP_LOG_LEVEL":          "debug",
				"STENCIL_WEBHOOK_CONFIGURATIONS": "mutating/a-stencil-render,validating/stencil-validate",
			}),
			want: but(func(s *seen) {
				s.ShutdownDelay, s.HTTP2, s.QPS = 4*time.Second, true, 50
				s.Names = "a.example.com,b.example.com"
				s.Configurations = "mutating/a-stencil-render,validating/stencil-validate"
			}),
		},
		"a namespace that is given is not replaced by the manager's own": {
			arguments:   []string{"--leader-election-namespace=leases"},
			environment: pod,
			want:        but(func(s *seen) { s.LeaseNamespace = "leases" }),
		},
		"outside a pod both namespaces are flags": {
			arguments: []string{"--leader-election-namespace=a", "--certificate-authority-namespace=b"},
			want:      but(func(s *seen) { s.LeaseNamespace, s.SecretNamespace = "a", "b" }),
		},
		"without leader election and an authority none is needed": {
			arguments: []string{"--leader-elect=false", "--certificate-source=files"},
			want:      but(func(s *seen) { s.LeaseNamespace, s.SecretNamespace = "", "" }),
		},
		"a list replaces the default as a whole, and empty words in it do not count": {
			arguments:   []string{"--certificate-dns-names=,stencil-webhook.stencil-system.svc,"},
			environment: pod,
			want:        but(func(s *seen) { s.Names = "stencil-webhook.stencil-system.svc" }),
		},
		"variables of other programs do not count": {
			environment: with(map[string]string{"SHUTDOWN_DELAY": "4s", "STENCIL_SOMETHING_ELSE": "4s", "STENCIL_VERSION": "v1.2.3"}),
			want:        defaults,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tc.arguments, environmentOf(tc.environment), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			got := seen{
				ShutdownDelay: o.shutdownDelay, HTTP2: o.webhookHTTP2,
				LeaseNamespace: o.leaderElectionNamespace, SecretNamespace: o.certificates.Namespace,
				Names: o.certificates.Names.String(), Configurations: o.webhookConfigurations.String(), QPS: o.kubeAPIQPS,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	pod := map[string]string{"POD_NAMESPACE": "stencil-system"}
	cases := map[string]struct {
		arguments   []string
		environment map[string]string
		want        string
	}{
		"an unknown flag":         {[]string{"--nonsense"}, pod, "flag provided but not defined: -nonsense"},
		"a word that is no flag":  {[]string{"serve"}, pod, `unexpected argument "serve": there are flags only`},
		"a value of another type": {[]string{"--shutdown-delay=ten"}, pod, `invalid value "ten" for flag -shutdown-delay: parse error`},
		"a value of another type in the environment, by the name of the variable": {
			nil, map[string]string{"POD_NAMESPACE": "x", "STENCIL_SHUTDOWN_DELAY": "ten"},
			`environment variable STENCIL_SHUTDOWN_DELAY: invalid value "ten": parse error`,
		},
		"a missing namespace": {
			nil, nil,
			"--leader-election-namespace: must be given outside a pod, or as POD_NAMESPACE\n" +
				"--certificate-authority-namespace: must be given outside a pod, or as POD_NAMESPACE",
		},
		"a source that does not exist": {
			[]string{"--certificate-source=vault"}, pod, `--certificate-source: must be authority or files, not "vault"`,
		},
		"files without a directory": {
			[]string{"--certificate-source=files", "--certificate-directory="}, pod, "--certificate-directory: must not be empty",
		},
		"everything that is wrong with an authority, at once": {
			[]string{
				"--certificate-authority-secret=", "--certificate-duration=24h", "--certificate-authority-duration=24h",
				"--certificate-settle-time=8h", "--certificate-dns-names=", "--webhook-configurations=converting/x",
			}, pod,
			"--certificate-authority-secret: must not be empty\n" +
				"--certificate-settle-time: must be less than a third of --certificate-duration\n" +
				"--certificate-duration: must be less than --certificate-authority-duration\n" +
				"--certificate-dns-names: must not be empty\n" +
				`--webhook-configurations: webhook configuration "converting/x": before the slash may stand mutating, validating or apiservice`,
		},
		"times that make no sense": {
			[]string{"--shutdown-delay=-1s", "--shutdown-timeout=0s", "--certificate-duration=0s", "--certificate-settle-time=-1s"}, pod,
			"--shutdown-delay: must not be negative\n" +
				"--shutdown-timeout: must be positive\n" +
				"--certificate-duration: must be positive\n" +
				"--certificate-settle-time: must not be negative",
		},
		"a rate without a burst": {
			[]string{"--kube-api-qps=5", "--kube-api-burst=0"}, pod, "--kube-api-burst: must be positive when --kube-api-qps limits the rate",
		},
		"an addition of the cluster that is no path": {
			[]string{"--cluster-additions=spec.template.spec.tolerations,spec..x"}, pod,
			`--cluster-additions: reading "spec..x": column 6: expected a field or * after the dot, found '.'`,
		},
		"the API of templates by an unknown component": {
			[]string{"--template-api=Both"}, pod, `--template-api: must be Own or External, not "Both"`,
		},
		"instance types of captures": {
			[]string{"--capture-instancetype=Both"}, pod, `--capture-instancetype: must be Expand or Keep, not "Both"`,
		},
		"names of callers without an authority": {
			[]string{"--webhook-client-names=kube-apiserver"}, pod, "--webhook-client-names: needs --webhook-client-ca-file",
		},
		"everything that is wrong with the webhooks of the policies, at once": {
			[]string{"--policy-webhooks=x", "--policy-webhooks-timeout=1500ms", "--policy-webhooks-address=http://localhost", "--policy-statistics-interval=0s"}, pod,
			"--policy-statistics-interval: must be positive\n" +
				"--policy-webhooks-timeout: must be whole seconds from 1s to 30s\n" +
				"--policy-webhooks-trust: must be given with --policy-webhooks\n" +
				`--policy-webhooks-address: must be an https URL or NAMESPACE/NAME, not "http://localhost"`,
		},
		"an uninstallation without a namespace, which needs no certificates": {
			[]string{"--uninstall", "--certificate-dns-names=", "--leader-election-id="}, nil,
			"--leader-election-namespace: must be given outside a pod, or as POD_NAMESPACE\n--leader-election-id: must not be empty",
		},
		"a lease without a name": {
			[]string{"--leader-election-id="}, pod, "--leader-election-id: must not be empty",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.arguments, environmentOf(tc.environment), io.Discard)
			if err == nil {
				t.Fatal("want an error, got none")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunWithoutAServer(t *testing.T) {
	cases := map[string]struct {
		arguments  []string
		want       int
		wantStdout string
		wantStderr string
	}{
		"the version is asked for": {
			arguments: []string{"--version"}, wantStdout: "stencil-manager ",
		},
		"help is asked for": {
			arguments: []string{"--help"}, wantStderr: "-webhook-bind-address",
		},
		"the flags are wrong": {
			arguments: []string{"--certificate-source=vault"}, want: program.ExitUsage,
			wantStderr: `stencil-manager: --certificate-source: must be authority or files, not "vault"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			got := run(t.Context(), tc.arguments, environmentOf(map[string]string{"POD_NAMESPACE": "x"}), &stdout, &stderr)
			if got != tc.want {
				t.Errorf("exit code: want %d, got %d", tc.want, got)
			}
			if !strings.Contains(stdout.String(), tc.wantStdout) || !strings.Contains(stderr.String(), tc.wantStderr) {
				t.Errorf("unexpected output %q, error output %q", stdout.String(), stderr.String())
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	if _, err := parse([]string{"-h"}, environmentOf(nil), io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("want %v, got %v", flag.ErrHelp, err)
	}
}

// TestArgumentsOfKubeVirt parses the arguments of KubeVirt's own controller of its template component, v0.2.2, with what virt-operator appends.
func TestArgumentsOfKubeVirt(t *testing.T) {
	o, err := parse([]string{
		"--metrics-bind-address=:8443", "--leader-elect", "--health-probe-bind-address=:8081",
		"--metrics-cert-path=/tmp/k8s-metrics-server/metrics-certs", "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs",
		"-v", "3", "--tls-cipher-suites", "TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "--tls-min-version", "VersionTLS13",
	}, environmentOf(map[string]string{"POD_NAMESPACE": "kubevirt"}), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	metrics, limited := o.metrics(), &tls.Config{}
	metrics.TLSOpts[0](limited)
	if metrics.BindAddress != ":8443" || !metrics.SecureServing || metrics.CertDir != "/tmp/k8s-metrics-server/metrics-certs" {
		t.Errorf("metrics: %+v", metrics)
	}
	if !o.leaderElect || o.healthProbeBindAddress != ":8081" || o.webhookBindAddress != ":9443" || o.leaderElectionNamespace != "kubevirt" {
		t.Errorf("%+v", o)
	}
	if o.certificates.Source != program.SourceFiles || o.certificates.Directory != "/tmp/k8s-webhook-server/serving-certs" {
		t.Errorf("certificates: %+v", o.certificates)
	}
	if want := []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}; !slices.Equal(limited.CipherSuites, want) || limited.MinVersion != tls.VersionTLS13 {
		t.Errorf("TLS: %+v", limited)
	}
	if !o.zap.Level.Enabled(-1) || o.zap.Level.Enabled(-2) {
		t.Errorf("the level of the log is %v", o.zap.Level)
	}
}
