package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "stencil.kubevirt.io"

var (
	// GroupVersion is the API group and version of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that generated clients use.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&TemplateApproval{},
		&TemplateApprovalList{},
		&VirtualMachinePolicy{},
		&VirtualMachinePolicyList{},
		&PolicyException{},
		&PolicyExceptionList{},
		&VirtualMachinePolicySource{},
		&VirtualMachinePolicySourceList{},
		&GoldenImage{},
		&GoldenImageList{},
		&RevisionMigration{},
		&RevisionMigrationList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
