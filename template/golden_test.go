package template_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenTemplates renders the templates in testdata with a source of random
// bytes that counts.
func TestGoldenTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		file, golden string
		values       map[string]string
	}{
		"Fedora with nothing given":                 {file: "fedora.yaml", golden: "fedora.generated.golden"},
		"Fedora with all that can be given":         {file: "fedora.yaml", golden: "fedora.given.golden", values: map[string]string{"NAME": "web-1", "INSTANCETYPE": "u1.large", "DATA_SOURCE_NAME": "f42", "DATA_SOURCE_NAMESPACE": "images", "CLOUD_USER_PASSWORD": `"quoted": #\`}},
		"everything the language has, at its least": {file: "everything.yaml", golden: "everything.least.golden"},
		"everything the language has, at its most": {file: "everything.yaml", golden: "everything.most.golden", values: map[string]string{
			"CORES": "8", "NETWORKS": `[{"name":"lan","multus":{"networkName":"lan"}}]`, "EXTRA_DISK": `{"name":"extra"}`, "NAMESPACE": "shop", "RUN": "true",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(readTemplate(t, tc.file), tc.values, template.WithRandom(counting{}))
			if err != nil {
				t.Fatal(err)
			}
			checkRendered(t, rendered)
			var got bytes.Buffer
			if err := json.Indent(&got, rendered.JSON(), "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteString("\n# " + rendered.Message() + "\n")
			file := filepath.Join("testdata", tc.golden)
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestRenderingAllocatesLittle(t *testing.T) {
	compiled := compileFile(t, "fedora.yaml")
	values := map[string]string{"INSTANCETYPE": "u1.large"}
	const most = 10
	if got := testing.AllocsPerRun(100, func() {
		binding, err := compiled.Bind(values)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := compiled.Render(binding); err != nil {
			t.Fatal(err)
		}
	}); got > most {
		t.Errorf("Bind and Render of the Fedora template allocate %v times, want at most %d", got, most)
	}
}

func TestCompiledTemplatesAreSmall(t *testing.T) {
	const (
		templates = 500
		// 10 000 of them must fit into 60 MiB.
		most = 60 << 20 / 10_000
	)
	encoded := mustMarshal(t, readTemplate(t, "fedora.yaml"))
	kept := make([]*template.Compiled, templates)
	before := heap()
	for i := range kept {
		// Each is decoded anew, as a watch would do it: what a compiled template retains of its object is counted.
		object := &v1beta1.VirtualMachineTemplate{}
		if err := json.Unmarshal(encoded, object); err != nil {
			t.Fatal(err)
		}
		kept[i] = mustCompile(t, object)
	}
	each := (heap() - before) / templates
	t.Logf("%d bytes each", each)
	if each > most {
		t.Errorf("a compiled Fedora template takes %d bytes, want at most %d", each, most)
	}
	runtime.KeepAlive(kept)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
