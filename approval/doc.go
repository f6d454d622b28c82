// Package approval decides whether a VirtualMachine is approved: it compiles
// TemplateApprovals and judges by them what a person asks for.
//
// # Who is judged
//
// A namespace is governed when at least one approval covers it. There a
// VirtualMachine must satisfy at least one of the approvals that cover it; what
// happens to one that satisfies none is said by the strictest enforcement among
// them. A person is exempt when every one of these approvals exempts them. An
// approval that does not serve a person cannot be satisfied by them.
//
// An approval that cannot be compiled still covers its namespaces and exempts whom
// it exempts, and approves nothing; see Closed.
//
// # What is judged
//
// On creation: the template, the values of its parameters, and every place that
// the person wrote to beside the reference (Written). On update: every place where
// the old and the new VirtualMachine differ (Changes). A place is a Path, and each
// must lie in an override of the approval.
//
// A parameter of the template that the approval does not list is closed: it has the
// default of the template, or what the template generates. The parameter that the name
// of the VirtualMachine sets stays open unless it has a part in the source of a disk.
// A template with a closed parameter that is required and has neither is not satisfied
// by any VirtualMachine.
//
// Not judged, because they do not make the VirtualMachine another one or are
// somebody else's to judge, are status, the metadata other than labels and
// annotations, and the labels and annotations of the contract between a
// VirtualMachine and its template, which an admission policy keeps fixed.
//
// # Overrides
//
// An override is a path, and allows everything at it and below it. Its grammar:
//
//	override = field { "." field | "." "*" | "[" item "]" }
//	item     = "*" | "name" "=" name | quoted
//	field    = 1 or more of A-Z a-z 0-9 _ -
//	name     = 1 or more of A-Z a-z 0-9 _ - . or quoted
//	quoted   = '"' { any character; " is written \" and \ is written \\ } '"'
//
// A field is a key of a map; ["KEY"] is a key that holds other characters than a
// field can; .* is any key. [name=NAME] is the item of that name in a list whose
// items all have a unique name, [*] is any item of any list. There is no white
// space. The first field is spec, or metadata followed by labels or annotations.
//
// What is not a path of one field or value is treated like this:
//
//   - An item of a list whose items all have a unique name comes and goes as a
//     whole: to add disks[name=data] it is not enough that disks[name=data].bootOrder
//     may be overridden.
//   - A list of other items is judged item by item while its length stays the
//     same, and else as a whole, which takes an override of the list or of [*].
//   - A map that disappears is judged as a whole, because that firmware.bootloader.efi
//     is there at all may mean more than the fields in it. It takes an override of
//     the map or of .* in it. One that appears is judged by what is in it. Maps that
//     KubeVirt's own clients send empty (domain.resources, say), and maps of strings
//     such as labels, are only what is in them.
//   - null is the same as nothing, as it is for Kubernetes.
//
// The package is pure: it knows no client and no clock.
package approval
