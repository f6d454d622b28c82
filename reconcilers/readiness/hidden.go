package readiness

import (
	"fmt"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// unread is the state of Secrets, ConfigMaps and ServiceAccounts. To check whether they exist, Stencil would need the right to list them,
// and RBAC has no such right that excludes their content.
var unread = v1beta1.SourceStatus{State: v1beta1.SourceUnknown, Reason: reasonNotRead, Message: "Stencil has no right to read objects of this kind"}

// hidden is like named, for objects that Stencil may not read.
func hidden(kind sources.Kind, in map[string]any, field, namespace string) []reference {
	found := named(kind, in, field, namespace)
	for i := range found {
		found[i].state = unread
	}
	return found
}

// hiddenReferences returns the Secrets, ConfigMaps and ServiceAccounts of a volume.
func hiddenReferences(one map[string]any, namespace string) []reference {
	switch {
	case one["secret"] != nil:
		return hidden("Secret", machine.MapAt(one, "secret"), "secretName", namespace)
	case one["configMap"] != nil:
		return hidden("ConfigMap", machine.MapAt(one, "configMap"), "name", namespace)
	case one["serviceAccount"] != nil:
		return hidden("ServiceAccount", machine.MapAt(one, "serviceAccount"), "serviceAccountName", namespace)
	case one["sysprep"] != nil:
		answers := machine.MapAt(one, "sysprep")
		return append(hidden("Secret", machine.MapAt(answers, "secret"), "name", namespace),
			hidden("ConfigMap", machine.MapAt(answers, "configMap"), "name", namespace)...)
	}
	for _, kind := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
		if data := machine.MapAt(one, kind); data != nil {
			return append(hidden("Secret", machine.MapAt(data, "secretRef"), "name", namespace),
				hidden("Secret", machine.MapAt(data, "networkDataSecretRef"), "name", namespace)...)
		}
	}
	return nil
}

// importSecrets returns the objects that CDI requires to read a source outside the cluster.
func importSecrets(source map[string]any, namespace string) (found []reference) {
	for _, elsewhere := range remoteKinds {
		from := machine.MapAt(source, elsewhere.field)
		found = append(found, hidden("Secret", from, "secretRef", namespace)...)
		found = append(found, hidden("ConfigMap", from, "certConfigMap", namespace)...)
		headers, _ := from["secretExtraHeaders"].([]any)
		for _, name := range headers {
			found = append(found, hidden("Secret", map[string]any{"name": name}, "name", namespace)...)
		}
	}
	return found
}

// credentials returns the Secrets from which a running VM gets keys and passwords. They belong to no volume, and are identified by their
// field.
func credentials(pod map[string]any, namespace string) (found []volume) {
	for i, one := range machine.MapsAt(pod, "accessCredentials") {
		for _, kind := range []string{"sshPublicKey", "userPassword"} {
			secret := machine.MapAt(machine.MapAt(machine.MapAt(one, kind), "source"), "secret")
			for _, from := range hidden("Secret", secret, "secretName", namespace) {
				found = append(found, volume{fmt.Sprintf("accessCredentials[%d]", i), from})
			}
		}
	}
	return found
}
