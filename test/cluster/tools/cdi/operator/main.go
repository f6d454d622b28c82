// Command operator prints the objects of CDI's operator as a List in JSON: definition, account, roles and Deployment. The images have the version of CDI's module.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/namespaced"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/operator"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run() error {
	release, err := version()
	if err != nil {
		return err
	}
	image := func(name string) string { return "quay.io/kubevirt/cdi-" + name + ":" + release }
	objects, err := operator.CreateOperatorResourceGroup("everything", &operator.FactoryArgs{
		Image: image("operator"),
		NamespacedArgs: namespaced.FactoryArgs{
			OperatorVersion: release, DeployClusterResources: "true", Verbosity: "1", PullPolicy: string(corev1.PullIfNotPresent), Namespace: "cdi",
			ControllerImage: image("controller"), ImporterImage: image("importer"), ClonerImage: image("cloner"), OvirtPopulatorImage: image("importer"),
			APIServerImage: image("apiserver"), UploadProxyImage: image("uploadproxy"), UploadServerImage: image("uploadserver"),
		},
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

func version() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program was built without information about its modules")
	}
	for _, module := range info.Deps {
		if module.Path == "kubevirt.io/containerized-data-importer" {
			return module.Version, nil
		}
	}
	return "", errors.New("this program is not linked with CDI")
}
