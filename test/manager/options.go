package manager

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Program is what is started.
type Program string

const (
	// StencilManager is the default.
	StencilManager Program = "stencil-manager"
	// StencilAPIServer is the aggregated API server. All that it serves, health included, is at
	// WebhookAddress, over HTTPS.
	StencilAPIServer Program = "stencil-apiserver"
)

// Options configure a stencil-manager, or another program of Stencil. The zero value of every field but Kubeconfig is useful.
type Options struct {
	// Program is what is started. Default: stencil-manager.
	Program Program
	// Kubeconfig is the path of the file by which the manager reaches the API server. Required.
	Kubeconfig string
	// Namespace is the manager's own namespace: it contains the lease of the leader election and the Secret of the certificate authority. It has to
	// exist. Default "stencil-system".
	Namespace string
	// Name marks the replica, for leader election events and logs. Default "stencil-manager".
	Name string
	// Args are further flags; they override the flags that Start sets.
	Args []string
	// Env holds further NAME=value pairs beside the environment of the test.
	Env []string
	// Binary is the path of the program. Default: that of package product.
	Binary string
	// Container runs the program from an image instead, with the service account of its volumes; Kubeconfig and Env are not used. Optional.
	Container *Container
	// WebhookAddress, MetricsAddress and HealthAddress are host:port. Default: a free port on
	// loopback each.
	WebhookAddress string
	MetricsAddress string
	HealthAddress  string
	// Log receives everything that the process writes, beside what Logs returns. Optional.
	Log io.Writer
	// ReadyTimeout is how long Start waits for /readyz. Default 60 s.
	ReadyTimeout time.Duration
	// WithoutWaiting makes Start return once the process runs; WaitReady waits later.
	WithoutWaiting bool
}

const (
	defaultNamespace    = "stencil-system"
	defaultName         = "stencil-manager"
	defaultReadyTimeout = time.Minute
)

// withDefaults returns a copy of o in which every field has a value.
func (o Options) withDefaults() (Options, error) {
	if o.Program == "" {
		o.Program = StencilManager
	}
	if o.Kubeconfig == "" && o.Container == nil {
		return o, fmt.Errorf("starting %s: no kubeconfig given", o.Program)
	}
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
	}
	if o.Name == "" {
		o.Name = defaultName
	}
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = defaultReadyTimeout
	}
	for _, address := range []*string{&o.WebhookAddress, &o.MetricsAddress, &o.HealthAddress} {
		if *address != "" {
			continue
		}
		free, err := FreeAddress()
		if err != nil {
			return o, fmt.Errorf("starting %s: %w", o.Program, err)
		}
		*address = free
	}
	return o, nil
}

// arguments returns the flags of the process: first those that isolate it from other processes of the same host and stop it without delay, then the
// caller's.
func (o Options) arguments() []string {
	first := []string{"--kubeconfig=" + o.Kubeconfig}
	if o.Container != nil {
		first = slices.Clone(o.Container.Args)
	}
	if o.Program == StencilAPIServer {
		return slices.Concat(first, []string{"--bind-address=" + o.WebhookAddress, "--shutdown-delay=0s"}, o.Args)
	}
	return slices.Concat(first, []string{
		"--webhook-bind-address=" + o.WebhookAddress,
		"--metrics-bind-address=" + o.MetricsAddress,
		"--health-probe-bind-address=" + o.HealthAddress,
		"--shutdown-delay=0s",
	}, o.Args)
}

// environment returns the variables of the process in addition to the test's own environment.
func (o Options) environment() []string {
	return append([]string{
		"POD_NAMESPACE=" + o.Namespace,
		"POD_NAME=" + o.Name,
	}, o.Env...)
}
