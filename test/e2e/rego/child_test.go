package rego_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/harness"
)

// unbounded takes minutes to compile, and hundreds of MiB: each of 2300 rules depends on 2600 others. Which limit it reaches first, depends on the
// speed of the processor.
func unbounded() string {
	var text strings.Builder
	text.WriteString("package x\n")
	for i := range 2600 {
		fmt.Fprintf(&text, "a.r%d := 1\n", i)
	}
	for i := range 2300 {
		fmt.Fprintf(&text, "b%d if a[_]\n", i)
	}
	text.WriteString("deny contains \"no\" if b1\n")
	return text.String()
}

// denials are the messages to users about an unbounded policy, by the result in the metrics.
var denials = map[string]string{
	"timeout": "spec.rego: it takes too long to compile: more than 5s",
	"memory":  "spec.rego: compiling it needs more than 256 MiB of memory\n",
}

// resultOf returns the result in the metrics for what kubectl printed about an unbounded policy. Anything but a denial is an error.
func resultOf(t *testing.T, printed string) string {
	t.Helper()
	for result, message := range denials {
		if strings.Contains(printed, message) {
			return result
		}
	}
	t.Errorf("the policy is denied with %q, want one of %q", printed, slices.Collect(maps.Values(denials)))
	return ""
}

// createUnbounded creates an unbounded policy as cluster admins do, and returns what kubectl prints. It repeats that while the busy host gives the
// child too little CPU time.
func createUnbounded(t *testing.T) <-chan string {
	printed := make(chan string, 1)
	go func() {
		for {
			result, err := stencil.Kubectl(t.Context(), nil, policy("bomb", "", unbounded()), "create", "-f", "-")
			if err != nil {
				result.Stderr = err.Error()
			}
			if err == nil && strings.Contains(result.Stderr, "it received too little CPU time") {
				continue
			}
			printed <- result.Stderr
			return
		}
	}()
	return printed
}

// children returns the processes that compile policies for a manager.
func children(t *testing.T, manager int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		status, _ := os.ReadFile(file) // It may have ended.
		if !bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", manager)) {
			continue
		}
		arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.HasSuffix(arguments, []byte("\x00compile-policies\x00")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, pid)
		}
	}
	return found
}

// awaitChild waits for the child of a manager that compiles now.
func awaitChild(t *testing.T, manager int) (pid int) {
	t.Helper()
	harness.Eventually(t, "a child compiles", func() error {
		found := children(t, manager)
		if len(found) != 1 {
			return fmt.Errorf("children %v", found)
		}
		pid = found[0]
		return nil
	})
	return pid
}

// residentMiB returns the memory of a process.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

func TestPoliciesAreCompiledInAChildOfTheManager(t *testing.T) {
	applied(t, "child", "", denies("child"))
	active(t, "child")
	awaitDenial(t, "child", "no child here")
	manager := stencil.first.PID()
	before := residentMiB(t, manager)
	denied := createUnbounded(t)
	awaitChild(t, manager)
	requests, result := 0, ""
	for got := ""; got == ""; {
		awaitDenial(t, "child", "no child here")
		passes(t, "other", "")
		requests++
		time.Sleep(100 * time.Millisecond) // The requests alone must not starve the child.
		select {
		case got = <-denied:
			result = resultOf(t, got)
		default:
		}
	}
	t.Logf("%d VirtualMachines were denied, and as many admitted, while the policy was compiled, until %s", requests, result)
	if after := residentMiB(t, manager); after > before+64 {
		t.Errorf("the manager has grown from %d to %d MiB", before, after)
	}
	if stencil.first.PID() != manager {
		t.Error("the manager was restarted")
	}
	metrics, err := stencil.first.Metrics(t.Context())
	if count := regexp.MustCompile(`(?m)^stencil_policy_checks_total\{result="` + result + `"\} (.*)$`).FindStringSubmatch(metrics); err != nil || count == nil || count[1] == "0" {
		t.Errorf("%v, and the metrics have %q", err, count)
	}
	harness.Eventually(t, "no child is left", func() error {
		if found := children(t, manager); len(found) > 0 {
			return fmt.Errorf("children %v", found)
		}
		return nil
	})
}

func TestAChildThatIsKilledIsReplaced(t *testing.T) {
	manager := stencil.first.PID()
	denied := createUnbounded(t)
	killed := awaitChild(t, manager)
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "another child compiles", func() error {
		if found := children(t, manager); len(found) != 1 || found[0] == killed {
			return fmt.Errorf("children %v", found)
		}
		return nil
	})
	resultOf(t, <-denied)
	applied(t, "later", "", denies("later"))
	active(t, "later")
}

func TestNoChildOutlivesAManagerThatIsKilled(t *testing.T) {
	manager := stencil.first.PID()
	go func() {
		_, _ = stencil.Kubectl(t.Context(), nil, policy("bomb", "", unbounded()), "create", "-f", "-")
	}()
	orphan := awaitChild(t, manager)
	stencil.service.Remove(stencil.first)
	began := time.Now()
	if err := stencil.first.Kill(); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, "the child has ended", func() error {
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", orphan))
		if err == nil && bytes.Contains(arguments, []byte("compile-policies")) {
			return fmt.Errorf("the child runs %s after its manager", time.Since(began))
		}
		return nil
	})
	var err error
	if stencil.first, err = stencil.run("one"); err != nil {
		t.Fatal(err)
	}
	if err := stencil.first.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stencil.awaitWebhooks(); err != nil {
		t.Fatal(err)
	}
}
