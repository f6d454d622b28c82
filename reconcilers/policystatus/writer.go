package policystatus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// maximumManager is the maximum length of the name of a field manager.
const maximumManager = 128

// replicaManager returns the field manager of a replica's entry.
func replicaManager(name string) string {
	manager := v1alpha1.FieldManagerPolicyReplica + name
	if len(manager) <= maximumManager {
		return manager
	}
	sum := sha256.Sum256([]byte(name))
	mark := hex.EncodeToString(sum[:8])
	return manager[:maximumManager-len(mark)] + mark
}

// apply writes the fields of a status that a field manager owns, and removes the manager's other fields. It returns nil if the policy no
// longer exists.
func apply(ctx context.Context, writer client.SubResourceClientConstructor, policy *v1alpha1.VirtualMachinePolicy, manager string, status *v1alpha1.VirtualMachinePolicyStatus) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("encoding the status of VirtualMachinePolicy %s: %w", policy.Name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": policy.Name,
			// The write must not affect another policy of the same name.
			"uid": string(policy.UID),
		},
		"status": fields,
	}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("VirtualMachinePolicy"))
	err = writer.SubResource("status").Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of VirtualMachinePolicy %s: %w", policy.Name, err)
	}
	return nil
}
