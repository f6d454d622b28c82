// Package manager runs stencil-manager as the process that a cluster would run: built from this checkout, started with flags, probed over HTTP and
// stopped by signals.
//
// A test of a restart, a lost leader election or a killed manager needs a process, not a function call. [Start] builds the binary, picks free ports
// on loopback, waits until /readyz answers and returns a [Process]:
//
//	process, err := manager.Start(ctx, manager.Options{
//		Kubeconfig: kubeconfig,
//		Namespace:  "stencil-system",
//		Args:       []string{"--webhook-configurations=mutating/a-stencil-render,validating/stencil-validate"},
//	})
//	if err != nil { … }
//	defer process.Stop()
//
// A webhook configuration has to name the manager's URL before the manager can become ready with a published certificate authority, and the URL is
// needed before the manager starts. [FreeAddress] picks an address for such a test, and Options.WebhookAddress takes it; the same address can be
// given to a second Start after the first process has stopped.
//
// A process that a test starts never outlives it: it is killed when the context ends, and on Linux also when the test binary dies. The context of a
// test ends before its cleanups; where a cleanup is to stop the process with SIGTERM, start it with context.WithoutCancel(t.Context()).
package manager
