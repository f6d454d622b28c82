// Package templates holds every VirtualMachineTemplate of the cluster,
// compiled, for whoever renders from templates.
//
// A reflector of client-go lists and then watches the templates. Each one is
// compiled as it arrives and only the compiled form is kept; the object that
// came over the wire is dropped at once, also while the first list streams in,
// so memory holds one form of each template and never two. A template that comes
// again with the same UID and generation (a status update, say) is not compiled
// again. One that does not compile is kept with its error, so that whoever asks
// for it learns why it cannot be used.
//
// What a caller gets is a snapshot: a Template never changes after it was handed
// out, and a later version of the same object is another Template.
package templates
