package domain_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/defaulting/domain"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestTheDocumentListsEveryField(t *testing.T) {
	const path = "../../docs/defaulting-fields.md"
	if *update {
		if err := os.WriteFile(path, []byte(domain.FieldsDocument()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(domain.FieldsDocument(), string(written)); diff != "" {
		t.Errorf("%s is not current; run go test ./domain -update (-want +got):\n%s", path, diff)
	}
}

func TestEveryFieldHasOneRowAndAReason(t *testing.T) {
	seen := map[string]bool{}
	for _, field := range domain.Fields {
		if seen[field.Path] {
			t.Errorf("%s has two rows", field.Path)
		}
		seen[field.Path] = true
		if field.Why == "" || field.Persisted == "" || field.By == "" {
			t.Errorf("%s does not say by whom, whether and why", field.Path)
		}
	}
}
