package mover

import (
	"context"
	"io"

	"github.com/vmstencil/stencil/transfer"
)

func isLayout(io.ReaderAt, int64) bool { return false }

func (m *Mover) planLayout(context.Context, origin) (*transfer.Plan, error) {
	return nil, failed(transfer.ReasonUnsupported, false, "OCI archives are not supported")
}

func (m *Mover) planRegistry(context.Context) (*transfer.Plan, error) {
	return nil, failed(transfer.ReasonUnsupported, false, "registries are not supported")
}

func (m *Mover) importLayout(context.Context, origin) error {
	return failed(transfer.ReasonUnsupported, false, "OCI archives are not supported")
}

func (m *Mover) importRegistry(context.Context) error {
	return failed(transfer.ReasonUnsupported, false, "registries are not supported")
}
