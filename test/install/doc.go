// Package install puts the Helm chart into a control plane, with the real helm, the way an administrator would: for end-to-end
// tests, for the demo, and for the tests of the chart itself.
//
// There are no nodes on such a plane, so the manager runs as a process beside it. [Chart] therefore installs the chart with
// manager.enabled=false and webhooks.url set to where that process listens, [Options.ManagerArgs] are the flags that the
// process needs to serve this release, and [Options.ManagerUser] has exactly the rights that the chart gives to the
// manager's ServiceAccount:
//
//	options := install.Options{ManagerURL: "https://" + address}
//	if err := install.Chart(ctx, plane, options); err != nil { … }
//	user, err := options.ManagerUser(plane)
//	…
//	process, err := manager.Start(ctx, manager.Options{
//		Kubeconfig:     user.Kubeconfig,
//		Namespace:      install.Namespace,
//		WebhookAddress: address,
//		Args:           options.ManagerArgs(),
//	})
package install
