// Package supervisor keeps a worker running and asks it.
//
// libvirt runs in a process of its own because it can crash, hang and leak, and
// because nobody but the supervisor may wait for children: libvirt starts QEMU to
// learn about it, and what it does not reap itself is inherited by the supervisor,
// which is a child subreaper. Reaping inside libvirt's process would steal its
// children; not reaping at all makes its first define a second slower.
//
// A worker that dies is started again, at once the first time and then with growing
// delay; whatever it left running is killed. A domain on which a worker died, or on
// which it did not answer within the watchdog's time, is tried once more, alone; when
// that kills the worker too, the domain is in quarantine and is refused without being
// tried. So one domain cannot stop the others, and no domain is in quarantine for
// having been beside a bad one.
package supervisor
