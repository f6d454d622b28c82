// Package cluster connects to the cluster of a kubeconfig, with kubectl's flags, and reads from
// it the objects that policies evaluate.
package cluster

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// Flags select the cluster, the user and the namespace.
type Flags struct {
	rules         *clientcmd.ClientConfigLoadingRules
	overrides     clientcmd.ConfigOverrides
	allNamespaces bool
	// Unlimited disables the client's limit of requests a second, for commands that read many objects, a few at a time: the
	// API server has limits of its own.
	Unlimited bool
}

// Register adds kubectl's flags.
func (f *Flags) Register(flags *pflag.FlagSet) {
	f.register(flags, clientcmd.RecommendedConfigOverrideFlags(""))
}

// RegisterForAll adds kubectl's flags, with one for all namespaces.
func (f *Flags) RegisterForAll(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "all namespaces")
	f.Register(flags)
}

// RegisterUnnamespaced adds kubectl's flags without the namespace, for commands about
// cluster-scoped objects.
func (f *Flags) RegisterUnnamespaced(flags *pflag.FlagSet) {
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	f.register(flags, names)
}

// RegisterForRequests adds kubectl's flags without the namespace and the user, for commands with flags of these names for requests that they evaluate.
func (f *Flags) RegisterForRequests(flags *pflag.FlagSet) {
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace, names.ContextOverrideFlags.AuthInfoName = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	f.register(flags, names)
}

func (f *Flags) register(flags *pflag.FlagSet, names clientcmd.ConfigOverrideFlags) {
	f.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&f.rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig (default $KUBECONFIG, or ~/.kube/config)")
	names.Timeout.Default = "0"
	clientcmd.BindOverrideFlags(&f.overrides, own, names)
	own.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "namespace" {
			flag.Usage = "namespace (default that of the context)"
		} else {
			flag.Annotations = map[string][]string{cli.Connection: {"true"}}
		}
	})
	flags.AddFlagSet(own)
}

// Client limits, as in kubectl.
const (
	queriesPerSecond = 50
	burst            = 300
)

// Namespace returns the namespace given on the command line, empty when none was.
func (f *Flags) Namespace() string { return f.overrides.Context.Namespace }

// Config returns the configuration of clients of the cluster. Warnings of the API server are written to warnings, each once.
func (f *Flags) Config(warnings io.Writer) (*rest.Config, error) {
	config, _, err := f.config(warnings)
	return config, err
}

func (f *Flags) config(warnings io.Writer) (config *rest.Config, namespace string, err error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides)
	config, err = loaded.ClientConfig()
	if err == nil {
		namespace, _, err = loaded.Namespace()
	}
	if err != nil {
		return nil, "", cli.Cluster(fmt.Errorf("reading the kubeconfig: %w", err))
	}
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent()
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	config.QPS, config.Burst = queriesPerSecond, burst
	if f.Unlimited {
		config.QPS = -1
	}
	return config, namespace, nil
}

// Client returns a client of the cluster. Warnings of the API server are written to warnings,
// each once.
func (f *Flags) Client(warnings io.Writer) (*Client, error) {
	config, namespace, err := f.config(warnings)
	if err != nil {
		return nil, err
	}
	if f.allNamespaces {
		namespace = ""
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, cli.Cluster(fmt.Errorf("making a client: %w", err))
	}
	return &Client{rest: client, Namespace: namespace, requested: namespace}, nil
}

func userAgent() string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return "stencilctl/" + version
}
