package transfers

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
)

// The schemes of artifacts in registries and of files in PersistentVolumeClaims.
const (
	registryScheme = "oci://"
	claimScheme    = "pvc://"
)

// importing is the command import.
type importing struct {
	finisher
	cluster  cluster.Flags
	packaged v1beta1.ExportFormat
	wait     bool
	dryRun   cli.DryRun
	// file is the path of a package on this machine; empty if it is elsewhere.
	file string

	name                    string
	secret, certificates    string
	plainHTTP               bool
	s3                      bool
	region                  string
	storageClass            string
	approval, verification  string
	spec                    v1beta1.VirtualMachineTemplateImportSpec
	verifications, approved []string
}

// NewImport returns the command that imports packages of a format.
func NewImport(streams cli.Streams, packaged v1beta1.ExportFormat) *cobra.Command {
	c := &importing{
		finisher: newFinisher(streams), packaged: packaged,
		approved:      []string{string(v1beta1.ImportApprovalAuto), string(v1beta1.ImportApprovalManual)},
		verifications: []string{string(v1beta1.ImportVerificationIfPresent), string(v1beta1.ImportVerificationRequire), string(v1beta1.ImportVerificationSkip)},
	}
	command := &cobra.Command{
		Use:   "import FILE|URL|pvc://CLAIM/PATH",
		Short: "Import an OVA into the cluster as a template",
		Long: `Import an OVA into the cluster: create a VirtualMachineTemplateImport, and print every change of its conditions until the template
is ready, or the import has failed. The cluster reads the OVA from its HTTP server, an S3 bucket or a PersistentVolumeClaim; nothing passes through
this command then, and the import goes on when it ends.

A file on this machine is sent to the URL outside of the cluster, if the cluster admin has set a domain for it, and otherwise through the API server.
A connection that is lost is made again, and the upload continues with what has not arrived; the command upload continues one that was ended. The user
needs the role edit, or the permissions to create and get virtualmachinetemplateimports, to get Secrets, and, through the API server, to get and patch
services/proxy, besides those that the import itself requires.

The exit code is 1 if the import fails, if it waits for a user, and if it is not finished when the timeout is over.`,
		Example: `  stencilctl ova import appliance.ova -n shop
  stencilctl ova import https://downloads.example.com/appliance.ova -n shop --checksum sha256:0d2f…
  stencilctl ova import https://s3.eu-west-1.amazonaws.com/packages/appliance.ova -n shop --s3 --secret bucket
  stencilctl ova import pvc://drop/images/appliance.ova -n shop --accept-eula --network "VM Network=Pod"`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, sources []string) error { return c.run(command, sources[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&c.name, "name", "", "name of the template (default from the name of the package)")
	flags.StringToStringVar(&c.spec.TemplateLabels, "labels", nil, "labels of the template: KEY=VALUE,...")
	flags.StringVar(&c.spec.Checksum, "checksum", "", "digest of the package, or of the manifest of an artifact: sha256:HEX")
	flags.StringVar(&c.secret, "secret", "", "Secret with the credentials for the source: keys username and password, or token; with --s3 accessKeyId and secretKey")
	flags.StringVar(&c.certificates, "certificates", "", "ConfigMap with certificates of authorities that are trusted too")
	flags.BoolVar(&c.s3, "s3", false, "the URL is that of an object in an S3 bucket: https://HOST/BUCKET/KEY")
	flags.StringVar(&c.region, "region", "", "region of the bucket (default from the host)")
	flags.StringVar(&c.storageClass, "storage-class", "", "storage class of the disks (default that of the cluster for VMs)")
	flags.StringToStringVar(&c.spec.Networks, "network", nil, "network of the package, and Pod or a NetworkAttachmentDefinition for it: NAME=TARGET,...")
	flags.StringVar(&c.approval, "approval", "", "whether the import waits until its plan is approved: "+strings.Join(c.approved, " or ")+" (default "+c.approved[0]+")")
	if packaged == v1beta1.ExportOCI {
		command.Use = "import FILE|oci://HOST/REPOSITORY:TAG|URL|pvc://CLAIM/PATH"
		command.Short = "Import an OCI artifact into the cluster as a template"
		command.Long = strings.NewReplacer("Import an OVA", "Import the OCI artifact of a VirtualMachine or a template", "reads the OVA from its HTTP server", "reads it from the registry, or its archive from an HTTP server").Replace(command.Long)
		command.Example = `  stencilctl oci import oci://registry.example.com/templates/web:v1 -n shop --secret registry`
		flags.BoolVar(&c.plainHTTP, "plain-http", false, "the cluster connects to the registry without TLS")
	} else {
		flags.StringVar(&c.verification, "verification", "", "whether the manifest of the OVA is verified: "+strings.Join(c.verifications, ", ")+" (default "+c.verifications[0]+")")
		flags.StringVar(&c.spec.Instancetype, "instancetype", "", "VirtualMachineClusterInstancetype of the template, which has the CPUs and the memory instead of the package (default none)")
		flags.StringVar(&c.spec.Preference, "preference", "", "VirtualMachineClusterPreference of the template, or None (default by the operating system)")
		flags.StringVar(&c.spec.DeploymentOption, "deployment-option", "", "ID of a configuration of the package")
		flags.BoolVar(&c.spec.EULAAccepted, "accept-eula", false, "you have read the licences in the package, and accept them")
	}
	flags.BoolVar(&c.wait, "wait", true, "wait for the result")
	c.following.Register(flags, defaultTimeout)
	c.register(flags)
	c.dryRun.Register(command)
	c.cluster.Register(flags)
	c.format.Register(command, "output", "o")
	c.cluster.CompleteNamespaces(command)
	return command
}

func (c *importing) run(command *cobra.Command, from string) error {
	if err := errors.Join(c.following.Check(), c.complete(from)); err != nil {
		return cli.Usage(err)
	}
	ctx := command.Context()
	var sent *local
	if c.file != "" {
		var err error
		if sent, err = measure(ctx, c.streams, c.file); err != nil {
			return err
		}
		if c.spec.Checksum != "" && c.spec.Checksum != sent.digest {
			return cli.Usage(fmt.Errorf("%s has the digest %s, and %s is requested", c.file, sent.digest, c.spec.Checksum))
		}
		c.spec.Source.Upload, c.spec.Checksum = &v1beta1.ImportSourceUpload{Size: sent.size}, sent.digest
	}
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	object := &v1beta1.VirtualMachineTemplateImport{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplateImport"},
		ObjectMeta: metav1.ObjectMeta{Namespace: client.Namespace, GenerateName: c.name + "-"},
		Spec:       c.spec,
	}
	if !c.dryRun.Client() {
		if err := create(ctx, client, imports, object, c.dryRun.Server()); err != nil {
			return err
		}
	}
	at := newWatched(c.streams, client, imports, object.Name)
	if object.Name == "" {
		at.name = object.GenerateName
	}
	if !c.wait || c.dryRun.Client() || c.dryRun.Server() {
		placed := cli.Placed(at.kind(), at.namespace, cli.Named(object.Name, object.GenerateName))
		return show(c.streams, c.format, object, at.String(), placed, "created"+c.dryRun.Suffix())
	}
	fmt.Fprintf(c.streams.Err, "%s created\n", at.placed())
	return c.finish(ctx, at, object, sent)
}

// complete completes the spec by the source and the flags.
func (c *importing) complete(from string) error {
	known, err := c.source(from)
	if err != nil {
		return err
	}
	if c.name == "" {
		c.name = known
	}
	if errs := validation.IsDNS1123Subdomain(c.name); len(errs) > 0 {
		return fmt.Errorf("--name: %q is no name of a template: %s", c.name, strings.Join(errs, "; "))
	}
	c.spec.TemplateName = c.name
	if c.approval != "" && !slices.Contains(c.approved, c.approval) {
		return fmt.Errorf("--approval: %q is none of %s", c.approval, strings.Join(c.approved, ", "))
	}
	if c.verification != "" && !slices.Contains(c.verifications, c.verification) {
		return fmt.Errorf("--verification: %q is none of %s", c.verification, strings.Join(c.verifications, ", "))
	}
	c.spec.Approval, c.spec.Verification = v1beta1.ImportApproval(c.approval), v1beta1.ImportVerification(c.verification)
	if c.storageClass != "" {
		c.spec.Storage = []v1beta1.ImportStorage{{Disk: "*", StorageClassName: c.storageClass}}
	}
	return nil
}

// source reads the source of the import, and returns the name of the package without its extension.
func (c *importing) source(from string) (name string, err error) {
	if file, is := strings.CutPrefix(from, claimScheme); is {
		claim, within, found := strings.Cut(file, "/")
		switch {
		case !found || claim == "" || within == "":
			return "", fmt.Errorf("%q: want %sCLAIM/PATH", from, claimScheme)
		case c.connects():
			return "", errors.New("a PersistentVolumeClaim needs neither credentials nor certificates")
		}
		c.spec.Source.PVC = &v1beta1.ImportSourcePVC{Name: claim, Path: within}
		return base(within), nil
	}
	if image, is := strings.CutPrefix(from, registryScheme); is && c.packaged == v1beta1.ExportOCI {
		if c.s3 || c.region != "" {
			return "", errors.New("--s3 and --region belong to the URL of an object in a bucket")
		}
		c.spec.Source.Registry = &v1beta1.ImportSourceRegistry{Image: image, Insecure: c.plainHTTP, SecretRef: reference(c.secret), CertificatesRef: reference(c.certificates)}
		repository, _, _ := strings.Cut(image, "@")
		name, _, _ := strings.Cut(path.Base(repository), ":")
		return name, nil
	}
	if !strings.Contains(from, "://") {
		if c.connects() {
			return "", errors.New("a file on this machine needs neither credentials nor certificates")
		}
		c.file = from
		return base(from), nil
	}
	// No error has the source, which may have a password.
	at, err := url.Parse(from)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		others := ""
		if c.packaged == v1beta1.ExportOCI {
			others = registryScheme + "HOST/REPOSITORY:TAG, "
		}
		return "", fmt.Errorf("the source must be a file, %shttps://HOST/PATH or %sCLAIM/PATH", others, claimScheme)
	}
	switch {
	case at.User != nil:
		return "", errors.New("the URL must have no credentials: name a Secret with --secret")
	case c.plainHTTP:
		return "", errors.New("--plain-http belongs to a registry")
	case c.region != "" && !c.s3:
		return "", errors.New("--region needs --s3")
	case c.s3 && c.secret == "":
		return "", errors.New("--s3 needs --secret, a Secret with the keys accessKeyId and secretKey; a public object needs no --s3")
	case c.s3:
		c.spec.Source.S3 = &v1beta1.ImportSourceS3{URL: from, Region: c.region, SecretRef: *reference(c.secret), CertificatesRef: reference(c.certificates)}
	default:
		c.spec.Source.HTTP = &v1beta1.ImportSourceHTTP{URL: from, SecretRef: reference(c.secret), CertificatesRef: reference(c.certificates)}
	}
	return base(at.Path), nil
}

// connects reports whether a flag is given that belongs to a connection of the cluster.
func (c *importing) connects() bool {
	return c.secret != "" || c.certificates != "" || c.plainHTTP || c.s3 || c.region != ""
}

// base returns the name of a file without the extensions of packages.
func base(file string) string {
	name := strings.ToLower(path.Base(file))
	for _, extension := range []string{".ova", ".ovf", ".tar", ".oci"} {
		name = strings.TrimSuffix(name, extension)
	}
	return name
}

func reference(name string) *corev1.LocalObjectReference {
	if name == "" {
		return nil
	}
	return &corev1.LocalObjectReference{Name: name}
}

// show prints an object, its name for programs, or what was done with it.
func show(streams cli.Streams, format *cli.Format, object any, name, placed, did string) error {
	switch {
	case format.Is(cli.Name):
		fmt.Fprintln(streams.Out, name)
		return nil
	case format.Is(cli.Table):
		fmt.Fprintf(streams.Out, "%s %s\n", placed, did)
		return nil
	default:
		return format.Write(streams.Out, object)
	}
}
