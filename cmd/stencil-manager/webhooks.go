package main

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/webhooks"
	"github.com/vmstencil/stencil/webhooks/serving"
)

// The values of --defaulting-failure-policy.
const (
	failurePolicyIgnore = "Ignore"
	failurePolicyFail   = "Fail"
)

// webhooks returns the options of the webhooks that server serves.
func (o *options) webhooks(server *serving.Server, c caches) (webhooks.Options, error) {
	additions, err := o.additions()
	return webhooks.Options{
		Server:            server,
		Registerer:        metrics.Registry,
		Templates:         c.templates,
		Approvals:         c.approvals,
		Instancetypes:     c.instancetypes,
		Policies:          c.policies,
		Exceptions:        c.exceptions,
		Exempt:            c.exempt,
		Disks:             c.disks,
		KubeVirt:          c.kubevirt,
		Addresses:         c.addresses,
		TemplateAPI:       installation.TemplateAPI(o.templateAPI),
		Namespace:         o.namespace,
		APIServerUser:     o.apiserverUser,
		DecisionLogSample: o.decisionLogSample,
		Additions:         additions,
		Schemas:           c.compiler.Schemas,
		Lending:           o.diskAccount != "",
		ObjectKeys:        c.objectKeys,
		ObjectResources:   o.objectResources,
		ObjectAccount:     o.objectAccount,

		LentObjectResources: o.lentObjectResources,
		Defaulting: webhooks.Defaulting{
			Socket:     o.defaulting.Socket,
			Policy:     o.defaulting.Policy(),
			FailClosed: o.defaultingFailurePolicy == failurePolicyFail,
		},
	}, err
}
