package mover

import (
	"testing"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

func TestAnExportedOVAIsImported(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	s := newSite(t, pkg)
	inspect := fromHTTP(transfer.Inspect, s.URL+"/web.ova")
	state := succeed(t, mounts(t, nil), inspect)
	t.Logf("%d of %d bytes in %d requests", s.served, len(pkg), s.requests)
	task := toImport(inspect, state.Plan)
	f := volumes(t, task)
	state = succeed(t, f, task)
	isImported(t, f, task)
	t.Logf("%+v", state)
}
