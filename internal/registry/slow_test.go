package registry

import (
	"fmt"
	"testing"

	"github.com/vmstencil/stencil/internal/resume"
)

// A registry that trickles would be tried again for ever, and occupy what others wait for.
func TestARegistryThatIsTooSlowIsNotTriedAgain(t *testing.T) {
	if Temporary(fmt.Errorf("reading the layer: %w", resume.ErrSlow)) {
		t.Error("another attempt is made")
	}
	if !Temporary(fmt.Errorf("reading the layer: %w", resume.ErrStalled)) {
		t.Error("one that sent nothing for a while is not tried again")
	}
}
