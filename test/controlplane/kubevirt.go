package controlplane

import (
	"context"
	"errors"
)

func (p *Plane) startKubeVirt(ctx context.Context, tools map[string]string) error {
	return errors.New("KubeVirt is not there yet")
}
