package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/reconcilers/audit/observed"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// images are the repositories of images of containers in pods of VMs. virt-controller takes its own image from the flag --launcher-image,
// and images of sidecars from an environment variable, from annotations and from network bindings. virt-operator computes the flag and the
// variable, and stores their inputs in the status of the KubeVirt object. Tags and digests are not compared: pods that started before an
// upgrade have those of an older KubeVirt.
type images struct {
	// launchers and shims are KubeVirt's own; if there are none, they are unknown and not compared.
	launchers, shims []string
	// bindings are the sidecars of network bindings that the KubeVirt object lists.
	bindings []string
	// others are additional repositories that a cluster admin permits.
	others []string
}

// deployment holds the relevant fields of the configuration with which virt-operator deployed KubeVirt.
type deployment struct {
	Registry          string `json:"registry"`
	ImagePrefix       string `json:"imagePrefix"`
	VirtLauncherImage string `json:"virtLauncherImage"`
	SidecarShimImage  string `json:"SidecarShimImage"`
}

// addKubeVirt adds the images of a KubeVirt object: those of the present deployment and, during an upgrade, of the next one.
func (i *images) addKubeVirt(object map[string]any) {
	status := machine.MapAt(object, "status")
	for _, key := range []string{"observedDeploymentConfig", "targetDeploymentConfig"} {
		text, _ := status[key].(string)
		var d deployment
		if text == "" || json.Unmarshal([]byte(text), &d) != nil {
			continue
		}
		i.launchers = append(i.launchers, d.image(d.VirtLauncherImage, "virt-launcher")...)
		i.shims = append(i.shims, d.image(d.SidecarShimImage, "sidecar-shim")...)
	}
	for _, binding := range machine.MapAt(object, "spec", "configuration", "network", "binding") {
		plugin, _ := binding.(map[string]any)
		if image, _ := plugin["sidecarImage"].(string); image != "" {
			i.bindings = append(i.bindings, repository(image))
		}
	}
}

// image returns the repository of an image that is specified as own, or is derived from the registry.
func (d deployment) image(own, name string) []string {
	switch {
	case own != "":
		return []string{repository(own)}
	case d.Registry != "":
		return []string{d.Registry + "/" + d.ImagePrefix + name}
	default:
		return nil
	}
}

// repository returns an image without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	return image
}

// foreign returns problems with containers of a pod that come neither from KubeVirt nor from the spec of an instance, in the order of the
// containers.
func (i *images) foreign(pod, instance observed.Object) []string {
	var problems []string
	for _, container := range pod.Containers {
		from := repository(container.Image)
		if slices.Contains(i.others, from) {
			continue
		}
		permitted, added := i.of(container.Name, instance)
		switch {
		case !added:
			problems = append(problems, fmt.Sprintf("container %s of pod %s, which KubeVirt does not add", container.Name, pod.Name))
		case permitted != nil && !slices.Contains(permitted, from):
			problems = append(problems, fmt.Sprintf("image of container %s of pod %s, which is from %s", container.Name, pod.Name, from))
		}
	}
	return problems
}

// of returns the permitted repositories of a container with this name, nil if they are unknown, and whether KubeVirt adds such a container.
func (i *images) of(container string, instance observed.Object) (permitted []string, added bool) {
	switch {
	case container == "compute", container == "container-disk-binary", container == "guest-console-log", container == "hotplug-disk",
		strings.HasPrefix(container, "virtiofs-"):
		return i.launchers, true
	case strings.HasPrefix(container, "volume"):
		permitted = []string{}
		for _, image := range instance.Disks {
			permitted = append(permitted, repository(image))
		}
		return permitted, true
	case strings.HasPrefix(container, "hook-sidecar-"):
		if len(i.shims) == 0 {
			return nil, true
		}
		return slices.Concat(i.shims, i.bindings, sidecars(instance.Sidecars)), true
	default:
		return nil, false
	}
}

// sidecars returns the repositories in the annotation that lists sidecars. instanceCheck compares the annotation with that of the
// VirtualMachine.
func sidecars(annotation string) []string {
	var listed []struct {
		Image string `json:"image"`
	}
	if annotation == "" || json.Unmarshal([]byte(annotation), &listed) != nil {
		return nil
	}
	var repositories []string
	for _, one := range listed {
		if one.Image != "" {
			repositories = append(repositories, repository(one.Image))
		}
	}
	return repositories
}
