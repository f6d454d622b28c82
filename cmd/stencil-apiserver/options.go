package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/internal/certificates/publication"
	program "github.com/vmstencil/stencil/internal/server"
)

// options are the settings of the process.
type options struct {
	version    bool
	kubeconfig string
	// user is the name that the API server authenticates this server as.
	user string

	bindAddress         string
	pprofBindAddress    string
	maxRequests         int
	maxMutatingRequests int
	requestTimeout      time.Duration
	shutdownDelay       time.Duration

	certificates program.Certificates
	tls          program.TLS
	// certificateFile and keyFile are the files of the serving certificate, if they are given instead of a directory.
	certificateFile, keyFile string
	disableHTTP2             bool
	apiServices              []string
	objectResources          []string

	defaulting program.Defaulting

	authentication *genericoptions.DelegatingAuthenticationOptions
	authorization  *genericoptions.DelegatingAuthorizationOptions
	audit          *genericoptions.AuditOptions
	zap            zap.Options
}

func newOptions() *options {
	return &options{
		authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		audit:          genericoptions.NewAuditOptions(),
	}
}

// bind registers every flag, with its default.
func (o *options) bind(flags *pflag.FlagSet) {
	flags.BoolVar(&o.version, "version", false,
		"Print the version and exit.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"),
		"Kubeconfig file with which to reach the API server; needed outside a cluster only.")
	flags.StringVar(&o.user, "user", "",
		"Full name of the user as which this server authenticates to the API server, such as system:serviceaccount:stencil-system:stencil-apiserver. If empty, the server requests it from the API server. Flag --apiserver-user of stencil-manager must have the same value.")

	flags.StringVar(&o.bindAddress, "bind-address", ":8443",
		"Address on which the API, /metrics, /healthz, /livez and /readyz are served over HTTPS.")
	flags.Func("secure-port", "Short for --bind-address with this port of all addresses, as virt-operator gives it to the server of its template component, and likewise the three flags below.", func(port string) error {
		o.bindAddress = net.JoinHostPort("", port)
		return nil
	})
	flags.StringVar(&o.certificateFile, "tls-cert-file", "",
		"File tls.crt of the serving certificate: short for --certificate-source=files and --certificate-directory.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "",
		"File tls.key in the same directory.")
	flags.BoolVar(&o.disableHTTP2, "disable-http2-serving", false,
		"Offer HTTP/1.1 only.")
	flags.StringVar(&o.pprofBindAddress, "pprof-bind-address", "",
		"Address on which Go profiles are served over plain HTTP at /debug/pprof/; empty serves none.")
	flags.IntVar(&o.maxRequests, "max-requests-in-flight", 400,
		"How many requests that only read are served at a time, discovery among them; more are answered with 429.")
	flags.IntVar(&o.maxMutatingRequests, "max-mutating-requests-in-flight", 200,
		"How many process, create, processedtemplates and defaults requests are served at a time; more are answered with 429.")
	flags.DurationVar(&o.requestTimeout, "request-timeout", time.Minute,
		"How long a request may take.")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 10*time.Second,
		"How long to continue serving, not ready, after SIGTERM.")

	certificates := flag.NewFlagSet("", flag.ContinueOnError)
	o.certificates.Bind(certificates)
	o.tls.Bind(certificates)
	flags.AddGoFlagSet(certificates)
	flags.StringSliceVar(&o.apiServices, "api-services", nil,
		"APIServices through which this server is called, each apiservice/NAME (source authority). stencil-manager writes their caBundle.")
	flags.StringSliceVar(&o.objectResources, "object-resources", nil,
		"Resources of the objects that stencil-manager creates with a VirtualMachine, as in its flag of this name. What is processed from a template with others does not refer to the template.")

	defaulting := flag.NewFlagSet("", flag.ContinueOnError)
	o.defaulting.Bind(defaulting)
	flags.AddGoFlagSet(defaulting)

	o.authentication.AddFlags(flags)
	o.authorization.AddFlags(flags)
	o.audit.AddFlags(flags)
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	program.BindLogging(logging, &o.zap)
	flags.AddGoFlagSet(logging)
}

// parse reads the command line.
func parse(arguments []string, environment program.Lookup, stderr io.Writer) (*options, error) {
	o := newOptions()
	flags := pflag.NewFlagSet("stencil-apiserver", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	o.bind(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("arguments are not taken: %q", flags.Args())
	}
	if o.version {
		return o, nil
	}
	if o.certificateFile != "" || o.keyFile != "" {
		directory := filepath.Dir(o.certificateFile)
		if o.certificateFile != filepath.Join(directory, "tls.crt") || o.keyFile != filepath.Join(directory, "tls.key") {
			return nil, errors.New("--tls-cert-file, --tls-private-key-file: must be tls.crt and tls.key of one directory")
		}
		o.certificates.UseFiles(directory)
	}
	if o.certificates.Namespace == "" {
		own, err := program.Namespace(environment)
		if err != nil {
			return nil, err
		}
		o.certificates.Namespace = own
	}
	// Authentication and authorization use the same API server by default.
	if o.authentication.RemoteKubeConfigFile == "" {
		o.authentication.RemoteKubeConfigFile = o.kubeconfig
	}
	if o.authorization.RemoteKubeConfigFile == "" {
		o.authorization.RemoteKubeConfigFile = o.kubeconfig
	}
	return o, o.validate()
}

func (o *options) validate() error {
	var problems []error
	complain := func(wrong bool, what string) {
		if wrong {
			problems = append(problems, errors.New(what))
		}
	}
	complain(o.maxRequests <= 0, "--max-requests-in-flight: must be positive")
	complain(o.maxMutatingRequests <= 0, "--max-mutating-requests-in-flight: must be positive")
	complain(o.requestTimeout <= 0, "--request-timeout: must be positive")
	complain(o.shutdownDelay < 0, "--shutdown-delay: must not be negative")
	problems = append(problems, o.defaulting.Validate()...)
	problems = append(problems, o.certificates.Validate()...)
	if o.certificates.Source == program.SourceAuthority {
		if _, err := publication.ParseTargets(o.apiServices); err != nil {
			problems = append(problems, fmt.Errorf("--api-services: %w", err))
		}
	}
	for _, errs := range [][]error{o.authentication.Validate(), o.authorization.Validate(), o.audit.Validate()} {
		problems = append(problems, errs...)
	}
	return errors.Join(problems...)
}
