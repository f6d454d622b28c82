// Package supervisor runs a worker, restarts it, and sends requests to it.
//
// libvirt runs in a separate process for two reasons. It can crash, hang and leak. And only the
// supervisor may wait for children: libvirt starts QEMU to query its capabilities, and a
// process that libvirt does not reap itself is inherited by the supervisor, which is a child
// subreaper. Reaping inside libvirt's process would reap libvirt's own children; not reaping at
// all makes its first define a second slower.
//
// A worker that dies is started again, after a short delay the first time and then with
// increasing delay; processes that it left running are killed. If a worker dies on a domain, or
// does not answer within the watchdog timeout, the domain is tried once more, alone. If that
// ends the worker too, the domain is quarantined: it fails without being tried. Thus one domain
// cannot block the others, and no domain is quarantined because it ran next to a bad one.
package supervisor
