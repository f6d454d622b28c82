package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/formats"
	"github.com/vmstencil/stencil/seal"
)

// sealing is the command seal.
type sealing struct {
	streams cli.Streams
	format  *cli.Format
	// disk is the format of the disks; auto is by their magic number.
	disk *cli.Format
	// allowUnknown makes Unknown a success.
	allowUnknown bool
}

// auto is the format of disks whose magic number names it.
const auto = "auto"

// report is what is printed for a disk. Its JSON form is output.
type report struct {
	File string `json:"file"`
	seal.Report
}

// NewCommand returns the command.
func NewCommand(streams cli.Streams) *cobra.Command {
	s := sealing{
		streams: streams,
		format:  cli.NewFormat(cli.Table, cli.JSON, cli.YAML),
		disk:    cli.NewFormat(auto, string(disk.Raw), string(disk.QCOW2), string(disk.VMDK), string(disk.VHD), string(disk.VHDX)),
	}
	command := &cobra.Command{
		Use:   "seal DISK...",
		Short: "Report what identifies one VM on disks",
		Long: `Report what identifies one VM on disks: machine ID, SSH host keys, authorized keys, state of cloud-init, DHCP leases and seeds. Every VM that is created from
a template with such a disk has them too. Disks are only read, and neither mounted nor started; the report has paths, and no contents. DISK is raw, qcow2,
VMDK, VHD or VHDX.

File systems of ext2, ext3, ext4 and XFS are examined, in partitions or on the whole disk. With others, or with LVM or encryption, a disk is Unknown.

Exit codes: 0 all disks are sealed; 1 a disk is not sealed, or Unknown without --allow-unknown; 2 a disk cannot be opened.`,
		Example: `  stencilctl seal fedora.qcow2
  stencilctl seal root.raw data.vmdk -o json
  stencilctl seal root.img --disk-format raw --allow-unknown`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, paths []string) error { return s.run(command.Context(), paths) },
	}
	s.format.Register(command, "output", "o")
	flags := command.Flags()
	flags.Var(s.disk, "disk-format", "format of the disks: auto, raw, qcow2, vmdk, vhd, vhdx")
	_ = command.RegisterFlagCompletionFunc("disk-format", cobra.FixedCompletions([]string{auto, "raw", "qcow2", "vmdk", "vhd", "vhdx"}, cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&s.allowUnknown, "allow-unknown", false, "succeed if nothing was found, although parts of a disk were not examined")
	return command
}

func (s *sealing) run(ctx context.Context, paths []string) error {
	reports := make([]report, 0, len(paths))
	var states []seal.State
	for _, path := range paths {
		found, err := s.inspect(ctx, path)
		if err != nil {
			return err
		}
		reports, states = append(reports, report{path, found}), append(states, found.Sealed)
	}
	if err := s.print(reports); err != nil {
		return err
	}
	if state := seal.Merge(states...); state == seal.False || state == seal.Unknown && !s.allowUnknown {
		return cli.ErrFindings
	}
	return nil
}

func (s *sealing) inspect(ctx context.Context, path string) (found seal.Report, err error) {
	file, err := os.Open(path)
	if err != nil {
		return found, cli.Usage(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// The end of a block device is its size, which Stat does not return.
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return found, cli.Usage(fmt.Errorf("%s: %w", path, err))
	}
	image, err := s.open(file, size)
	if err != nil {
		return found, cli.Usage(fmt.Errorf("%s: %w", path, err))
	}
	found = seal.Inspect(ctx, image, image.Info().Size)
	return found, ctx.Err()
}

func (s *sealing) open(r io.ReaderAt, size int64) (disk.Image, error) {
	if s.disk.Is(auto) {
		return formats.Detect(r, size)
	}
	return formats.Open(r, size, disk.Format(s.disk.String()))
}

func (s *sealing) print(reports []report) error {
	if !s.format.Is(cli.Table) {
		return s.format.Write(s.streams.Out, reports)
	}
	rows := [][]string{{"DISK", "SEALED", "PARTITION", "PATH", "REASON"}}
	for _, r := range reports {
		if r.Sealed == seal.True {
			rows = append(rows, []string{r.File, string(r.Sealed), "", "", ""})
		}
		for _, f := range r.Findings {
			rows = append(rows, []string{r.File, string(seal.False), number(f.Partition), f.Path, f.Reason})
		}
		for _, g := range r.Unexamined {
			rows = append(rows, []string{r.File, string(seal.Unknown), number(g.Partition), g.Path, g.Reason})
		}
	}
	return cli.Columns(s.streams.Out, rows...)
}

// number returns the column of a partition.
func number(partition int) string {
	if partition == 0 {
		return "-"
	}
	return strconv.Itoa(partition)
}
