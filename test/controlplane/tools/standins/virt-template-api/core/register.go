// Package core stands in for KubeVirt's names of template resources.
package core

// The names of the resources.
const (
	GroupName            = "template.kubevirt.io"
	SingularResourceName = "virtualmachinetemplate"
	PluralResourceName   = "virtualmachinetemplates"
)
