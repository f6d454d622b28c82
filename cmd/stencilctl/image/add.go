package image

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/goldenimage"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var (
	architectures = []string{"amd64", "arm64", "s390x", "ppc64le"}
	adoptions     = []string{string(v1alpha1.AdoptNever), string(v1alpha1.AdoptIfNotReady), string(v1alpha1.AdoptAlways)}
)

// defaultSize has room for the boot disk of a usual Linux.
const defaultSize = "30Gi"

// adding is the command image add.
type adding struct {
	target

	following following
	registry  v1alpha1.GoldenImageRegistry
	claim     string
	http      v1alpha1.GoldenImageHTTP
	s3        v1alpha1.GoldenImageS3
	secret    string
	tags      v1alpha1.GoldenImageTags
	size      string
	class     string
	schedule  string
	arches    []string
	adopt     string
	dryRun    cli.DryRun
	format    *cli.Format
}

func newAdd(streams cli.Streams) *cobra.Command {
	a := adding{target: target{streams: streams}, format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON, cli.Name)}
	command := &cobra.Command{
		Use:   "add [NAMESPACE/]NAME {--registry URL | --http URL | --s3 URL | --claim NAME | --image-stream NAME}",
		Short: "Create a golden image",
		Long: `Create a golden image from an image in a container registry with the disk in its folder /disk, from a file of an HTTP server, an
object of an S3 bucket, a PersistentVolumeClaim of the namespace or an ImageStream of OpenShift, and follow its first import.

Of a registry: without --semver and --pattern it follows a tag; with them it follows the newest tag that matches. Changes of the conditions
Importing and UpToDate are printed until the DataSource stands for the image. The exit code is 1 if the check or the import
fails, and if it is not finished when the timeout is over; it goes on then.`,
		Example: `  stencilctl image add fedora -n golden --registry quay.io/containerdisks/fedora --semver '>=41 <43'
  stencilctl image add debian -n golden --registry quay.io/containerdisks/debian --tag 12 --architecture amd64,arm64 --wait=false
  stencilctl image add windows -n golden --claim windows-uploaded --size 60Gi
  stencilctl image add fedora -n golden --http https://images.example.com/fedora.qcow2 --checksum-file https://images.example.com/SHA256SUMS
  stencilctl image add fedora -n golden --s3 https://s3.eu-west-1.amazonaws.com/images/fedora.qcow2 --secret images
  stencilctl image add fedora -n golden --registry quay.io/containerdisks/fedora --dry-run=client -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error { return a.run(command.Context(), names[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&a.registry.URL, "registry", "", "image without tag and digest, such as quay.io/containerdisks/fedora")
	flags.StringVar(&a.registry.ImageStream, "image-stream", "", "ImageStream of the namespace, on OpenShift")
	flags.StringVar(&a.claim, "claim", "", "PersistentVolumeClaim of the namespace, which is cloned")
	flags.StringVar(&a.registry.Tag, "tag", "", "tag that is followed (default latest)")
	flags.StringVar(&a.tags.Semver, "semver", "", "range of versions of which the newest tag is followed, such as '>=41 <43'")
	flags.StringVar(&a.tags.Pattern, "pattern", "", "regular expression for the whole tag; the newest that matches is followed")
	flags.StringVar(&a.tags.Exclude, "exclude", "", "regular expression for whole tags that are not taken")
	flags.StringVar(&a.http.URL, "http", "", "URL of a file, which CDI imports by HTTP or HTTPS")
	flags.StringVar(&a.http.Checksum, "checksum", "", "checksum of the file of --http: sha256:HEX or sha512:HEX")
	flags.StringVar(&a.http.ChecksumFile, "checksum-file", "", "URL of a file with the checksum of that of --http, which is followed")
	flags.StringVar(&a.s3.URL, "s3", "", "URL of an object, https://HOST/BUCKET/KEY; needs --secret")
	flags.StringVar(&a.secret, "secret", "", "Secret of the namespace with credentials, in the keys accessKeyId and secretKey")
	flags.StringVar(&a.size, "size", defaultSize, "size of the volume")
	flags.StringVar(&a.class, "storage-class", "", "StorageClass of the volume (default CDI chooses it)")
	flags.StringVar(&a.schedule, "schedule", "", "when the window for a check opens, as cron, in UTC (default '0 */12 * * *')")
	flags.StringSliceVar(&a.arches, "architecture", nil, "architectures: "+strings.Join(architectures, ", ")+" (default that of the importing node)")
	flags.StringVar(&a.adopt, "adopt", "", "whether an existing DataSource is taken over: "+strings.Join(adoptions, ", ")+" (default "+adoptions[0]+")")
	a.following.register(flags)
	cli.Alias(command, "arch", "architecture")
	a.dryRun.Register(command)
	a.cluster.Register(flags)
	a.cluster.CompleteNamespaces(command)
	a.format.Register(command, "output", "o")
	command.ValidArgsFunction = cobra.NoFileCompletions
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("architecture", cobra.FixedCompletions(architectures, cobra.ShellCompDirectiveNoFileComp))
	_ = command.RegisterFlagCompletionFunc("adopt", cobra.FixedCompletions(adoptions, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (a *adding) run(ctx context.Context, name string) error {
	if err := a.following.check(); err != nil {
		return err
	}
	spec, err := a.spec()
	if err != nil {
		return cli.Usage(err)
	}
	if namespace := a.cluster.Namespace(); a.dryRun.Client() && namespace != "" {
		err = a.parse(name, namespace) // without a cluster
	} else {
		err = a.connect(name)
	}
	if err != nil {
		return err
	}
	made := v1alpha1.GoldenImage{Spec: *spec}
	made.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("GoldenImage"))
	made.Namespace, made.Name = a.at.Namespace, a.at.Name
	var object map[string]any
	if err := templates.Decode(made, &object); err != nil {
		return cli.Internal(err)
	}
	if !a.dryRun.Client() {
		object, err = a.client.Create(ctx, goldenImages, a.at.Namespace, object, cluster.Written{DryRun: a.dryRun.Server()})
		if err != nil {
			return cluster.Failed("creating GoldenImage "+a.at.String(), err)
		}
	}
	if !a.following.wait || a.dryRun.Client() || a.dryRun.Server() {
		return a.print(object, "created"+a.dryRun.Suffix())
	}
	fmt.Fprintf(a.streams.Err, "%s created\n", cli.Placed(resourceName, a.at.Namespace, a.at.Name))
	image, err := decode(object)
	if err != nil {
		return err
	}
	image, err = a.follow(ctx, a.following, image, latest(""))
	if err != nil {
		return err
	}
	if err := templates.Decode(image, &object); err != nil {
		return cli.Internal(err)
	}
	return a.print(object, "up to date: "+upToDate(image).Message)
}

// spec returns the spec that the flags describe. Its values are valid as far as they have to be parsed; the cluster validates the others.
func (a *adding) spec() (*v1alpha1.GoldenImageSpec, error) {
	source, err := a.source()
	if err != nil {
		return nil, err
	}
	size, err := resource.ParseQuantity(a.size)
	if err != nil || size.Sign() <= 0 {
		return nil, fmt.Errorf("--size: %q is no size such as %s", a.size, defaultSize)
	}
	spec := &v1alpha1.GoldenImageSpec{
		Source:        *source,
		Schedule:      v1alpha1.GoldenImageSchedule{Cron: a.schedule},
		Storage:       v1alpha1.GoldenImageStorage{Size: size, StorageClassName: a.class},
		Architectures: a.arches,
		Adopt:         v1alpha1.GoldenImageAdoption(a.adopt),
	}
	if _, err := goldenimage.NewSchedule(spec.Schedule, "", "", ""); err != nil {
		return nil, err
	}
	for _, arch := range a.arches {
		if !slices.Contains(architectures, arch) {
			return nil, fmt.Errorf("--architecture: %q is none of %s", arch, strings.Join(architectures, ", "))
		}
	}
	if a.adopt != "" && !slices.Contains(adoptions, a.adopt) {
		return nil, fmt.Errorf("--adopt: %q is none of %s", a.adopt, strings.Join(adoptions, ", "))
	}
	return spec, nil
}

// source returns the source that the flags describe.
func (a *adding) source() (*v1alpha1.GoldenImageSource, error) {
	given := slices.DeleteFunc([]string{a.registry.URL, a.http.URL, a.s3.URL, a.claim, a.registry.ImageStream}, func(one string) bool { return one == "" })
	ranged := a.tags != (v1alpha1.GoldenImageTags{})
	switch {
	case len(given) != 1:
		return nil, errors.New("what is imported must be given by one of --registry URL, --http URL, --s3 URL, --claim NAME and --image-stream NAME")
	case a.registry.ImageStream != "" && ranged:
		return nil, errors.New("--image-stream: a tag is followed, which --tag names")
	case a.registry.URL == "" && (a.registry.ImageStream == "" && a.registry.Tag != "" || ranged):
		return nil, errors.New("--tag, --semver, --pattern and --exclude need --registry: files and claims have no tags")
	case a.http.URL == "" && (a.http.Checksum != "" || a.http.ChecksumFile != ""):
		return nil, errors.New("--checksum and --checksum-file need --http")
	case a.http.Checksum != "" && a.http.ChecksumFile != "":
		return nil, errors.New("only one of --checksum and --checksum-file may be given")
	case a.s3.URL != "" && a.secret == "":
		return nil, errors.New("--s3 needs --secret: CDI imports no object without credentials; use --http for a public one")
	case a.secret != "" && (a.claim != "" || a.registry.ImageStream != ""):
		return nil, errors.New("--secret needs --registry, --http or --s3")
	case a.registry.URL == "" && len(a.arches) > 1:
		return nil, errors.New("--architecture: this source has one image: make one GoldenImage per architecture")
	}
	a.registry.SecretRef, a.http.SecretRef, a.s3.SecretRef = a.secret, a.secret, a.secret
	switch {
	case a.http.URL != "":
		return &v1alpha1.GoldenImageSource{HTTP: &a.http}, nil
	case a.s3.URL != "":
		return &v1alpha1.GoldenImageSource{S3: &a.s3}, nil
	case a.claim != "":
		return &v1alpha1.GoldenImageSource{PVC: &v1alpha1.GoldenImageClaim{Name: a.claim}}, nil
	}
	if last := path.Base(a.registry.URL); strings.ContainsAny(last, ":@") && strings.Contains(strings.TrimPrefix(a.registry.URL, "docker://"), "/") {
		return nil, fmt.Errorf("--registry: %q has a tag or a digest: name the tag with --tag", a.registry.URL)
	}
	if a.tags != (v1alpha1.GoldenImageTags{}) {
		switch {
		case a.registry.Tag != "":
			return nil, errors.New("--tag follows one tag; --semver, --pattern and --exclude choose one: give either")
		case a.tags.Semver == "" && a.tags.Pattern == "":
			return nil, errors.New("--exclude needs --semver or --pattern, which choose tags")
		}
		if _, err := goldenimage.ChooseTag(a.tags, nil); err != nil && !errors.Is(err, goldenimage.ErrNoTag) {
			return nil, err
		}
		a.registry.Tags = &a.tags
	}
	return &v1alpha1.GoldenImageSource{Registry: &a.registry}, nil
}

func (a *adding) print(object map[string]any, did string) error {
	switch {
	case a.format.Is(cli.Name):
		fmt.Fprintln(a.streams.Out, qualified(a.at.Name))
		return nil
	case a.format.Is(cli.Table):
		fmt.Fprintf(a.streams.Out, "%s %s\n", cli.Placed(resourceName, a.at.Namespace, a.at.Name), did)
		return nil
	}
	delete(machine.MapAt(object, "metadata"), "managedFields")
	return a.format.Write(a.streams.Out, object)
}
