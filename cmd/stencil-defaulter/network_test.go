package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
)

// TestNothingOfItIsOnTheNetwork checks that the processes have no network sockets: the
// containers of a pod share its network.
func TestNothingOfItIsOnTheNetwork(t *testing.T) {
	e := newEngine(startSupervisor(t, nil))
	if _, err := e.Answer(context.Background(), &defaulting.Request{VM: encode(t, shapes.New(shapes.Disks(1, "virtio"), shapes.NICs(1, "virtio")))}); err != nil {
		t.Fatal(err)
	}
	network := map[string]string{}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			continue // IPv6 may be off.
		}
		for _, line := range strings.Split(string(text), "\n")[1:] {
			if fields := strings.Fields(line); len(fields) > 9 {
				network["socket:["+fields[9]+"]"] = table + " " + fields[1]
			}
		}
	}
	processes := append(childrenOf(t, os.Getpid()), os.Getpid())
	if len(processes) < 2 {
		t.Fatal("there is no worker")
	}
	for _, process := range processes {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", process))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && network[target] != "" {
				t.Errorf("process %d has a socket on the network: %s", process, network[target])
			}
		}
	}
}

// childrenOf returns the child processes of a process.
func childrenOf(t *testing.T, parent int) []int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // The thread has ended.
		}
		for _, field := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}
