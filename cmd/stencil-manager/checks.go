package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/webhooks/serving"
)

// synced is a cache that takes time to fill.
type synced interface {
	Synced() bool
}

// addChecks adds the checks of /healthz and /readyz. Liveness checks only that the process answers: a restart fixes
// none of the conditions that can make the manager unready.
func addChecks(mgr manager.Manager, source certificates.Source, server *serving.Server, c caches, logger logr.Logger) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	checks := map[string]healthz.Checker{
		"certificate":   source.Ready,
		"webhooks":      server.Ready,
		"templates":     filled("the template cache is not synced", c.templates),
		"approvals":     filled("the approval cache is not synced", c.approvals),
		"instancetypes": filled("the cache of instance types and preferences is not synced", c.instancetypes),
		"exemptusers":   filled("the cache of exempt users is not synced", c.exempt),
		"policies":      filled("the policies have not been compiled yet", c.policies),
		"policydata":    filled("the ConfigMaps that policies read are not synced", c.policyData),
		"exceptions":    filled("the cache of policy exceptions is not synced", c.exceptions),
	}
	if c.kubevirt != nil {
		checks["kubevirt"] = filled("the configuration of KubeVirt is not synced", c.kubevirt)
	}
	if c.addresses != nil {
		checks["macaddresses"] = filled("the MAC address cache is not synced", c.addresses)
	}
	for name, check := range checks {
		if err := mgr.AddReadyzCheck(name, logged(name, check, logger)); err != nil {
			return fmt.Errorf("adding the readiness check %s: %w", name, err)
		}
	}
	return nil
}

// filled returns a check that fails with the given problem until the cache is filled.
func filled(problem string, cache synced) healthz.Checker {
	return func(*http.Request) error {
		if !cache.Synced() {
			return errors.New(problem)
		}
		return nil
	}
}

// logged returns a check that logs its result when it changes: /readyz itself withholds reasons.
func logged(name string, check healthz.Checker, logger logr.Logger) healthz.Checker {
	var mutex sync.Mutex
	before := "not checked yet"
	return func(request *http.Request) error {
		err := check(request)
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		mutex.Lock()
		defer mutex.Unlock()
		if reason != before {
			before = reason
			logger.Info("readiness changed", "check", name, "ready", err == nil, "reason", reason)
		}
		return err
	}
}
