package ova

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/ovf/ova"
)

// minimumBits is the least length of a key that signs.
const minimumBits = 2048

// signing is the command sign.
type signing struct {
	streams                  cli.Streams
	key, certificate, output string
}

func newSign(streams cli.Streams) *cobra.Command {
	s := signing{streams: streams}
	command := &cobra.Command{
		Use:   "sign FILE --key KEY --cert CERTIFICATE --output-file FILE",
		Short: "Write an OVA with a new manifest and a signature",
		Long: `Write an OVA with the same descriptor and files, a new manifest with SHA-256, and a signature. If the OVA has a manifest, its digests must be right. The key is
RSA with at least 2048 bits, the only kind that VMware's products read. The output must not exist.`,
		Example: `  stencilctl ova sign appliance.ova --key key.pem --cert chain.pem --output-file signed.ova`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, paths []string) error { return s.run(paths[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&s.key, "key", "", "file with the private key in PEM")
	flags.StringVar(&s.certificate, "cert", "", "file with the certificate of the key in PEM, and after it those of intermediate authorities")
	flags.StringVar(&s.output, "output-file", "", "file to write")
	cli.Alias(command, "output", "output-file")
	for _, name := range []string{"key", "cert", "output-file"} {
		// It fails only for a flag that does not exist.
		_ = command.MarkFlagRequired(name)
	}
	return command
}

func (s *signing) run(path string) (err error) {
	signer, err := s.signer()
	if err != nil {
		return cli.Usage(err)
	}
	o, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if o.pkg == nil {
		return cli.Usage(fmt.Errorf("%s is a descriptor; sign takes an OVA", path))
	}
	if err := s.write(path, o.pkg, signer); err != nil {
		return err
	}
	fmt.Fprintf(s.streams.Out, "%s: signed by %q\n", s.output, subject(signer.Chain))
	return nil
}

// signer reads the key and the certificates.
func (s *signing) signer() (*ova.Signer, error) {
	pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
	if err != nil {
		return nil, fmt.Errorf("reading the key and the certificate: %w", err)
	}
	key, is := pair.PrivateKey.(*rsa.PrivateKey)
	if !is || key.N.BitLen() < minimumBits {
		return nil, fmt.Errorf("%s has no RSA key of at least %d bits", s.key, minimumBits)
	}
	signer := &ova.Signer{Key: key}
	for _, each := range pair.Certificate {
		certificate, err := x509.ParseCertificate(each)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.certificate, err)
		}
		signer.Chain = append(signer.Chain, certificate)
	}
	return signer, nil
}

// write writes the signed OVA.
func (s *signing) write(path string, pkg *ova.Package, signer *ova.Signer) error {
	return files.Create(s.output, func(w io.Writer) error {
		err := ova.Sign(w, pkg, signer)
		var malformed *ova.Error
		if errors.As(err, &malformed) {
			return cli.Usage(fmt.Errorf("%s: %w", path, err))
		}
		return err
	})
}
