package transfers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
	"github.com/vmstencil/stencil/transfer"
)

// partSize is how many bytes one request sends. Proxies may limit the duration of a request.
const partSize = 64 << 20

// uploading is the command upload.
type uploading struct {
	finisher
	cluster cluster.Flags
}

// NewUpload returns the command that sends a package of a format to an import.
func NewUpload(streams cli.Streams, packaged v1beta1.ExportFormat) *cobra.Command {
	c := &uploading{finisher: newFinisher(streams)}
	command := &cobra.Command{
		Use:   "upload IMPORT FILE",
		Short: "Send an OVA on this machine to an import that waits for it",
		Long: `Send a package on this machine to a VirtualMachineTemplateImport with the source upload, and print every change of
its conditions until the template is ready, or the import has failed. A connection that is lost is made again, and the upload continues with what has
not arrived. So does this command, if it was ended itself: it is what import does with a file, after it has created the import.

The exit code is 1 if the import fails, if it waits for a user, and if it is not finished when the timeout is over.`,
		Example: `  stencilctl ova upload appliance-x7k2p appliance.ova -n shop`,
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.run(command.Context(), arguments[0], arguments[1])
		},
	}
	if packaged == v1beta1.ExportOCI {
		command.Short = "Send an OCI artifact on this machine to an import that waits for it"
		command.Example = `  stencilctl oci upload web-x7k2p web.oci.tar -n shop`
	}
	c.following.Register(command.Flags(), defaultTimeout)
	c.register(command.Flags())
	c.cluster.Register(command.Flags())
	c.format.Register(command, "output", "o")
	c.cluster.CompleteNamespaces(command)
	return command
}

func (c *uploading) run(ctx context.Context, name, path string) error {
	if err := c.following.Check(); err != nil {
		return cli.Usage(err)
	}
	local, err := measure(ctx, c.streams, path)
	if err != nil {
		return err
	}
	client, err := c.cluster.Client(c.streams.Err)
	if err != nil {
		return err
	}
	at := newWatched(c.streams, client, imports, name)
	object := &v1beta1.VirtualMachineTemplateImport{}
	if err := at.read(ctx, object); err != nil {
		return err
	}
	switch spec := object.Spec; {
	case spec.Source.Upload == nil:
		return cli.Usage(fmt.Errorf("%s has another source than an upload", at))
	case spec.Source.Upload.Size != local.size:
		return cli.Usage(fmt.Errorf("%s is about a package of %d bytes, and %s has %d", at, spec.Source.Upload.Size, path, local.size))
	case spec.Checksum != "" && spec.Checksum != local.digest:
		return cli.Usage(fmt.Errorf("%s is about a package with the digest %s, and %s has %s", at, spec.Checksum, path, local.digest))
	}
	return c.finish(ctx, at, object, local)
}

// local is a package on this machine.
type local struct {
	path   string
	size   int64
	digest string
}

// measure reads a file.
func measure(ctx context.Context, streams cli.Streams, path string) (*local, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, cli.Usage(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, cli.Internal(err)
	case !info.Mode().IsRegular():
		return nil, cli.Usage(fmt.Errorf("%s is no regular file", path))
	case info.Size() == 0:
		return nil, cli.Usage(fmt.Errorf("%s is empty", path))
	}
	meter := files.NewMeter(streams, "checksum", info.Size())
	defer meter.End()
	sum := sha256.New()
	n, err := io.Copy(sum, io.TeeReader(files.Interruptible(ctx, file), meter))
	if err != nil {
		return nil, cli.Internal(fmt.Errorf("reading %s: %w", path, err))
	}
	return &local{path, n, "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// finisher follows an import until its end.
type finisher struct {
	streams   cli.Streams
	following cli.Following
	format    *cli.Format
	access
	retrying
}

func newFinisher(streams cli.Streams) finisher {
	return finisher{streams: streams, format: cli.NewFormat(cli.Table, cli.YAML, cli.JSON, cli.Name), retrying: defaults}
}

// finish follows an import, and sends the package when the import waits for it; package is nil if it does not have to be sent.
func (f *finisher) finish(ctx context.Context, at *watched, object *v1beta1.VirtualMachineTemplateImport, from *local) error {
	follow := func(sends bool) error {
		return at.follow(ctx, &f.following, func(stored map[string]any) (progress, error) {
			*object = v1beta1.VirtualMachineTemplateImport{}
			err := templates.Decode(stored, object)
			s := object.Status
			return progress{s.Phase, s.Percent, s.Conditions, s.Warnings, sends && waitsForUpload(&s)}, err
		})
	}
	if err := follow(from != nil); err != nil {
		return err
	}
	if from != nil && waitsForUpload(&object.Status) {
		if err := f.send(ctx, at, object, from); err != nil {
			fmt.Fprintf(f.streams.Err, "%s waits: continue with upload %s %s\n", at, at.name, from.path)
			return err
		}
		if err := follow(false); err != nil {
			return err
		}
	}
	if object.Status.Phase == v1beta1.TransferWaiting {
		fmt.Fprintf(f.streams.Err, "%s waits, see its condition and status.plan; it continues when you have changed it\n", at)
		return cli.ErrFindings
	}
	const resource = "virtualmachinetemplate.template.kubevirt.io"
	name := object.Status.TemplateRef.Name
	return show(f.streams, f.format, object, resource+"/"+name, cli.Placed(resource, object.Namespace, name), "ready")
}

func waitsForUpload(status *v1beta1.VirtualMachineTemplateImportStatus) bool {
	return status.Phase == v1beta1.TransferUploading && status.Upload != nil && status.Upload.URL != ""
}

// send sends a package to the import.
func (f *finisher) send(ctx context.Context, at *watched, object *v1beta1.VirtualMachineTemplateImport, from *local) error {
	status := object.Status.Upload
	if status.TokenSecretRef == nil {
		return cli.Cluster(fmt.Errorf("the status of %s does not say where the package is sent to", at))
	}
	to, err := f.endpoint(ctx, at.client, at.namespace, status.URL, status.ExternalURL, status.TokenSecretRef.Name, map[string]string{transfer.TusVersion: transfer.Tus})
	if err != nil {
		return err
	}
	file, err := os.Open(from.path)
	if err != nil {
		return cli.Usage(err)
	}
	defer file.Close()
	meter := files.NewMeter(f.streams, "upload", from.size)
	defer meter.End()
	s := &sender{to: to, file: file, size: from.size, meter: meter}
	failed := f.repeat(ctx, "uploading the package", func() int64 { return s.size - s.received }, func() error { return s.part(ctx) })
	if failed == nil {
		return nil
	}
	// The last response may be lost, and the Service gone.
	if err := at.read(ctx, object); err == nil && object.Status.Upload != nil && object.Status.Upload.CompletionTime != nil {
		return nil
	}
	return failed
}

// sender sends a file in parts.
type sender struct {
	to    *cluster.Endpoint
	file  *os.File
	size  int64
	meter *files.Meter

	// received is how much has arrived, if it is known.
	received int64
	known    bool
}

// part sends the next part.
func (s *sender) part(ctx context.Context) error {
	if !s.known {
		body, err := s.to.Get(ctx, 0)
		if err != nil {
			return err
		}
		var is transfer.Received
		err = errors.Join(json.NewDecoder(io.LimitReader(body, 1<<10)).Decode(&is), body.Close())
		if err != nil || is.Received < 0 || is.Received > s.size {
			return errors.Join(errors.New("the cluster does not say how much of the package it has"), err)
		}
		s.received, s.known = is.Received, true
		s.meter.To(s.received)
		if s.received == s.size {
			return nil
		}
	}
	length := min(partSize, s.size-s.received)
	header := map[string]string{"Content-Type": transfer.UploadType, transfer.UploadOffset: strconv.FormatInt(s.received, 10)}
	s.known = false
	if err := s.to.Send(ctx, header, io.TeeReader(io.NewSectionReader(s.file, s.received, length), s.meter)); err != nil {
		return err
	}
	s.received, s.known = s.received+length, true
	return nil
}
