package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/test/images"
	"github.com/vmstencil/stencil/test/platform"
)

// tour runs commands of the steps and prints them with their output.
type tour struct {
	// images is a registry whose tags move.
	images *images.Registry
	// shelf has the package that is exported.
	shelf         *shelf
	stencil       *platform.Platform
	out           io.Writer
	guide         guide
	ada, bob, eve *controlplane.User
	// olga writes templates in the tutorials.
	olga *controlplane.User
	// defaulter is nil where there is no QEMU. It is started after the steps that do not need it: building it takes a while.
	defaulter *defaulter.Defaulter
	// start is when the demo was started.
	start time.Time
	// before is the output that was laid out last.
	before string
}

// step is one command of the tour. A step with an unexpected result ends the demo with an error, so the demo is a test as well.
type step struct {
	// chapter is the name of the chapter that the step begins.
	chapter string
	// text introduces the step.
	text string
	as   string
	// stdin is a manifest, printed before the command.
	stdin string
	args  []string
	// wantDenied is a text that the denial must contain; empty when the command has to succeed.
	wantDenied string
	// holds is a text that the output must contain. The API server may observe the change of an earlier step a moment later, so the command is
	// repeated until it does.
	holds string
	// laidOut lays JSON out over several lines.
	laidOut bool
	// part is the field of that JSON which is shown, and "[...]" for the rest; all of it when empty.
	part string
	// timed is printed after the step, with the time since the start.
	timed string
	// quiet leaves the output out when the command succeeds.
	quiet bool
	// does is done before the command.
	does func() error
	// compared shows the output as what is different from that of the last step that was laid out.
	compared bool
	// booted starts a guest of the VirtualMachine that the output is, and shows what it sees.
	booted bool
}

// run shows the steps that need no KubeVirt, adds KubeVirt and CDI as soon as their tools are built, and shows the rest.
func (t *tour) run(ctx context.Context, tools *controlplane.ToolBuild) (err error) {
	if t.guide.only == guestChapter && t.defaulter == nil {
		return fmt.Errorf("-chapter: %s has nothing to show: %s", guestChapter, defaulter.Install)
	}
	if t.ada, err = t.stencil.Plane.User("ada", "team-a"); err != nil {
		return err
	}
	if t.bob, err = t.stencil.Plane.User("bob"); err != nil {
		return err
	}
	if t.eve, err = t.stencil.Plane.User("eve"); err != nil {
		return err
	}
	if t.olga, err = t.stencil.Plane.User("olga"); err != nil {
		return err
	}
	if err := t.show(ctx, templateSteps(t.stencil.Example, t.defaulter != nil)); err != nil {
		return err
	}
	if !t.guide.reaches(virtualization) {
		return nil
	}
	if err := t.addVirtualization(ctx, tools); err != nil {
		return err
	}
	steps, err := virtualizationSteps(t.stencil.Example, t.images)
	if err != nil {
		return err
	}
	steps = append(steps, transferSteps(ctx, t.stencil.Plane, t.shelf)...)
	if t.defaulter != nil {
		steps = append(steps, guestSteps()...)
	}
	return t.show(ctx, steps)
}

// addVirtualization waits until the tools are built, and adds KubeVirt, CDI and kube-controller-manager to the platform.
func (t *tour) addVirtualization(ctx context.Context, tools *controlplane.ToolBuild) error {
	if !tools.Ended() {
		fmt.Fprintf(t.guide.screen, "\n── KubeVirt, CDI and kube-controller-manager are still being built; the rest needs them. Until then, in another terminal:\n\n%s\n", access(t.stencil))
	}
	if err := tools.Wait(os.Stderr); err != nil {
		return err
	}
	fmt.Fprint(t.guide.screen, "\n── KubeVirt, CDI and kube-controller-manager join the cluster.\n\n")
	if err := t.stencil.StartVirtualization(ctx); err != nil {
		return err
	}
	if t.defaulter != nil {
		if err := t.defaulter.Start(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.guide.screen, "\nThey run, %.0f s after the start. Nodes and storage are simulated.\n", time.Since(t.start).Seconds())
	return nil
}

func (t *tour) show(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.chapter != "" {
			var err error
			if t.out, err = t.guide.turn(ctx, s.chapter); err != nil {
				return err
			}
		}
		if err := t.take(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *tour) take(ctx context.Context, s step) error {
	if s.text != "" {
		fmt.Fprintf(t.out, "\n── %s\n", s.text)
	}
	user, prompt := (*controlplane.User)(nil), "admin$ "
	switch s.as {
	case "ada":
		user, prompt = t.ada, "ada$ "
	case "bob":
		user, prompt = t.bob, "bob$ "
	case "eve":
		user, prompt = t.eve, "eve$ "
	}
	if s.does != nil {
		if err := s.does(); err != nil {
			return err
		}
	}
	if s.stdin != "" {
		fmt.Fprintf(t.out, "\n%s\n", indent(strings.TrimSpace(s.stdin)))
	}
	command := t.shown(s.args)
	switch {
	case s.compared:
		command += " | diff -u before -"
	case s.booted:
		command += " | hack/guest.sh go run ./guest/boot"
	}
	fmt.Fprintf(t.out, "\n%skubectl %s\n", prompt, command)
	var result controlplane.Result
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (done bool, err error) {
		result, err = t.stencil.Plane.Kubectl(ctx, user, s.stdin, s.args...)
		return strings.Contains(result.Stdout, s.holds), err
	})
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(s.args, " "), err, result.Stdout+result.Stderr)
	}
	output := result.Stdout + result.Stderr
	if s.laidOut {
		var lines bytes.Buffer
		if err := json.Indent(&lines, []byte(result.Stdout), "", "  "); err != nil {
			return fmt.Errorf("the output is no JSON: %w: %s", err, output)
		}
		if s.part != "" {
			var whole map[string]json.RawMessage
			if err := json.Unmarshal([]byte(result.Stdout), &whole); err != nil {
				return fmt.Errorf("the output is no object: %w: %s", err, output)
			}
			lines.Reset()
			fmt.Fprintf(&lines, "{\n  [...]\n  %q: ", s.part)
			if err := json.Indent(&lines, whole[s.part], "  ", "  "); err != nil {
				return fmt.Errorf("the output has no %s: %w: %s", s.part, err, output)
			}
			lines.WriteString("\n}")
		}
		output = lines.String() + "\n" + result.Stderr
		if s.compared {
			if output, err = difference(t.before, output); err != nil {
				return err
			}
		}
		t.before = lines.String() + "\n"
	}
	if s.booted && result.Code == 0 {
		if output, err = defaulter.Boot(ctx, result.Stdout); err != nil {
			return err
		}
	}
	if !s.quiet || result.Code != 0 {
		fmt.Fprintln(t.out, strings.TrimRight(output, "\n"))
	}
	switch {
	case s.wantDenied == "" && result.Code != 0:
		return fmt.Errorf("kubectl %s was refused", strings.Join(s.args, " "))
	case s.wantDenied != "" && (result.Code == 0 || !strings.Contains(output, s.wantDenied)):
		return fmt.Errorf("kubectl %s should have been refused with %q", strings.Join(s.args, " "), s.wantDenied)
	}
	if s.timed != "" {
		fmt.Fprintf(t.out, "\n── %s %.0f s after the start.\n", s.timed, time.Since(t.start).Seconds())
	}
	return nil
}

// difference is a unified one, with three lines around what differs.
func difference(before, after string) (string, error) {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(before), B: difflib.SplitLines(after), FromFile: "before", ToFile: "after", Context: 3,
	})
	if err != nil {
		return "", fmt.Errorf("comparing two outputs: %w", err)
	}
	return text, nil
}

// shown returns the command line as a user would type it in a checkout.
func (t *tour) shown(args []string) string {
	examples := t.stencil.Example("")
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = strings.ReplaceAll(arg, examples, "docs/examples")
		if strings.ContainsAny(words[i], " {}'\"$*") {
			words[i] = "'" + words[i] + "'"
		}
	}
	return strings.Join(words, " ")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
