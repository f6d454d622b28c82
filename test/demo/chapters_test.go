package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/images"
)

// TestEveryChapterHasSteps compares the list of chapters with those that steps begin, which decide the order.
func TestEveryChapterHasSteps(t *testing.T) {
	registry := images.Start()
	t.Cleanup(registry.Close)
	file := func(path string) string { return path }
	later, err := virtualizationSteps(file, registry)
	if err != nil {
		t.Fatal(err)
	}
	server := newShelf()
	t.Cleanup(server.Close)
	first := templateSteps(file, true)
	var begun []string
	for _, s := range slices.Concat(first, later, transferSteps(t.Context(), nil, server), guestSteps()) {
		if s.chapter != "" {
			begun = append(begun, s.chapter)
		}
	}
	var listed []string
	for _, each := range chapters {
		listed = append(listed, each.name)
	}
	if !slices.Equal(begun, listed) {
		t.Errorf("steps begin  %v\nchapters are %v", begun, listed)
	}
	if first[0].chapter == "" || later[0].chapter != virtualization {
		t.Errorf("the parts begin with %q and %q", first[0].chapter, later[0].chapter)
	}
}

func TestOneChapter(t *testing.T) {
	var screen bytes.Buffer
	g := guide{screen: &screen, only: "policies"}
	for _, each := range chapters {
		out, err := g.turn(t.Context(), each.name)
		switch at := number(each.name) - number("policies"); {
		case at < 0 && (out != io.Discard || err != nil), at == 0 && (out != &screen || err != nil), at > 0 && !errors.Is(err, errShown):
			t.Errorf("chapter %s: %v, %v", each.name, out, err)
		}
	}
	if got := screen.String(); strings.Count(got, "Done without output") != number("policies") {
		t.Errorf("it prints %s", got)
	}
	for name, want := range map[string]bool{"first": false, "revisions": false, "images": true, "guest": true, "": true} {
		if g.only = name; g.reaches(virtualization) != want || g.check() != nil {
			t.Errorf("%q needs KubeVirt: %v", name, g.reaches(virtualization))
		}
	}
	g.only = "polices"
	const want = `-chapter: there is no chapter "polices": want one of approvals, capture, first, guest, images, objects, policies, process, revisions, templates, transfers`
	if err := g.check(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestTheTourWaits has a reader with two lines: the third chapter waits for the end of the input, and Ctrl-C ends a wait.
func TestTheTourWaits(t *testing.T) {
	var screen bytes.Buffer
	g := guide{screen: &screen, keys: bufio.NewScanner(strings.NewReader("\n\n"))}
	for _, each := range chapters[:4] {
		if out, err := g.turn(t.Context(), each.name); out != &screen || err != nil {
			t.Errorf("chapter %s: %v", each.name, err)
		}
	}
	const want = "\n── 1 of 11. Enter shows templates: parameters, overrides, and what is refused. \n── 2 of 11. Enter shows process"
	if got := screen.String(); !strings.HasPrefix(got, want) {
		t.Errorf("it prints %s", got)
	}
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	g.keys = bufio.NewScanner(reader)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := g.turn(ended, "process"); !errors.Is(err, context.Canceled) {
		t.Errorf("it continues: %v", err)
	}
}
