package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTools(t *testing.T) {
	// The cases choose their own.
	t.Setenv("STENCIL_ASSETS", "")
	built, err := Tools(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	assets := t.TempDir()
	etcd := filepath.Join(assets, "etcd")
	if err := os.WriteFile(etcd, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		environment map[string]string
		tools       []string
		wantPaths   map[string]string
		wantErr     []string
	}{
		"an unknown tool is an error that lists the known ones": {
			tools:   []string{"kube-nothing"},
			wantErr: []string{"kube-nothing", "kube-apiserver"},
		},
		"a file in STENCIL_ASSETS replaces the tool of its name, and no Go is needed": {
			environment: map[string]string{"STENCIL_ASSETS": assets, "PATH": "/usr/bin:/bin"},
			tools:       []string{"etcd"},
			wantPaths:   map[string]string{"etcd": etcd},
		},
		"a tool that STENCIL_ASSETS does not have is built": {
			environment: map[string]string{"STENCIL_ASSETS": assets},
			tools:       []string{"kubectl", "etcd"},
			wantPaths:   map[string]string{"etcd": etcd, "kubectl": built["kubectl"]},
		},
		"a folder that does not exist is an error that names the variable": {
			environment: map[string]string{"STENCIL_ASSETS": assets + "-missing"},
			tools:       []string{"kube-apiserver"},
			wantErr:     []string{"STENCIL_ASSETS", assets + "-missing"},
		},
		"without Go the error says what is missing": {
			environment: map[string]string{"PATH": "/usr/bin:/bin"},
			tools:       []string{"etcd"},
			wantErr:     []string{"etcd", "go command is not on PATH"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range tc.environment {
				t.Setenv(variable, value)
			}
			paths, err := Tools(t.Context(), tc.tools...)
			if tc.wantErr == nil && err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.wantErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in the error, got: %v", want, err)
				}
			}
			if diff := cmp.Diff(tc.wantPaths, paths); tc.wantErr == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}
