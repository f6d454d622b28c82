package mover

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/ovf/ova"
	"github.com/vmstencil/stencil/transfer"
)

const (
	maxAgreement  = 64 << 10
	maxAgreements = 16
	maxNotes      = 256
)

// inspect makes the plan of an import.
func (m *Mover) inspect(ctx context.Context) error {
	plan, err := m.plan(ctx)
	if err != nil {
		return err
	}
	var sum int64
	for _, d := range plan.Disks {
		if d.Size < 0 || d.Size > 1<<62-sum {
			return failed(transfer.ReasonUnsupported, false, "the disk %s (%s) has no size that is known before it is read", d.Name, d.File)
		}
		sum += d.Size
	}
	if err := m.checkDisks(len(plan.Disks), sum); err != nil {
		return err
	}
	if len(plan.Notes) > maxNotes {
		more := len(plan.Notes) - maxNotes
		plan.Notes = append(plan.Notes[:maxNotes], conversion.Note{Action: conversion.ActionWarning, Source: "notes", Result: fmt.Sprintf("%d more are left out", more)})
	}
	encoded, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	if len(encoded) > transfer.MaxStateBytes-64<<10 {
		return failed(transfer.ReasonLimitExceeded, false, "the plan of the package has %d bytes, and at most %d are allowed", len(encoded), transfer.MaxStateBytes-64<<10)
	}
	m.report.change(func(s *transfer.State) { s.Plan = plan })
	return nil
}

func (m *Mover) plan(ctx context.Context) (*transfer.Plan, error) {
	switch source := m.Task.Source; {
	case source == nil:
		return nil, failed(transfer.ReasonInvalidTask, false, "the task has no source")
	case source.Registry != nil:
		return m.planRegistry(ctx)
	}
	from, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	is, err := isLayout(ctx, from)
	if err != nil {
		return nil, err
	}
	if is {
		return m.planLayout(ctx, from)
	}
	read, err := m.describe(ctx, from)
	if err != nil {
		return nil, err
	}
	return m.planOVA(from, read)
}

// description has the members of an OVA that describe it.
type description struct {
	envelope   *ovf.Envelope
	descriptor []byte
	// template of the package; nil if there is none.
	template []byte
	manifest *ova.Manifest
	// whole is set if the manifest would have been found.
	whole bool
}

// digest returns the digest of the descriptor and the template.
func (d *description) digest() string { return digestOf(d.descriptor, d.template) }

func digestOf(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return textOf(sum)
}

// textOf returns a digest of SHA-256 as tasks and states have it.
func textOf(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// describe reads the description of an OVA: by ranges the headers of its members and the small ones, otherwise the stream up to its descriptor and template.
func (m *Mover) describe(ctx context.Context, from origin) (*description, error) {
	if at := from.random(ctx); at != nil {
		pkg, err := ova.Open(at, from.Size())
		if err != nil {
			return nil, err
		}
		d := &description{envelope: pkg.Envelope(), descriptor: pkg.Descriptor(), manifest: pkg.Manifest(), whole: true}
		if file := conversion.EmbeddedFile(d.envelope); file != nil {
			content, err := pkg.Content(file)
			if err != nil {
				return nil, err
			}
			if d.template, err = readTemplate(content); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	stream := from.Stream(ctx)
	defer stream.Close()
	buffered := bufio.NewReader(&bounded{from: stream, left: m.mostStored()})
	if header, err := buffered.Peek(tarBlock); err == nil && startsLayout(header) {
		return nil, failed(transfer.ReasonUnsupported, false, "the package is the archive of an OCI layout, and the server does not support ranges")
	}
	r := ova.NewReader(buffered)
	d := &description{}
	for {
		entry, err := r.Next()
		if d.envelope = r.Envelope(); d.envelope != nil {
			embedded := conversion.EmbeddedFile(d.envelope)
			if embedded != nil && entry != nil && entry.File != nil && entry.File.ID == embedded.ID {
				content, err := entry.Content()
				if err != nil {
					return nil, err
				}
				if d.template, err = readTemplate(content); err != nil {
					return nil, err
				}
			}
			if embedded == nil || d.template != nil {
				d.descriptor, d.manifest = r.Descriptor(), r.Manifest()
				return d, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil, failed(transfer.ReasonUnsupported, false, "the template of the package comes before its descriptor, and the server does not support ranges")
		}
		if err != nil {
			return nil, err
		}
	}
}

func readTemplate(content io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(content, conversion.MaxTemplateBytes+1))
	if err == nil && len(text) > conversion.MaxTemplateBytes {
		err = failed(transfer.ReasonLimitExceeded, false, "the template of the package is larger than %d KiB", conversion.MaxTemplateBytes>>10)
	}
	return text, err
}

// bounded is a stream that fails after a number of bytes.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, failed(transfer.ReasonLimitExceeded, false, "the package is larger than its disks may be")
	}
	return n, err
}

func (m *Mover) planOVA(from origin, read *description) (*transfer.Plan, error) {
	choices := m.Task.Conversion
	if read.template != nil {
		if err := checkChoices(choices, "a template"); err != nil {
			return nil, err
		}
	}
	networks := map[string]string{}
	for name, network := range choices.Networks {
		if strings.EqualFold(network, conversion.PodNetwork) {
			network = conversion.PodNetwork
		}
		networks[name] = network
	}
	options := conversion.Options{
		Namespace: choices.Namespace, Name: choices.Name, Configuration: choices.DeploymentOption, Networks: networks, StorageClass: choices.StorageClass,
		Instancetype: choices.Instancetype, Preference: choices.Preference, Template: read.template,
	}
	if n := len(read.envelope.Systems); n != 1 {
		return nil, failed(transfer.ReasonUnsupported, false, "the package has %d virtual systems, and an import makes a template of one: split the package, or use stencilctl ova convert", n)
	}
	converted, err := conversion.Import(read.envelope, options)
	if err != nil {
		return nil, failed(transfer.ReasonUnsupported, false, "%v", err)
	}
	system := converted.Systems[0]
	plan := &transfer.Plan{Format: "OVA", Description: read.digest(), Revision: from.Revision(), Size: from.Size(), Verified: verifiedBy(read.manifest)}
	if m.Task.Verification == v1beta1.ImportVerificationRequire && read.manifest == nil && read.whole {
		return nil, ova.ErrNoManifest
	}
	for _, note := range append(converted.Notes, system.Notes...) {
		if !strings.Contains(note.Result, contract.LabelDiskAccess) {
			plan.Notes = append(plan.Notes, note)
		}
	}
	if plan.Template, err = encodeTemplate(system.Template); err != nil {
		return nil, err
	}
	plan.Disks = []transfer.PlannedDisk{}
	for _, d := range system.Disks {
		plan.Disks = append(plan.Disks, transfer.PlannedDisk{Name: d.Claim, Volume: d.Volume, File: d.File, Size: d.Capacity, CDROM: d.CDROM})
	}
	for _, text := range read.envelope.Systems[0].Licenses {
		if len(plan.Agreements) == maxAgreements {
			return nil, failed(transfer.ReasonLimitExceeded, false, "the package has more than %d licences", maxAgreements)
		}
		if len(text) > maxAgreement {
			text = strings.ToValidUTF8(text[:maxAgreement], "") + "…"
		}
		plan.Agreements = append(plan.Agreements, text)
	}
	return plan, nil
}

func verifiedBy(manifest *ova.Manifest) string {
	switch {
	case manifest == nil:
		return ""
	case manifest.Weak():
		return "SHA-1"
	}
	return "SHA-256"
}

// encodeTemplate returns a template without the labels of the package.
func encodeTemplate(t *v1beta1.VirtualMachineTemplate) (json.RawMessage, error) {
	t.Labels = nil
	return json.Marshal(t)
}
