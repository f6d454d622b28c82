package kubelet

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vmstencil/stencil/test/controlplane/csi"
)

// Names in the pods of CDI's importer.
const (
	importer         = "importer"
	importerVolume   = "cdi-data-vol"
	importerEndpoint = "IMPORTER_ENDPOINT"
)

// imported writes what a simulated importer pod of CDI leaves in the volume: csi.Pattern of the source's URL, or an empty disk if there is no URL. The real
// importer needs cgo and does not run on a plane.
func (n *Nodes) imported(ctx context.Context, pod *corev1.Pod) error {
	if n.options.Volumes == nil || pod.Labels[workerLabel] != importer {
		return nil
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != importerVolume || volume.PersistentVolumeClaim == nil {
			continue
		}
		content := csi.Pattern(endpoint(pod))
		if endpoint(pod) == "" {
			content = strings.NewReader("")
		}
		return n.options.Volumes.WriteDisk(ctx, pod.Namespace, volume.PersistentVolumeClaim.ClaimName, content)
	}
	return nil
}

func endpoint(pod *corev1.Pod) string {
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == importerEndpoint {
			return variable.Value
		}
	}
	return ""
}
