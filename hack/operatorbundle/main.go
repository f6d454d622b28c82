package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed values.yaml
var values string

// release is the name of the Helm release that is rendered. It begins the names of all objects, as in KubeVirt's own bundle.
const release = "virt-template"

func main() {
	helm := flag.String("helm", "helm", "Path of helm.")
	chart := flag.String("chart", "charts/stencil", "Folder of the chart.")
	namespace := flag.String("namespace", "kubevirt", "Namespace of KubeVirt. Policies compare it with the namespaces of users.")
	output := flag.String("output", "dist", "Folder to write to.")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "operatorbundle [FLAGS] [-- FLAGS OF helm template]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*helm, *chart, *namespace, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "operatorbundle:", err)
		os.Exit(1)
	}
}

func run(helm, chart, namespace, output string, arguments []string) error {
	command := exec.Command(helm, append([]string{"template", release, chart, "--namespace", namespace, "--kube-version", "1.30.0", "--values", "-"}, arguments...)...)
	command.Stdin = strings.NewReader(strings.ReplaceAll(values, "NAMESPACE", namespace))
	var problems bytes.Buffer
	command.Stderr = &problems
	rendered, err := command.Output()
	if err != nil {
		return fmt.Errorf("rendering the chart: %w\n%s", err, problems.String())
	}
	objects, err := decode(rendered)
	if err != nil {
		return err
	}
	bundled, err := bundle(objects)
	if err != nil {
		return err
	}
	installed, err1 := encode(bundled)
	permissions, err2 := encode(operatorPermissions(bundled, namespace))
	if err := errors.Join(err1, err2, os.MkdirAll(output, 0o755)); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(output, "install-virt-operator.yaml"), installed, 0o644),
		os.WriteFile(filepath.Join(output, "virt-operator-permissions.yaml"), permissions, 0o644),
	)
}
