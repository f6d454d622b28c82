package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTools(t *testing.T) {
	file := filepath.Join(t.TempDir(), "another-etcd")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		environment map[string]string
		tools       []string
		wantPath    string
		wantErr     []string
	}{
		"an unknown tool is named, and so are those that exist": {
			tools:   []string{"kube-scheduler"},
			wantErr: []string{"kube-scheduler", "kube-apiserver"},
		},
		"a variable of envtest puts another binary in the place of a tool": {
			environment: map[string]string{"TEST_ASSET_ETCD": file},
			tools:       []string{"etcd"},
			wantPath:    file,
		},
		"a variable that names nothing is named": {
			environment: map[string]string{"TEST_ASSET_KUBE_APISERVER": file + "-missing"},
			tools:       []string{"kube-apiserver"},
			wantErr:     []string{"TEST_ASSET_KUBE_APISERVER", "kube-apiserver", "another-etcd-missing"},
		},
		"a machine without Go is told what is missing": {
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
			if tc.wantPath != "" && paths[tc.tools[0]] != tc.wantPath {
				t.Errorf("want %s, got %v", tc.wantPath, paths)
			}
		})
	}
}
