// Package cosign verifies signatures that cosign wrote to registries.
package cosign

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// What cosign writes, and what is read of it.
const (
	// SignatureAnnotation on a layer with a payload is its signature
	// (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md).
	SignatureAnnotation = "dev.cosignproject.cosign/signature"
	// BundleType begins the artifact type of a bundle, whose version follows
	// (https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md).
	BundleType = "application/vnd.dev.sigstore.bundle"
	// InTotoType is the type of the statement in a bundle (https://github.com/in-toto/attestation), and SignPredicate what a signature states.
	// Other statements, such as a list of the parts of an image, do not sign it.
	InTotoType    = "application/vnd.in-toto+json"
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"
	// MaximumSignatures is the maximum number of signatures of one image that are tried.
	MaximumSignatures = 64
	// maximumPayload is the maximum size of a signed text in bytes.
	maximumPayload = 8 << 20
)

// Verifiers reads public keys in PEM. An error is prefixed by what, with the number of the key.
func Verifiers(what string, keys ...string) ([]signature.Verifier, error) {
	verifiers := make([]signature.Verifier, len(keys))
	for i, key := range keys {
		public, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(key))
		if err == nil {
			verifiers[i], err = signature.LoadVerifier(public, crypto.SHA256)
		}
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", what, i, err)
		}
	}
	return verifiers, nil
}

// IsSigned reports whether a digest in a repository has a valid signature of one of the verifiers. An error is returned if that is not known.
func IsSigned(repository name.Repository, options []remote.Option, digest string, verifiers []signature.Verifier) (bool, error) {
	image, err := v1.NewHash(digest)
	if err != nil {
		return false, err
	}
	s := signatures{repository, options, image, verifiers, MaximumSignatures}
	if found, err := s.inTag(); found || err != nil {
		return found, err
	}
	return s.inReferrers()
}

// signatures of one image.
type signatures struct {
	repository name.Repository
	options    []remote.Option
	image      v1.Hash
	verifiers  []signature.Verifier
	// left is the number of signatures that may still be tried.
	left int
}

// inTag reports whether a valid signature is in the tag that cosign wrote up to version 2, sha256-DIGITS.sig: each layer is a payload.
func (s *signatures) inTag() (bool, error) {
	image, err := remote.Image(s.repository.Tag(s.image.Algorithm+"-"+s.image.Hex+".sig"), s.options...)
	if err != nil {
		return false, absent(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return false, err
	}
	for _, layer := range manifest.Layers {
		text, is := layer.Annotations[SignatureAnnotation]
		sign, err := base64.StdEncoding.DecodeString(text)
		if !is || err != nil || s.exhausted() {
			continue
		}
		content, err := s.read(image, layer.Digest)
		if err != nil {
			return false, err
		}
		var about payload.Cosign
		if json.Unmarshal(content, &about) != nil || about.Image.DigestStr() != s.image.String() {
			continue
		}
		for _, verifier := range s.verifiers {
			if verifier.VerifySignature(bytes.NewReader(sign), bytes.NewReader(content)) == nil {
				return true, nil
			}
		}
	}
	return false, nil
}

// inReferrers reports whether a valid signature is in a bundle that refers to the image, as cosign writes them since version 3.
func (s *signatures) inReferrers() (bool, error) {
	index, err := remote.Referrers(s.repository.Digest(s.image.String()), s.options...)
	if err != nil {
		return false, absent(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return false, err
	}
	for _, one := range manifest.Manifests {
		if !strings.HasPrefix(one.ArtifactType, BundleType) || s.exhausted() {
			continue
		}
		image, err := remote.Image(s.repository.Digest(one.Digest.String()), s.options...)
		if err != nil {
			return false, err
		}
		bundle, err := image.Manifest()
		if err != nil {
			return false, err
		}
		for _, layer := range bundle.Layers {
			content, err := s.read(image, layer.Digest)
			if err != nil {
				return false, err
			}
			if s.signs(content) {
				return true, nil
			}
		}
	}
	return false, nil
}

// signs reports whether a bundle is a valid signature of the image.
func (s *signatures) signs(bundle []byte) bool {
	var content struct {
		Envelope json.RawMessage `json:"dsseEnvelope"`
	}
	if json.Unmarshal(bundle, &content) != nil || len(content.Envelope) == 0 {
		return false
	}
	for _, verifier := range s.verifiers {
		var text []byte
		envelope := dsse.WrapVerifier(verifier, dsse.WithExpectedPayloadType(InTotoType), dsse.WithDecodedPayload(&text))
		var statement struct {
			PredicateType string `json:"predicateType"`
			Subject       []struct {
				Digest map[string]string `json:"digest"`
			} `json:"subject"`
		}
		if envelope.VerifySignature(bytes.NewReader(content.Envelope), nil) != nil || json.Unmarshal(text, &statement) != nil || statement.PredicateType != SignPredicate {
			continue
		}
		for _, subject := range statement.Subject {
			if digits, err := hex.DecodeString(subject.Digest[s.image.Algorithm]); err == nil && hex.EncodeToString(digits) == s.image.Hex {
				return true
			}
		}
	}
	return false
}

func (s *signatures) exhausted() bool {
	s.left--
	return s.left < 0
}

// read returns the content of a layer, whose digest is verified.
func (*signatures) read(image v1.Image, digest v1.Hash) ([]byte, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	content, err := io.ReadAll(io.LimitReader(reader, maximumPayload+1))
	if err == nil && len(content) > maximumPayload {
		err = fmt.Errorf("the signed text %s has more than %d bytes", digest, maximumPayload)
	}
	return content, err
}

// absent returns nil for the answer that there is no such thing.
func absent(err error) error {
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}
