package main

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/reconcilers/uninstall"
)

// uninstallHold is the time in which Helm deletes the managers after the hook. No manager leads meanwhile.
const uninstallHold = time.Minute

// prepareUninstallation prepares the cluster for the removal of Stencil.
func prepareUninstallation(ctx context.Context, o *options, config *rest.Config, logger logr.Logger) error {
	return uninstall.Run(ctx, uninstall.Options{
		Config: config,
		Lease:  types.NamespacedName{Namespace: o.leaderElectionNamespace, Name: o.leaderElectionID},
		Hold:   uninstallHold,
		Report: reporting(logger),
	})
}

// removeLeftovers deletes the objects of failed revisions of an uninstalled release.
func removeLeftovers(ctx context.Context, o *options, config *rest.Config, logger logr.Logger) error {
	namespace, name, _ := strings.Cut(o.release, "/")
	return uninstall.Leftovers(ctx, config, uninstall.Release{Namespace: namespace, Name: name}, false, reporting(logger))
}

func reporting(logger logr.Logger) func(uninstall.Step) {
	return func(step uninstall.Step) { logger.Info(step.Action, "object", step.Object, "note", step.Note) }
}
