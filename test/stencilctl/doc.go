// Package stencilctl runs the command line as users do: built from this checkout, as a process with a kubeconfig, with pipes or on a terminal, which
// is a pseudo-terminal.
//
//	ran, err := stencilctl.Command{Binary: built, Kubeconfig: ada.Kubeconfig, Line: "create shop/box"}.OnTerminal(ctx,
//		stencilctl.Answer{Prompt: "NAME: ", Text: "web-1"})
//
// [Golden] compares what it printed with a file.
package stencilctl
