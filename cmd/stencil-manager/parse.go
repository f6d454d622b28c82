package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/certificates/publication"
	program "github.com/vmstencil/stencil/internal/server"
)

const (
	// environmentPrefix is the prefix of the environment variables that set flags.
	environmentPrefix = "STENCIL_"
	// nameVariable is the environment variable in which the chart passes the name of the pod.
	nameVariable = "POD_NAME"
)

// parse reads the flags, and the environment for flags that are not given.
func parse(arguments []string, environment program.Lookup, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("stencil-manager", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.bind(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: there are flags only", flags.Arg(0))
	}
	if err := applyEnvironment(flags, environment); err != nil {
		return nil, err
	}
	if o.version {
		return o, nil
	}
	if err := o.completeNamespaces(environment); err != nil {
		return nil, err
	}
	if err := o.completeReplica(environment); err != nil {
		return nil, err
	}
	return o, o.validate()
}

// variable returns the name of the environment variable that sets a flag.
func variable(flagName string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// applyEnvironment sets the flags that were not given from the environment.
func applyEnvironment(flags *flag.FlagSet, environment program.Lookup) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var problems []error
	flags.VisitAll(func(f *flag.Flag) {
		value, found := environment(variable(f.Name))
		if !found || given[f.Name] || f.Name == versionFlag {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			problems = append(problems, fmt.Errorf("environment variable %s: invalid value %q: %w", variable(f.Name), value, err))
		}
	})
	return errors.Join(problems...)
}

// completeNamespaces defaults empty namespaces to the manager's own.
func (o *options) completeNamespaces(environment program.Lookup) error {
	own, err := program.Namespace(environment)
	if err != nil {
		return err
	}
	for _, namespace := range []*string{&o.leaderElectionNamespace, &o.certificates.Namespace} {
		if *namespace == "" {
			*namespace = own
		}
	}
	if o.namespace = own; own == "" {
		o.namespace = o.leaderElectionNamespace
	}
	return nil
}

// completeReplica determines the name of this replica.
func (o *options) completeReplica(environment program.Lookup) (err error) {
	if o.replica, _ = environment(nameVariable); o.replica != "" {
		return nil
	}
	if o.replica, err = os.Hostname(); err != nil {
		return fmt.Errorf("finding out the name of this replica: %w", err)
	}
	return nil
}

// validate returns all errors in the options.
func (o *options) validate() error {
	var problems []error
	complain := func(wrong bool, format string, arguments ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, arguments...))
		}
	}
	complain(o.release != "" && strings.Count(o.release, "/") != 1, "--release: must be NAMESPACE/NAME, not %q", o.release)
	if o.uninstalled {
		complain(o.release == "", "--release: must be given with --uninstalled")
		return errors.Join(problems...)
	}
	if o.uninstall {
		complain(o.leaderElectionNamespace == "", "--leader-election-namespace: must be given outside a pod, or as %s", program.NamespaceVariable)
		complain(o.leaderElectionID == "", "--leader-election-id: must not be empty")
		return errors.Join(problems...)
	}
	complain(o.shutdownDelay < 0, "--shutdown-delay: must not be negative")
	complain(o.auditInterval <= 0, "--audit-interval: must be positive")
	complain(o.installationInterval <= 0, "--installation-interval: must be positive")
	complain(o.captureInstancetype != string(v1beta1.CaptureInstancetypeExpand) && o.captureInstancetype != string(v1beta1.CaptureInstancetypeKeep),
		"--capture-instancetype: must be %s or %s, not %q", v1beta1.CaptureInstancetypeExpand, v1beta1.CaptureInstancetypeKeep, o.captureInstancetype)
	complain(!installation.TemplateAPI(o.templateAPI).Known(),
		"--template-api: must be %s or %s, not %q", installation.Own, installation.External, o.templateAPI)
	if _, err := o.additions(); err != nil {
		problems = append(problems, err)
	}
	if _, err := o.populatorKinds(); err != nil {
		problems = append(problems, err)
	}
	complain(o.webhookClientCAFile == "" && len(o.webhookClientNames) > 0, "--webhook-client-names: needs --webhook-client-ca-file")
	complain(o.decisionLogSample < 0 || o.decisionLogSample > 1, "--decision-log-sample: must be between 0 and 1")
	complain(o.policyStatisticsInterval <= 0, "--policy-statistics-interval: must be positive")
	if _, err := o.policyWebhookSettings(); err != nil {
		problems = append(problems, err)
	}
	complain(o.defaultingFailurePolicy != failurePolicyIgnore && o.defaultingFailurePolicy != failurePolicyFail,
		"--defaulting-failure-policy: must be %s or %s, not %q", failurePolicyIgnore, failurePolicyFail, o.defaultingFailurePolicy)
	problems = append(problems, o.defaulting.Validate()...)
	complain(o.shutdownTimeout <= 0, "--shutdown-timeout: must be positive")
	complain(o.leaderElect && o.leaderElectionNamespace == "",
		"--leader-election-namespace: must be given outside a pod, or as %s", program.NamespaceVariable)
	complain(o.leaderElect && o.leaderElectionID == "", "--leader-election-id: must not be empty")
	complain(o.kubeAPIQPS >= 0 && o.kubeAPIBurst <= 0, "--kube-api-burst: must be positive when --kube-api-qps limits the rate")

	problems = append(problems, o.certificates.Validate()...)
	if o.certificates.Source == program.SourceAuthority {
		if _, err := publication.ParseTargets(o.webhookConfigurations); err != nil {
			problems = append(problems, fmt.Errorf("--webhook-configurations: %w", err))
		}
		if _, err := publication.ParseTargets(o.apiServices); err != nil {
			problems = append(problems, fmt.Errorf("--api-services: %w", err))
		}
	}
	return errors.Join(problems...)
}
