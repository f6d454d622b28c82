// Package apiserver is the aggregated API of templates: the group
// subresources.template.kubevirt.io with virtualmachinetemplates/NAME/process and
// /create, and processedtemplates.
//
// It is a server of k8s.io/apiserver with everything that brings (delegated
// authentication and authorization, audit, limits, metrics, health), and with routes
// of its own in the place of REST storage. Storage would be in the way three times:
// create would answer 201 and read its body by Content-Type, where clients of the
// published API send anything and expect 200; and a subresource needs a parent in
// discovery, which hides the CustomResourceDefinition of the same name from kubectl.
//
// process renders and stores nothing. create renders, settles every value, and
// creates the VirtualMachine as the server, on behalf of the person (see package
// delegation): the render webhook renders it once more from the same values, so that
// whatever holds for a VirtualMachine that somebody creates by themselves holds for
// this one. Whoever may create the subresource needs no right on VirtualMachines.
//
// Templates come from a watch cache; process asks nobody.
package apiserver
