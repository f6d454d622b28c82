package image

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// current is listed beside the names of channels for the image that the DataSource stands for. A channel may have the same name.
const current = "(current)"

// history is the command image history.
type history struct {
	target

	format *cli.Format
}

func newHistory(streams cli.Streams) *cobra.Command {
	h := history{target: target{streams: streams}, format: cli.NewFormat(cli.Table, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "history [NAMESPACE/]NAME",
		Short: "List the imported images of a golden image",
		Long: `List the imported images of a golden image whose volumes exist, newest first.

USED BY lists what stands for an image: the DataSource (current) and the names of channels. An image with several architectures is
pinned and promoted by the digest of one of its INDEXES: it stands for the image of that index for each architecture.`,
		Example: `  stencilctl image history fedora -n golden`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, names []string) error { return h.run(command.Context(), names[0]) },
	}
	h.register(command)
	h.format.Register(command, "output", "o")
	return command
}

// entry is an imported image with what stands for it.
type entry struct {
	v1alpha1.ImportedImage

	Current  bool     `json:"current"`
	Channels []string `json:"channels,omitempty"`
}

func (h *history) run(ctx context.Context, name string) error {
	image, err := h.open(ctx, name)
	if err != nil {
		return err
	}
	entries := []entry{}
	for _, one := range newestFirst(image.Status.History) {
		entries = append(entries, entryOf(image, one))
	}
	if !h.format.Is(cli.Table) {
		return h.format.Write(h.streams.Out, entries)
	}
	if len(entries) == 0 {
		fmt.Fprintf(h.streams.Err, "no image of GoldenImage %s was imported\n", h.at)
		return nil
	}
	rows := [][]string{{"ARCHITECTURE", "DIGEST", "TAG", "IMPORTED", "VOLUME", "USED BY"}}
	indexed := len(image.Spec.Architectures) > 1
	if indexed {
		rows[0] = append(rows[0], "INDEXES")
	}
	for _, e := range entries {
		used := slices.Clone(e.Channels)
		if e.Current {
			used = append([]string{current}, used...)
		}
		rows = append(rows, []string{
			cmp.Or(e.Architecture, none), e.Digest, cmp.Or(e.Tag, none), e.ImportedAt.UTC().Format(time.RFC3339), e.Volume,
			cmp.Or(strings.Join(used, ","), none),
		})
		if indexed {
			var indexes []string
			for _, index := range e.Indexes {
				indexes = append(indexes, short(index))
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], cmp.Or(strings.Join(indexes, ","), none))
		}
	}
	return cli.Columns(h.streams.Out, rows...)
}

func entryOf(image *v1alpha1.GoldenImage, one v1alpha1.ImportedImage) entry {
	e := entry{ImportedImage: one}
	for _, a := range image.Status.Architectures {
		e.Current = e.Current || a.Name == one.Architecture && a.Current != nil && a.Current.Digest == one.Digest
	}
	for _, c := range image.Status.Channels {
		if c.Architecture == one.Architecture && c.Digest == one.Digest {
			e.Channels = append(e.Channels, c.Name)
		}
	}
	return e
}

func newestFirst(images []v1alpha1.ImportedImage) []v1alpha1.ImportedImage {
	images = slices.Clone(images)
	slices.SortStableFunc(images, func(a, b v1alpha1.ImportedImage) int { return b.ImportedAt.Compare(a.ImportedAt.Time) })
	return images
}
