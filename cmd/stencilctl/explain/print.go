package explain

import (
	"fmt"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

func (e *explaining) print(found *report) error {
	if !e.format.Is(cli.Table) {
		return e.format.Write(e.streams.Out, found)
	}
	out, paint := e.streams.Out, e.streams.Paint
	decision := paint(cli.Green, "would be created")
	switch {
	case found.Allowed && found.Update && len(found.Changes) == 0:
		decision = paint(cli.Green, "would not change, besides its annotations")
	case found.Allowed && found.Update:
		decision = paint(cli.Green, "would be changed")
	case !found.Allowed:
		decision = paint(cli.Red, "would be denied")
	}
	fmt.Fprintf(out, "VirtualMachine %s %s\n", paint(cli.Bold, found.VM), decision)
	for _, c := range found.Checks {
		style := map[string]cli.Style{passed: cli.Green, failed: cli.Red, unknown: cli.Yellow}[c.Outcome]
		fmt.Fprintf(out, "  %s %s\n", paint(style, fmt.Sprintf("%-7s", c.Outcome)), c.What)
		for _, detail := range c.Details {
			fmt.Fprintf(out, "          %s\n", detail)
		}
	}
	for _, c := range found.Changes {
		fmt.Fprintf(out, "  %s\n          %s -> %s\n", c.Field, shown(c.Before), shown(c.After))
	}
	for _, warning := range found.Warnings {
		fmt.Fprintf(out, "  %s %s\n", paint(cli.Yellow, "warning"), warning)
	}
	if r := found.Refusal; r != nil {
		fmt.Fprintf(out, "denied by %s (%s)\n  %s\n", r.By, r.Meaning, r.Message)
		for _, cause := range r.Causes {
			fmt.Fprintf(out, "  - %s\n", cause)
		}
	}
	return nil
}
