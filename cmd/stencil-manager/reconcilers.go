package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/exemption"
	"github.com/vmstencil/stencil/reconcilers"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// clusterRolePrefix begins the value of --protected-objects that names a ClusterRole.
const clusterRolePrefix = "clusterrole/"

// exemptNames returns the names of --exempt-users.
func (o *options) exemptNames() exemption.Names { return exemption.Parse(o.exemptUsers, o.namespace) }

// objectKeysSecret returns the Secret with the keys that encrypt objects.
func (o *options) objectKeysSecret() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.objectKeys}
}

// additions returns the places at which the cluster adds to VirtualMachines.
func (o *options) additions() (*approval.Additions, error) {
	additions, err := approval.ClusterAdditions(o.clusterAdditions...)
	if err != nil {
		return nil, fmt.Errorf("--cluster-additions: %w", err)
	}
	if o.defaulting.Socket != "" {
		additions = additions.WithDefaults()
	}
	return additions, nil
}

// reconcilers returns the options of the reconcilers.
func (o *options) reconcilers(c caches) (reconcilers.Options, error) {
	additions, err := o.additions()
	if err != nil {
		return reconcilers.Options{}, err
	}
	settings, err := o.policyWebhookSettings()
	if err != nil {
		return reconcilers.Options{}, err
	}
	networks, err := prefixes("image-networks", o.imageNetworks)
	if err != nil {
		return reconcilers.Options{}, err
	}
	policyNetworks, err := prefixes("policy-source-networks", o.policySourceNetworks)
	if err != nil {
		return reconcilers.Options{}, err
	}
	clusterNetworks, err := prefixes("cluster-networks", o.clusterNetworks)
	if err != nil {
		return reconcilers.Options{}, err
	}
	transfers, err := o.transfers.settings(o.namespace)
	if err != nil {
		return reconcilers.Options{}, err
	}
	transfers.Settings.ClusterNetworks = clusterNetworks
	populators, err := o.populatorKinds()
	if err != nil {
		return reconcilers.Options{}, err
	}
	protectedObjects, protectedObjectsRole := o.protectedObjects, ""
	if role, ok := strings.CutPrefix(o.protectedObjects, clusterRolePrefix); ok {
		protectedObjects, protectedObjectsRole = "", role
	}
	return reconcilers.Options{
		Namespace:     o.namespace,
		Registerer:    metrics.Registry,
		Templates:     c.templates,
		Policies:      c.policies,
		Exceptions:    c.exceptions,
		Instancetypes: c.instancetypes,
		Approvals:     c.approvals,
		Disks:         c.disks,
		ExemptNames:   o.exemptNames(),
		ExemptBinding: o.exemptBinding,
		Audit: reconcilers.Audit{
			Interval:        o.auditInterval,
			Additions:       additions,
			LauncherImages:  o.launcherImages,
			Controllers:     o.ownerGroups,
			OpenEntryPoints: o.openEntryPoints,
			WritableKeys:    o.writableKeys,
		},
		DiskAccount:          o.diskAccount,
		RevisionAccount:      o.revisionAccount,
		ImageAccount:         o.imageAccount,
		ImageNamespaces:      o.imageNamespaces,
		ImageNetworks:        networks,
		ClusterNetworks:      clusterNetworks,
		PolicySourceAccount:  o.policySourceAccount,
		PolicySourceNetworks: policyNetworks,
		Transfers:            transfers,
		ObjectAccount:        o.objectAccount,
		ObjectKeys:           c.objectKeys,
		ObjectKeysSecret:     o.objectKeysSecret(),
		ReadinessDryRun:      o.readinessDryRun,
		Populators:           populators,
		PolicyWebhooks: reconcilers.PolicyWebhooks{
			Configuration: o.policyWebhooks,
			Reference:     o.policyWebhooksTrust,
			BundleManaged: o.managesBundles(),
			Settings:      settings,
		},
		Replica:                  o.replica,
		PolicyStatisticsInterval: o.policyStatisticsInterval,
		PolicyLibrary:            o.policyLibrary,
		ProtectedObjects:         protectedObjects,
		ProtectedObjectsRole:     protectedObjectsRole,
		ProtectedObjectsTrust:    o.protectedObjectsTrust,
		Release:                  o.release,
		InstallationInterval:     o.installationInterval,
		TemplateAPI:              installation.TemplateAPI(o.templateAPI),
		CaptureInstancetype:      v1beta1.CaptureInstancetype(o.captureInstancetype),
		StrictSource:             o.requestsStrictSource,
		DefaultsWebhook:          o.defaulting.Socket != "",
	}, nil
}

// populatorKinds parses the kinds of volume populators.
func (o *options) populatorKinds() ([]sources.Populator, error) {
	var kinds []sources.Populator
	for _, text := range o.populators {
		kind, err := sources.ParsePopulator(text)
		if err != nil {
			return nil, fmt.Errorf("--populators: %w", err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}
