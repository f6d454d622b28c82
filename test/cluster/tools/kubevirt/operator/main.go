// Command operator prints, as JSON, the Deployment of virt-operator, whose images have the version of KubeVirt's module.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

func main() {
	release, err := version()
	if err == nil {
		deployment := components.NewOperatorDeployment("kubevirt", "quay.io/kubevirt", "", release, "2", release,
			"", "", "", "", "", "", "", "", "", "", "", "", "", "", corev1.PullIfNotPresent)
		err = json.NewEncoder(os.Stdout).Encode(deployment)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func version() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program was built without information about its modules")
	}
	for _, module := range info.Deps {
		if module.Path == "kubevirt.io/kubevirt" {
			return module.Version, nil
		}
	}
	return "", errors.New("this program is not linked with kubevirt.io/kubevirt")
}
