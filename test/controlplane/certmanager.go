package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// certManager is the name of cert-manager's namespace, release and ServiceAccount.
const certManager = "cert-manager"

// certManagerFolder returns the folder of the Go module of cert-manager, with its definitions and its chart, in the version that is run.
func certManagerFolder(ctx context.Context) (string, error) {
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	command.Dir = filepath.Join(root, "test", "controlplane", "tools", "certmanager")
	output, err := command.Output()
	folder := strings.TrimSpace(string(output))
	if err == nil && folder == "" {
		err = errors.New("it was not downloaded")
	}
	if err != nil {
		return "", fmt.Errorf("finding the module of cert-manager: %w", err)
	}
	return folder, nil
}

// InstallCertManagerCRDs installs the definitions that cert-manager ships in its Go module.
func (p *Plane) InstallCertManagerCRDs(ctx context.Context) error {
	folder, err := certManagerFolder(ctx)
	if err != nil {
		return err
	}
	definitions, err := ReadCRDs(filepath.Join(folder, "deploy", "crds"))
	if err != nil {
		return err
	}
	return p.InstallCRDs(ctx, definitions...)
}

// StartCertManager adds cert-manager: its definitions, the RBAC objects of its chart, and its controllers and CA injector with the permissions of
// their service accounts. Issuers of kinds CA and selfSigned work; stored objects are neither validated nor defaulted, because cert-manager's webhook
// is missing. It returns when the controllers work.
func (p *Plane) StartCertManager(ctx context.Context) error {
	// A first build takes longer than any limit of a wait here.
	path, err := p.tool(ctx, certManager)
	if err != nil {
		return err
	}
	ctx, cancel := deadline.WithTimeout(ctx, "cert-manager is ready", startLimit)
	defer cancel()
	if err := p.InstallCertManagerCRDs(ctx); err != nil {
		return err
	}
	if err := p.installCertManagerRights(ctx); err != nil {
		return err
	}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + certManager}
	controller, err1 := p.User("system:serviceaccount:"+certManager+":"+certManager, groups...)
	injector, err2 := p.User("system:serviceaccount:"+certManager+":"+certManager+"-cainjector", groups...)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	started, err := p.startProcess(certManager, path, "--controller-kubeconfig="+controller.Kubeconfig, "--cainjector-kubeconfig="+injector.Kubeconfig)
	if err != nil {
		return err
	}
	const probe = `{"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "probe", "namespace": "cert-manager"}, "spec": {"selfSigned": {}}}`
	if err := p.mustKubectl(ctx, probe, "apply", "-f", "-"); err != nil {
		return err
	}
	return started.await(ctx, func(ctx context.Context) error {
		return p.mustKubectl(ctx, "", "wait", "issuer/probe", "--namespace="+certManager, "--for=condition=Ready", "--timeout=1s")
	})
}

// installCertManagerRights applies the RBAC objects and service accounts of cert-manager's chart for its two commands.
func (p *Plane) installCertManagerRights(ctx context.Context) error {
	folder, err := certManagerFolder(ctx)
	if err != nil {
		return err
	}
	arguments := []string{"template", certManager, filepath.Join(folder, "deploy", "charts", certManager), "--namespace", certManager}
	for _, file := range []string{"serviceaccount", "rbac", "cainjector-serviceaccount", "cainjector-rbac"} {
		arguments = append(arguments, "--show-only", "templates/"+file+".yaml")
	}
	rendered, err := p.Helm(ctx, arguments...)
	if err == nil && rendered.Code != 0 {
		err = errors.New(strings.TrimSpace(rendered.Stderr))
	}
	if err != nil {
		return fmt.Errorf("rendering cert-manager's chart: %w", err)
	}
	namespace := `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "` + certManager + `"}}`
	return p.mustKubectl(ctx, namespace+"\n---\n"+rendered.Stdout, "apply", "-f", "-")
}

// mustKubectl runs kubectl as the administrator; an exit code other than 0 is an error.
func (p *Plane) mustKubectl(ctx context.Context, stdin string, arguments ...string) error {
	out, err := p.Kubectl(ctx, nil, stdin, arguments...)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("kubectl %s: %s", strings.Join(arguments, " "), strings.TrimSpace(out.Stderr))
	}
	return err
}
