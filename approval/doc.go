// Package approval decides whether a VirtualMachine is approved: it compiles TemplateApprovals and evaluates requests and stored VirtualMachines with
// them.
//
// # Subjects
//
// A namespace is governed when at least one approval selects it. There, a VirtualMachine must satisfy at least one of these approvals. The strictest
// enforcement among them decides what happens to a VirtualMachine that satisfies none. A user is exempt when every one of these approvals exempts the
// user. A user cannot satisfy an approval that does not serve the user.
//
// An approval that cannot be compiled still selects its namespaces and exempts its exempt subjects, and approves nothing; see Closed.
//
// # Evaluated fields
//
// On creation: the template, the values of its parameters, and every place that the user set in addition to the reference (UserSpecified). On update: every
// place where the old and the new VirtualMachine differ (Changes). A place is a Path, and each must lie in an override of the approval.
//
// A parameter of the template that the approval does not list is closed: it has the default of the template, or a generated value. The parameter that
// the name of the VirtualMachine sets stays open unless it has a part in the source of a disk. If a closed parameter is required and has neither a
// default nor a generated value, no VirtualMachine of the template satisfies the approval.
//
// Not evaluated are status, the metadata other than labels and annotations, the labels and annotations of the contract between a VirtualMachine and its
// template, and kubectl's last-applied-configuration. The first two do not change the VM, and an admission policy protects the contract.
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
// A field is a key of a map; ["KEY"] is a key that contains other characters than a field can; .* is any key. [name=NAME] is the item of that name in
// a list of uniquely named items, [*] is any item of any list. There is no white space. The first field is spec, or metadata followed by labels or
// annotations.
//
// Anything that is not a path of one field or value is treated like this:
//
//   - An item of a list of uniquely named items is added and removed as a whole: to add
//     disks[name=data] it is not enough that disks[name=data].bootOrder may be overridden.
//   - A list of other items is evaluated item by item while its length stays the
//     same, and otherwise as a whole, which takes an override of the list or of [*].
//   - A map that is removed is evaluated as a whole, because the presence of a map such
//     as firmware.bootloader.efi may mean more than its fields. It takes an override of
//     the map or of .* in it. A map that is added is evaluated by its content. Maps that
//     KubeVirt's own clients send empty (domain.resources, for example), and maps of
//     strings such as labels, are always evaluated by their content.
//   - null is the same as nothing, as it is for Kubernetes.
//
// The package is pure: it has no client and no clock.
package approval
