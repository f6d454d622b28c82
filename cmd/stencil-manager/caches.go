package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	approvalcache "github.com/vmstencil/stencil/cache/approvals"
	diskcache "github.com/vmstencil/stencil/cache/disks"
	exceptioncache "github.com/vmstencil/stencil/cache/exceptions"
	exemptioncache "github.com/vmstencil/stencil/cache/exemptions"
	instancetypecache "github.com/vmstencil/stencil/cache/instancetypes"
	kubevirtconfig "github.com/vmstencil/stencil/cache/kubevirt"
	"github.com/vmstencil/stencil/cache/macaddresses"
	"github.com/vmstencil/stencil/cache/objectkeys"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/cache/policies/child"
	"github.com/vmstencil/stencil/cache/policydata"
	schemacache "github.com/vmstencil/stencil/cache/schemas"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/rego"
)

// caches hold the state that webhooks decide from. Every replica has its own.
type caches struct {
	templates     *templatecache.Cache
	approvals     *approvalcache.Cache
	instancetypes *instancetypecache.Cache
	policies      *policycache.Cache
	policyData    *policydata.Cache
	exceptions    *exceptioncache.Cache
	exempt        *exemptioncache.Cache
	disks         *diskcache.Cache
	// objectKeys is nil if no objects are created.
	objectKeys *objectkeys.Cache
	// compiler compiles policies, both cached ones and those to be stored.
	compiler *rego.Compiler
	// kubevirt is nil without defaulting.
	kubevirt *kubevirtconfig.Cache
	// addresses is nil unless defaulting generates MAC addresses.
	addresses *macaddresses.Cache
}

// addCaches creates the caches and adds them to the manager.
func addCaches(mgr manager.Manager, o *options, logger logr.Logger) (caches, error) {
	var c caches
	var err error
	if c.templates, err = templatecache.New(templatecache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("templatecache"),
		Registerer: metrics.Registry,
	}); err != nil {
		return c, err
	}
	if c.approvals, err = approvalcache.New(approvalcache.Options{
		Config:             mgr.GetConfig(),
		Logger:             logger.WithName("approvalcache"),
		Registerer:         metrics.Registry,
		ExcludedNamespaces: []string{o.namespace},
	}); err != nil {
		return c, err
	}
	if c.instancetypes, err = instancetypecache.New(instancetypecache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("instancetypecache"),
		Registerer: metrics.Registry,
	}); err != nil {
		return c, err
	}
	if c.exempt, err = exemptioncache.New(exemptioncache.Options{
		Config:  mgr.GetConfig(),
		Logger:  logger.WithName("exemptions"),
		Names:   o.exemptNames(),
		Binding: o.exemptBinding,
	}); err != nil {
		return c, err
	}
	if c.disks, err = diskcache.New(diskcache.Options{
		Config: mgr.GetConfig(),
		Logger: logger.WithName("disks"),
	}); err != nil {
		return c, err
	}
	if c.compiler, err = rego.NewCompiler(); err != nil {
		return c, fmt.Errorf("making the compiler of policies: %w", err)
	}
	schemas, err := schemacache.New(schemacache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("schemas"),
		Registerer: metrics.Registry,
		Compiler:   c.compiler,
	})
	if err != nil {
		return c, err
	}
	if c.policyData, err = policydata.New(policydata.Options{
		Config:    mgr.GetConfig(),
		Logger:    logger.WithName("policydata"),
		Namespace: o.namespace,
		Sizes:     c.instancetypes,
	}); err != nil {
		return c, err
	}
	// The program itself, also if its file has been replaced.
	checker := child.New(child.Options{
		Program: []string{"/proc/self/exe", child.Argument},
		Schemas: c.compiler.Schemas,
		Logger:  logger.WithName("policychild"),
	})
	if err := checker.Register(metrics.Registry); err != nil {
		return c, fmt.Errorf("registering the metrics of the compiler of policies: %w", err)
	}
	if c.policies, err = policycache.New(policycache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("policycache"),
		Registerer: metrics.Registry,
		Compiler:   c.compiler,
		Checker:    checker,
		Schemas:    schemas,
		Data:       c.policyData,
	}); err != nil {
		return c, err
	}
	if c.exceptions, err = exceptioncache.New(exceptioncache.Options{
		Config:     mgr.GetConfig(),
		Logger:     logger.WithName("exceptioncache"),
		Registerer: metrics.Registry,
	}); err != nil {
		return c, err
	}
	runnables := map[string]manager.Runnable{
		"template": c.templates, "approval": c.approvals, "instance type": c.instancetypes, "policy": c.policies, "exemption": c.exempt,
		"disk": c.disks, "schema": schemas, "exception": c.exceptions,
		"policy data": c.policyData,
	}
	if o.objectAccount != "" {
		if c.objectKeys, err = objectkeys.New(objectkeys.Options{
			Config: mgr.GetConfig(),
			Logger: logger.WithName("objectkeys"),
			Secret: o.objectKeysSecret(),
		}); err != nil {
			return c, err
		}
		runnables["object key"] = c.objectKeys
	}
	if o.defaulting.Socket != "" {
		if c.kubevirt, err = kubevirtconfig.New(kubevirtconfig.Options{
			Config: mgr.GetConfig(),
			Logger: logger.WithName("kubevirtconfig"),
		}); err != nil {
			return c, err
		}
		runnables["KubeVirt configuration"] = c.kubevirt
	}
	if o.defaulting.GeneratesMAC() {
		if c.addresses, err = macaddresses.New(macaddresses.Options{
			Config: mgr.GetConfig(),
			Logger: logger.WithName("macaddresses"),
		}); err != nil {
			return c, err
		}
		runnables["MAC address"] = c.addresses
	}
	for name, cache := range runnables {
		if err := mgr.Add(cache); err != nil {
			return c, fmt.Errorf("adding the %s cache: %w", name, err)
		}
	}
	return c, nil
}
