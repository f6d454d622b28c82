package oci

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/transfers"
	"github.com/vmstencil/stencil/internal/registry"
)

// NewCommand returns the group of commands.
func NewCommand(streams cli.Streams) *cobra.Command {
	options := registry.Options{}
	// Without a folder for caches, no upload of another command is continued.
	if caches, err := os.UserCacheDir(); err == nil {
		options.Uploads = filepath.Join(caches, "stencilctl", "uploads")
	}
	return newCommand(streams, options)
}

func newCommand(streams cli.Streams, options registry.Options) *cobra.Command {
	command := &cobra.Command{
		Use:   "oci",
		Short: "Push, pull, inspect, import and export templates with their disks as OCI artifacts",
		Long: `Push, pull, inspect, import and export OCI artifacts: VirtualMachineTemplates and VirtualMachines with their disks, as KubeVirt 1.9 exports them.

An artifact is in a registry, oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@DIGEST, in a tar archive such as "virtctl vmexport download --format=oci" writes,
or in a folder with a layout. The commands use the credentials of docker login or podman login.
Only import and export need a cluster, which reads and writes artifacts itself.`,
	}
	command.AddCommand(newInspect(streams, options), newPull(streams, options), newPush(streams, options), newContainerDisk(streams, options),
		transfers.NewImport(streams, v1beta1.ExportOCI), transfers.NewExport(streams, v1beta1.ExportOCI),
		transfers.NewUpload(streams, v1beta1.ExportOCI))
	return command
}
