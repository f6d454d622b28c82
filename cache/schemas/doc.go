// Package schemas extends the types of what policies read by the fields of the installed KubeVirt.
//
// Reflectors of client-go watch the CustomResourceDefinitions of the VirtualMachine, the instance type and the preference by name, and retain only
// their schemas. Fields that these have in addition to the embedded schemas are added; nothing is removed, and no type is changed. A definition that
// is missing, defines no fields, or is beyond a bound of package definition changes nothing: the last good one stays in use, or the embedded one.
package schemas
