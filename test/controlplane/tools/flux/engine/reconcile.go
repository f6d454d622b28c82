package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/normalize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// name is that of the Kustomization and of the release.
	name = "application"
	// The field managers of Flux's controllers.
	kustomizeController = "kustomize-controller"
	helmController      = "helm-controller"
)

// reconcile applies and compares the objects as kustomize-controller does, compares them as helm-controller does, and evaluates their health.
func reconcile(ctx context.Context, o options, objects []*unstructured.Unstructured, checks []kustomize.CustomHealthCheck) (report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return report{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, -1
	// A test denies on purpose, and reads the error.
	config.WarningHandler = rest.NoWarnings{}
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return report{}, fmt.Errorf("making the client: %w", err)
	}
	custom, err := readers(checks, kube.RESTMapper())
	if err != nil {
		return report{}, err
	}
	poller := polling.NewStatusPoller(kube, kube.RESTMapper(), polling.Options{CustomStatusReaders: custom})
	manager := ssa.NewResourceManager(kube, poller, ssa.Owner{Field: kustomizeController, Group: "kustomize.toolkit.fluxcd.io"})
	for _, each := range objects {
		if each.GetNamespace() == "" {
			each.SetNamespace(o.namespace)
		}
	}
	manager.SetOwnerLabels(objects, name, o.namespace)
	if err := normalize.UnstructuredList(objects); err != nil {
		return report{}, fmt.Errorf("normalizing the manifests: %w", err)
	}
	applied := map[string]string{}
	if o.apply {
		changes, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
		if err != nil {
			return report{}, fmt.Errorf("applying: %w", err)
		}
		for _, change := range changes.Entries {
			applied[change.ObjMetadata.GroupKind.Kind+"/"+change.ObjMetadata.Name] = string(change.Action)
		}
	}
	var result report
	if o.wait > 0 {
		err := manager.WaitForSetWithContext(ctx, object.UnstructuredSetToObjMetadataSet(objects), ssa.WaitOptions{Interval: time.Second, Timeout: o.wait, FailFast: true})
		if err != nil {
			result.Wait = err.Error()
		}
	}
	for _, desired := range objects {
		each := describe(desired)
		each.Applied = applied[each.Kind+"/"+each.Name]
		change, _, _, err := manager.Diff(ctx, desired.DeepCopy(), ssa.DefaultDiffOptions())
		if err != nil {
			return report{}, fmt.Errorf("comparing: %w", err)
		}
		each.Drift = string(change.Action)
		difference, err := jsondiff.Unstructured(ctx, kube, desired.DeepCopy(), jsondiff.FieldOwner(helmController), jsondiff.Rationalize(true))
		if err != nil {
			return report{}, fmt.Errorf("comparing as helm-controller: %w", err)
		}
		if len(difference.Patch) > 0 {
			if each.Difference, err = json.Marshal(difference.Patch); err != nil {
				return report{}, fmt.Errorf("printing a difference: %w", err)
			}
		}
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(desired.GroupVersionKind())
		if err := kube.Get(ctx, client.ObjectKeyFromObject(desired), stored); client.IgnoreNotFound(err) != nil {
			return report{}, fmt.Errorf("reading an object: %w", err)
		} else if err == nil {
			if err := each.evaluate(ctx, stored, custom, kube.RESTMapper()); err != nil {
				return report{}, err
			}
		}
		result.Resources = append(result.Resources, each)
	}
	return result, nil
}
