package oci

import (
	"fmt"
	"io"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/oci"
)

// newFormat returns the formats of the commands, which print a table by default.
func newFormat() *cli.Format { return cli.NewFormat(cli.Table, cli.JSON, cli.YAML) }

// report is what inspect prints. Its JSON form is output.
type report struct {
	Artifact string `json:"artifact"`
	// Digest of the manifest.
	Digest       string   `json:"digest"`
	Kind         oci.Kind `json:"kind"`
	Name         string   `json:"name"`
	Architecture string   `json:"architecture"`
	// Signed is present if a key was given.
	Signed *bool `json:"signed,omitempty"`
	// Manifest is the file that pull writes.
	Manifest string   `json:"manifest"`
	Disks    []disk   `json:"disks"`
	Warnings []string `json:"warnings"`
	// Written are the files that pull has written, and the reference with the digest or the archive of push.
	Written []string `json:"written,omitempty"`
}

// disk is a disk of the artifact.
type disk struct {
	Name string `json:"name"`
	// Claim is the PersistentVolumeClaim for the disk, empty if the resource does not refer to it.
	Claim string `json:"claim,omitempty"`
	// Size of the disk in bytes, Stored the size of the layer.
	Size   int64  `json:"size"`
	Stored int64  `json:"stored"`
	Digest string `json:"digest"`
	// File is the file that pull writes.
	File string `json:"file"`
}

// report describes an artifact, and what pull makes of it.
func (f *found) report() (*report, error) {
	claims, err := f.resource.Claims()
	if err != nil {
		return nil, marked(f.from, err)
	}
	r := &report{
		Artifact: f.from, Digest: f.Descriptor.Digest.String(), Kind: f.Kind, Name: f.resource.Name(), Architecture: f.resource.Architecture(),
		Manifest: f.resource.Name() + ".yaml", Disks: []disk{}, Warnings: []string{},
	}
	has := map[string]bool{}
	for _, each := range f.Disks {
		has[each.Name] = true
		made := disk{Name: each.Name, Size: each.Size, Stored: each.Layer.Size, Digest: each.Layer.Digest.String(), File: files.DiskName(each.Name)}
		for _, claim := range claims {
			if claim.Disk() == each.Name {
				made.Claim, made.File = claim.Name, files.DiskName(claim.Name)
			}
		}
		if made.Claim == "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the disk %s belongs to no claim of the %s", each.Name, f.Kind))
		}
		r.Disks = append(r.Disks, made)
	}
	for _, claim := range claims {
		if !has[claim.Disk()] {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the artifact has no disk for the claim %s: the cluster has to have it", claim.Name))
		}
	}
	for _, ignored := range f.Ignored {
		r.Warnings = append(r.Warnings, fmt.Sprintf("a layer of type %.80q is ignored", ignored.MediaType))
	}
	return r, nil
}

// print prints a report as text.
func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%s: %s %s for %s, %s%s\ndigest %s\n", r.Artifact, r.Kind, r.Name, r.Architecture, cli.Count(len(r.Disks), "disk", "disks"), r.signature(), r.Digest)
	for _, warning := range r.Warnings {
		fmt.Fprintln(out, "warning: "+warning)
	}
	rows := [][]string{{"  CONTENT", "SIZE", "STORED", "FILE"}, {"  " + string(r.Kind), "", "", r.Manifest}}
	for _, each := range r.Disks {
		rows = append(rows, []string{"  disk " + each.Name, files.Quantity(each.Size), files.Quantity(each.Stored), each.File})
	}
	return cli.Columns(out, rows...)
}

func (r *report) signature() string {
	switch {
	case r.Signed == nil:
		return ""
	case *r.Signed:
		return ", signed by the key"
	default:
		return ", not signed by the key"
	}
}
