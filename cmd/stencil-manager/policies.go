package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/vmstencil/stencil/internal/certificates/publication"
	program "github.com/vmstencil/stencil/internal/server"
	"github.com/vmstencil/stencil/reconcilers/policywebhook"
)

// policyWebhookSettings returns the common settings of the policies' webhooks.
func (o *options) policyWebhookSettings() (policywebhook.Settings, error) {
	settings := policywebhook.Settings{TimeoutSeconds: int32(o.policyWebhooksTimeout / time.Second), Exempt: o.exemptNames()}
	if o.policyWebhooks == "" {
		return settings, nil
	}
	var problems []error
	if o.policyWebhooksTimeout%time.Second != 0 || settings.TimeoutSeconds < 1 || settings.TimeoutSeconds > 30 {
		problems = append(problems, errors.New("--policy-webhooks-timeout: must be whole seconds from 1s to 30s"))
	}
	if o.policyWebhooksTrust == "" {
		problems = append(problems, errors.New("--policy-webhooks-trust: must be given with --policy-webhooks"))
	}
	if address, err := url.Parse(o.policyWebhooksAddress); err == nil && address.Scheme == "https" && address.Host != "" {
		settings.URL = o.policyWebhooksAddress
		return settings, errors.Join(problems...)
	}
	namespace, name, found := strings.Cut(o.policyWebhooksAddress, "/")
	if !found || namespace == "" || name == "" || strings.ContainsAny(o.policyWebhooksAddress, ": ") || strings.Contains(name, "/") {
		problems = append(problems, fmt.Errorf("--policy-webhooks-address: must be an https URL or NAMESPACE/NAME, not %q", o.policyWebhooksAddress))
	}
	settings.Service = admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
	return settings, errors.Join(problems...)
}

// managesBundles reports whether the caBundle reconciler also maintains the webhooks of the
// policies.
func (o *options) managesBundles() bool {
	targets, err := publication.ParseTargets(o.webhookConfigurations)
	return err == nil && o.certificates.Source == program.SourceAuthority &&
		slices.Contains(targets, publication.Target{Kind: publication.Validating, Name: o.policyWebhooks})
}
