package ova

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
)

// validating is the command validate.
type validating struct {
	streams     cli.Streams
	format      *cli.Format
	authorities string
}

// validity is the result of a verification. Its JSON form is output.
type validity struct {
	File  string `json:"file"`
	Valid bool   `json:"valid"`
	// Problem is what is wrong with the package.
	Problem string `json:"problem,omitempty"`
	// Members is the number of files whose digests were compared.
	Members int `json:"members"`
	// Weak is set if a digest is SHA-1.
	Weak bool `json:"weak"`
	// Warnings are what an import would warn of: unknown content, and disks that are not what the descriptor says.
	Warnings []string `json:"warnings,omitempty"`
	// Signer is the subject of the certificate, empty if the signature was not verified.
	Signer string `json:"signer,omitempty"`
}

// print prints what was verified.
func (v *validity) print(out io.Writer) {
	fmt.Fprintf(out, "%s: the digests of %s are those of the manifest\n", v.File, cli.Count(v.Members, "member", "members"))
	if v.Weak {
		fmt.Fprintln(out, "the digests are SHA-1, for which another content with the same digest can be made")
	}
	if v.Signer != "" {
		fmt.Fprintf(out, "signed by %q\n", v.Signer)
	}
}

func newValidate(streams cli.Streams) *cobra.Command {
	v := validating{streams: streams, format: newFormat()}
	command := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check the digests and the signature of an OVA",
		Long: `Check an OVA: its archive, its descriptor, the digests of its manifest, and its signature, whose certificate an authority of --ca must have issued. Without
--ca the signature is not checked. The exit code is 1 if the digests or the signature are wrong or missing, and 2 if the file is no OVA.`,
		Example: `  stencilctl ova validate appliance.ova
  stencilctl ova validate appliance.ova --ca vendor.pem -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, paths []string) error { return v.run(command.Context(), paths[0]) },
	}
	v.format.Register(command, "output", "o")
	command.Flags().StringVar(&v.authorities, "ca", "", "file with certificates of authorities in PEM; the OVA must be signed")
	return command
}

func (v *validating) run(ctx context.Context, path string) (err error) {
	roots, err := authorities(v.authorities)
	if err != nil {
		return err
	}
	o, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if o.pkg == nil {
		return cli.Usage(fmt.Errorf("%s is a descriptor: its manifest is in another file; validate takes an OVA", path))
	}
	result, wrong, err := verify(ctx, v.streams, path, o.pkg, roots)
	if err != nil {
		return err
	}
	o.examine()
	for _, warning := range conversion.Warnings(o.envelope) {
		result.Warnings = append(result.Warnings, warning.String())
		fmt.Fprintln(v.streams.Err, warning)
	}
	if wrong != nil {
		result.Problem = wrong.Error()
		fmt.Fprintf(v.streams.Err, "%s: %v\n", path, wrong)
	}
	switch result.Valid = wrong == nil; {
	case !v.format.Is(cli.Table):
		err = v.format.Write(v.streams.Out, result)
	case result.Valid:
		result.print(v.streams.Out)
	}
	if err == nil && wrong != nil {
		err = cli.ErrFindings
	}
	return err
}

// authorities reads a file with certificates; without a name it returns nil.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usage(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, cli.Usage(fmt.Errorf("%s has no certificate in PEM", path))
	}
	return roots, nil
}

// verify compares the digests of a package with its manifest and, if there are roots, checks its signature. wrong is what is not right with the
// package.
func verify(ctx context.Context, streams cli.Streams, path string, pkg *ova.Package, roots *x509.CertPool) (result *validity, wrong, err error) {
	result = &validity{File: path}
	bar := files.NewMeter(streams, "verifying "+path, total(pkg))
	err = pkg.Verify(func(n int64) error {
		bar.Add(n)
		return ctx.Err()
	})
	bar.End()
	var malformed *ova.Error
	switch {
	case errors.Is(err, ova.ErrNoManifest), errors.As(err, &malformed):
		return result, err, nil
	case err != nil:
		return nil, nil, cli.Internal(err)
	}
	result.Members, result.Weak = len(pkg.Members()), pkg.Manifest().Weak()
	if roots == nil {
		return result, nil, nil
	}
	signer, err := pkg.VerifySignature(roots, time.Now())
	if err != nil {
		return result, err, nil
	}
	result.Signer = signer.Subject.String()
	return result, nil, nil
}

// total returns the number of bytes that Verify reads.
func total(pkg *ova.Package) (sum int64) {
	for _, member := range pkg.Members() {
		sum += member.Size
	}
	return sum
}
