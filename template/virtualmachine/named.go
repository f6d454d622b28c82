package virtualmachine

// NamedObjects calls visit for each field of a VirtualMachine's spec.template.spec that names a Secret or a ConfigMap of its namespace: kind is that
// of the object, and in[key] its name.
func NamedObjects(guest map[string]any, visit func(kind string, in map[string]any, key string)) {
	at := func(kind, key string, in map[string]any, path ...string) {
		for _, step := range path {
			in = MapAt(in, step)
		}
		if name, _ := in[key].(string); name != "" {
			visit(kind, in, key)
		}
	}
	for _, volume := range MapsAt(guest, "volumes") {
		at("Secret", "secretName", volume, "secret")
		at("ConfigMap", "name", volume, "configMap")
		at("Secret", "name", volume, "sysprep", "secret")
		at("ConfigMap", "name", volume, "sysprep", "configMap")
		at("Secret", "imagePullSecret", volume, "containerDisk")
		for _, source := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
			at("Secret", "name", volume, source, "secretRef")
			at("Secret", "name", volume, source, "networkDataSecretRef")
		}
	}
	at("Secret", "imagePullSecret", guest, "domain", "firmware", "kernelBoot", "container")
	for _, credential := range MapsAt(guest, "accessCredentials") {
		for _, key := range []string{"sshPublicKey", "userPassword"} {
			at("Secret", "secretName", credential, key, "source", "secret")
		}
	}
}
