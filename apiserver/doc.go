// Package apiserver is the aggregated API of templates: the group
// subresources.template.kubevirt.io with virtualmachinetemplates/NAME/process and
// /create, processedtemplates, availabletemplates, and defaults.
//
// It is a server of k8s.io/apiserver with everything that brings (delegated
// authentication and authorization, audit, limits, metrics, health), and with routes
// of its own in the place of REST storage. Storage would be in the way three times:
// create would answer 201 and read its body by Content-Type, where clients of the
// published API send anything and expect 200; and a subresource needs a parent in
// discovery, which hides the CustomResourceDefinition of the same name from kubectl.
//
// process renders and stores nothing. For a user who may use the template, what it returns refers to the template. create renders, binds every value, and creates the VirtualMachine as the server, on behalf of the user (see
// package delegation). The render webhook renders it again with the same values, so that the VirtualMachine is subject to the same rules as one that
// the user creates directly. A user with permission to create the subresource needs no permission on VirtualMachines.
//
// defaults has nothing to do with templates: it fills in the defaults that the guest of a VirtualMachine sees, with the code of the webhook that does it on
// creation (package guestdefaults), and without admission. A user with permission to create it needs no other one.
//
// availabletemplates lists the templates that a user may use for a VirtualMachine in a namespace, with the values that approvals allow (approval.Narrow)
// and a JSON Schema of them (package jsonschema). A user with permission to list it needs no permission to read templates and approvals.
//
// Templates and approvals come from watch caches; process calls no other server but the API server, about the permission of the user.
package apiserver
