// Command exporter reads a VirtualMachineTemplate in JSON with the type of the published API, and prints the manifest that KubeVirt's exporter makes of it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"kubevirt.io/virt-template-api/core/v1beta1"

	"kubevirt.io/kubevirt/pkg/storage/export/export"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "exporter:", err)
		os.Exit(1)
	}
}

func run() error {
	template := &v1beta1.VirtualMachineTemplate{}
	if err := json.NewDecoder(os.Stdin).Decode(template); err != nil {
		return err
	}
	_, manifest, _, err := export.NewVMTemplateSource(template, nil).ManifestData()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(manifest)
	return err
}
