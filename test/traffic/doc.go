// Package traffic writes to a plane at a steady rate while a test restarts a component, upgrades the chart or changes policies. It reports, for each
// kind of write and each user, what was written, what was denied by admission and by which webhook or policy, what was rejected for other reasons,
// and what no API server answered:
//
//	running, err := traffic.Start(ctx, traffic.Options{Plane: plane})
//	…
//	err = plane.RestartAPIServer(ctx)
//	…
//	report, err := running.Stop()
//	if n := report.DeniedByStencil(); n > 0 { t.Errorf("Stencil denied %d writes:\n%s", n, report) }
//
// Each write is one of a user with the permissions for it and nothing else: VirtualMachines by a user of the namespace, labels of the namespace by an
// administrator of namespaces, status and metadata by the service account of virt-controller. Requests go to the API server of the plane, through
// client-go.
package traffic
