package platform

import (
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// Upgrade upgrades the release to other values with helm, and replaces the managers as their Deployment does with maxSurge 1 and maxUnavailable 0: one
// new manager has to be ready before an old one stops, and the old ones lead until then. With apiServer, stencil-apiserver is part of the release.
// Options.Replicated is needed, and processes instead of containers. managerArgs are flags of the new managers beside those of the release.
func (p *Platform) Upgrade(values map[string]any, apiServer bool, managerArgs ...string) error {
	if p.service == nil || p.options.Container != nil {
		return errNotReplicated
	}
	upgraded := p.install
	upgraded.Values, upgraded.APIServerAddress = values, ""
	if apiServer {
		var err error
		if upgraded.APIServerAddress, err = p.apiServerAddress(); err != nil {
			return err
		}
	}
	if err := install.Chart(p.ctx, p.Plane, upgraded); err != nil {
		return err
	}
	p.install = upgraded
	process, err := upgraded.Manager(p.Plane)
	if err != nil {
		return err
	}
	p.process.Args = slices.Concat(process.Args, p.options.ManagerArgs, managerArgs)
	for i, old := range append([]*manager.Process{p.Manager}, p.replicas...) {
		started, err := p.launch()
		if err != nil {
			return fmt.Errorf("replica %d of the upgraded release: %w", i, err)
		}
		if i == 0 {
			p.Manager = started
		} else {
			p.replicas[i-1] = started
		}
		if err := old.Stop(); err != nil {
			return err
		}
	}
	switch {
	case apiServer && p.APIServer == nil:
		return p.StartAPIServer()
	case !apiServer && p.APIServer != nil:
		stopped := p.APIServer.Stop()
		p.APIServer = nil
		p.apiServers.Close()
		p.apiServers = nil
		return stopped
	}
	return nil
}
