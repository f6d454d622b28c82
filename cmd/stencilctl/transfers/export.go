package transfers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/internal/packing"
)

// exporting is the command export.
type exporting struct {
	streams   cli.Streams
	cluster   cluster.Flags
	packaged  v1beta1.ExportFormat
	following cli.Following
	format    *cli.Format
	access
	retrying
	template, target     string
	existing             string
	keep                 bool
	secret, certificates string
	plainHTTP            bool
	ttl                  time.Duration
	compression          *cli.Format
	spec                 v1beta1.VirtualMachineTemplateExportSpec
}

// retrying is how lost connections are made again.
type retrying struct {
	// pause is the time before each attempt, tolerate how long none may transfer anything.
	pause, tolerate time.Duration
}

// defaults are shorter in tests.
var defaults = retrying{pause: 2 * time.Second, tolerate: 2 * time.Minute}

// NewExport returns the command that exports templates in a format.
func NewExport(streams cli.Streams, packaged v1beta1.ExportFormat) *cobra.Command {
	c := &exporting{
		streams: streams, packaged: packaged, format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON, cli.Name),
		retrying: defaults, compression: cli.NewFormat(packing.Compressions...),
	}
	command := &cobra.Command{
		Use:   "export TEMPLATE FILE",
		Short: "Export a template of the cluster with its disks as an OVA",
		Long: `Export a template with copies of its disks: create a VirtualMachineTemplateExport, print every change of its conditions until the
package is ready, download it to a file, compare its digest, and delete the export. The download is from the URL outside of the cluster, if
the cluster admin has set a domain for it, and otherwise through the API server.

A connection that is lost is made again, and the download continues where it ended. So does this command with --export, if it was ended
itself: the name of the export is printed first. The user needs the role edit, or the permissions to create and delete
virtualmachinetemplateexports, to get their Secrets, and, through the API server, to get services/proxy, besides the verb export on the template.

The exit code is 1 if the export fails, and if it is not ready when the timeout is over; it goes on then.`,
		Example: `  stencilctl ova export web web.ova -n shop
  stencilctl ova export --export web-x7k2p web.ova -n shop`,
		Args: func(_ *cobra.Command, arguments []string) error { return c.arguments(arguments) },
		RunE: func(command *cobra.Command, _ []string) error { return c.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringSliceVar(&c.spec.SourceNamespaces, "source-namespace", nil, "further namespaces that disks of the template come from")
	flags.StringVar(&c.spec.StorageClassName, "storage-class", "", "storage class of the volume that holds the package (default that of the cluster)")
	flags.Var(c.compression, "compression", "how strongly the disks in the package are compressed: "+strings.Join(packing.Compressions, ", "))
	flags.DurationVar(&c.ttl, "ttl", 0, "how long the package can be downloaded (default 2h)")
	flags.StringVar(&c.existing, "export", "", "download the package of this export, instead of creating one")
	flags.BoolVar(&c.keep, "keep", false, "do not delete the export after the download")
	if packaged == v1beta1.ExportOCI {
		command.Use = "export TEMPLATE FILE|oci://HOST/REPOSITORY:TAG"
		command.Short = "Export a template of the cluster with its disks as an OCI artifact"
		command.Long = strings.Replace(command.Long, "\n\nThe exit code", ` With a
registry, the cluster writes the package there, and nothing passes through this command.

The exit code`, 1)
		command.Example = `  stencilctl oci export web web.oci.tar -n shop
  stencilctl oci export web oci://registry.example.com/templates/web:v1 -n shop --secret registry`
		flags.StringVar(&c.secret, "secret", "", "Secret with the keys username and password for the registry")
		flags.StringVar(&c.certificates, "certificates", "", "ConfigMap with certificates of authorities that are trusted for the registry")
		flags.BoolVar(&c.plainHTTP, "plain-http", false, "the cluster connects to the registry without TLS")
	}
	c.following.Register(flags, defaultTimeout)
	c.register(flags)
	c.cluster.Register(flags)
	c.format.Register(command, "output", "o")
	command.ValidArgsFunction = func(command *cobra.Command, arguments []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(arguments) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return c.cluster.CompleteNames(cluster.VirtualMachineTemplate, false)(command, arguments, begun)
	}
	c.cluster.CompleteNamespaces(command)
	return command
}

func (c *exporting) arguments(given []string) error {
	switch {
	case c.existing == "" && len(given) == 2:
		c.template, c.target = given[0], given[1]
	case c.existing != "" && len(given) == 1:
		c.target = given[0]
	case c.existing != "":
		return errors.New("want FILE: --export names the package")
	default:
		return errors.New("want TEMPLATE and the target")
	}
	return nil
}

// complete completes the spec by the arguments and flags.
func (c *exporting) complete() error {
	c.spec.TemplateRef, c.spec.Format = corev1.LocalObjectReference{Name: c.template}, c.packaged
	if c.ttl != 0 {
		c.spec.TTL = &metav1.Duration{Duration: c.ttl}
	}
	if !c.compression.Is(packing.Compressions[0]) {
		if c.existing != "" {
			return errors.New("--compression is for a new export, and --export names one that has a package")
		}
		c.spec.Compression = v1beta1.ExportCompression(c.compression.String())
	}
	image, remote := strings.CutPrefix(c.target, registryScheme)
	switch {
	case remote && c.packaged != v1beta1.ExportOCI:
		return errors.New("an OVA is written to a file: stencilctl oci export writes to registries")
	case remote && (c.existing != "" || c.keep):
		return errors.New("--export and --keep are for downloads, and not for registries")
	case remote:
		c.spec.Target = &v1beta1.ExportTarget{Registry: v1beta1.ExportTargetRegistry{
			Image: image, Insecure: c.plainHTTP, SecretRef: reference(c.secret), CertificatesRef: reference(c.certificates),
		}}
	case c.secret != "" || c.certificates != "" || c.plainHTTP:
		return fmt.Errorf("--secret, --certificates and --plain-http are for a registry, %sHOST/REPOSITORY:TAG", registryScheme)
	default:
		return files.Absent(c.target)
	}
	return nil
}

func (c *exporting) run(ctx context.Context) error {
	if err := errors.Join(c.following.Check(), c.complete()); err != nil {
		return cli.Usage(err)
	}
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	if c.template != "" {
		at, err := c.cluster.Existing("template", c.template, client.Namespace)
		if err != nil {
			return err
		}
		// An export is in the namespace of its template.
		client.Namespace, c.template, c.spec.TemplateRef.Name = at.Namespace, at.Name, at.Name
	}
	object := &v1beta1.VirtualMachineTemplateExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplateExport"},
		ObjectMeta: metav1.ObjectMeta{Namespace: client.Namespace, GenerateName: c.template + "-"},
		Spec:       c.spec,
	}
	at := newWatched(c.streams, client, exports, c.existing)
	if c.existing == "" {
		if err := create(ctx, client, exports, object, false); err != nil {
			return err
		}
		at.name = object.Name
		fmt.Fprintf(c.streams.Err, "%s created\n", at.placed())
	}
	if err := at.follow(ctx, &c.following, func(stored map[string]any) (progress, error) {
		*object = v1beta1.VirtualMachineTemplateExport{}
		err := templates.Decode(stored, object)
		s := object.Status
		return progress{s.Phase, s.Percent, s.Conditions, s.Warnings, false}, err
	}); err != nil {
		return err
	}
	if object.Spec.Target != nil {
		written := registryScheme + object.Status.Image
		return show(c.streams, c.format, object, written, written, "written")
	}
	if err := c.download(ctx, client, object); err != nil {
		fmt.Fprintf(c.streams.Err, "%s is kept: continue with --export %s\n", at, at.name)
		return err
	}
	if !c.keep {
		if err := client.Delete(ctx, exports, at.namespace, at.name, cluster.Written{}); err != nil {
			return cluster.Failed("deleting "+at.String(), err)
		}
	}
	return show(c.streams, c.format, object, c.target, c.target, fmt.Sprintf("written: %d bytes, %s", object.Status.Size, object.Status.Digest))
}

// partial is the file of a download that has not ended. A package with another digest has another one.
func (c *exporting) partial(digest string) string {
	return c.target + "." + strings.TrimPrefix(digest, "sha256:")[:12] + ".part"
}

// finish gives a complete download its name, if no file has it by now.
func (c *exporting) finish(partial string) error {
	if err := os.Chmod(partial, 0o644); err != nil {
		return err
	}
	if err := os.Link(partial, c.target); err != nil {
		return err
	}
	return os.Remove(partial)
}
