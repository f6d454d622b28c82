// Package install puts the Helm chart into a control plane, with the real helm, the way an administrator would: for end-to-end
// tests, for the demo, and for the tests of the chart itself.
//
// There are no nodes on such a plane, so the manager runs as a process beside it. [Chart] therefore installs the chart with
// manager.enabled=false and webhooks.url set to where that process listens, [Options.ManagerArgs] are the flags that the
// process needs to serve this release, and [Options.ManagerUser] has exactly the rights that the chart gives to the
// manager's ServiceAccount. [Beside] does all of it:
//
//	options, err := install.Beside(ctx, plane, nil)
//	…
//	process, err := manager.Start(ctx, options)
package install
