package powers

import (
	"context"

	"github.com/vmstencil/stencil/internal/disks"
)

// Resolver finds the claim or VolumeSnapshot that a source leads to; disks.APIServer implements it.
type Resolver interface {
	Resolve(ctx context.Context, source disks.Source) (disks.Resolved, error)
}

// Disk follows a source to its claim or VolumeSnapshot. outside is the first namespace on the way that is not permitted; nothing of it was read, and nothing may be
// done with the disk then. A DataSource is a user's, or leads where its owner decides: it is followed here, and not by CDI with the rights of an account.
func Disk(ctx context.Context, from Resolver, source disks.Source, permitted ...string) (to disks.Resolved, outside string, err error) {
	to = disks.Resolved{Source: source}
	if outside = to.Outside(permitted...); outside != "" {
		return to, outside, nil
	}
	if to, err = from.Resolve(ctx, source); err != nil {
		return to, "", err
	}
	return to, to.Outside(permitted...), nil
}
