package manager

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script makes an executable that replaces stencil-manager.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stencil-manager")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartWithoutAKubeconfigIsRefused(t *testing.T) {
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "no kubeconfig given") {
		t.Errorf("want the missing kubeconfig named, got %v", err)
	}
}

func TestStartTellsWhatAProcessWroteThatEndedAtOnce(t *testing.T) {
	binary := script(t, "echo flags: $1; exit 3\n")
	_, err := Start(t.Context(), Options{Kubeconfig: "admin.conf", Binary: binary})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "flags: --kubeconfig=admin.conf") {
		t.Errorf("want the exit status and the log, got %v", err)
	}
}

func TestStartGivesUpOnAProcessThatNeverBecomesReady(t *testing.T) {
	binary := script(t, "exec sleep 600\n")
	_, err := Start(t.Context(), Options{Kubeconfig: "admin.conf", Binary: binary, ReadyTimeout: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "stencil-manager is not ready") {
		t.Errorf("want to hear that it is not ready, got %v", err)
	}
}

func TestHowAProcessEnds(t *testing.T) {
	cases := map[string]struct {
		body string
		end  func(*Process) error
		want string
	}{
		"Stop sends SIGTERM once and waits": {
			body: "trap 'exit 0' TERM\necho up\nwhile :; do sleep 0.01; done\n",
			end:  func(p *Process) error { _ = p.Terminate(); return p.Stop() },
		},
		"Stop tells of a process that ends badly": {
			body: "trap 'exit 7' TERM\necho up\nwhile :; do sleep 0.01; done\n",
			end:  (*Process).Stop,
			want: "exit status 7",
		},
		"Stop of a process that was killed on purpose is no error": {
			body: "echo up\nwhile :; do sleep 0.01; done\n",
			end: func(p *Process) error {
				if err := p.Kill(); err != nil {
					return err
				}
				return p.Stop()
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			process, err := Start(context.WithoutCancel(t.Context()), Options{
				Kubeconfig: "admin.conf", Binary: script(t, tc.body), WithoutWaiting: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			// The trap is set when the process prints "up".
			for !strings.Contains(process.Logs(), "up") {
				select {
				case <-process.Done():
					t.Fatalf("the process ended: %s", process.Logs())
				case <-time.After(5 * time.Millisecond):
				}
			}
			got := ""
			if err := tc.end(process); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
			select {
			case <-process.Done():
			default:
				t.Error("the process runs on")
			}
		})
	}
}
