package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// chapters are the parts of the tour in their order, each with a title. Those from virtualization on need KubeVirt.
var chapters = []chapter{
	{"first", "the first VM from a template"},
	{"templates", "parameters, overrides, and what is refused"},
	{"process", "the API: process and create"},
	{"revisions", "instance types of an older KubeVirt"},
	{"images", "golden images and lent disks"},
	{"objects", "Secrets and Services of a template"},
	{"policies", "policies in Rego"},
	{"approvals", "a governed namespace"},
	{"capture", "a VM becomes a template"},
	{"transfers", "export and import"},
	{guestChapter, "what a guest sees, where there is a QEMU"},
}

type chapter struct{ name, title string }

const (
	// virtualization is the first chapter that needs KubeVirt and CDI.
	virtualization = "images"
	// guestChapter needs a QEMU.
	guestChapter = "guest"
)

// number returns the position of a chapter; -1 for none.
func number(name string) int {
	return slices.IndexFunc(chapters, func(each chapter) bool { return each.name == name })
}

// contents lists the chapters, one a line.
func contents() string {
	var text strings.Builder
	for _, each := range chapters {
		fmt.Fprintf(&text, "  %-10s  %s\n", each.name, each.title)
	}
	return text.String()
}

// errShown ends the tour after the only chapter that is shown.
var errShown = errors.New("the chapter has been shown")

// guide decides what of the tour is shown, and when.
type guide struct {
	// screen is where chapters are shown.
	screen io.Writer
	// only is the one chapter that is shown; empty for all. Those before it are done without output: it is about what they have made.
	only string
	// keys has a line for each chapter but the first, before which the tour waits; nil if it does not wait.
	keys *bufio.Scanner
}

// turn begins a chapter. It returns where the chapter is shown, or errShown.
func (g *guide) turn(ctx context.Context, name string) (io.Writer, error) {
	switch at, only := number(name), number(g.only); {
	case g.only != "" && at > only:
		return nil, errShown
	case g.only != "" && at < only:
		fmt.Fprintf(g.screen, "Done without output, because the chapter is about the result: %s\n", chapters[at].title)
		return io.Discard, nil
	case g.keys != nil && at > 0:
		fmt.Fprintf(g.screen, "\n── %d of %d. Enter shows %s: %s. ", at, len(chapters), name, chapters[at].title)
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
	}
	return g.screen, nil
}

// wait returns after a line, or at the end of the input.
func (g *guide) wait(ctx context.Context) error {
	read := make(chan struct{})
	go func() {
		defer close(read)
		g.keys.Scan()
	}()
	select {
	case <-read:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reaches reports whether the chapter is shown, or done for a later one.
func (g *guide) reaches(chapter string) bool {
	return g.only == "" || number(g.only) >= number(chapter)
}

// check returns an error about a chapter that does not exist, which lists those that do.
func (g *guide) check() error {
	if g.only == "" || number(g.only) >= 0 {
		return nil
	}
	names := make([]string, 0, len(chapters))
	for _, each := range chapters {
		names = append(names, each.name)
	}
	slices.Sort(names)
	return fmt.Errorf("-chapter: there is no chapter %q: want one of %s", g.only, strings.Join(names, ", "))
}
