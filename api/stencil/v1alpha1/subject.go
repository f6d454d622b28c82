package v1alpha1

// Subject is a sender of requests: a user, a group or a service account. Names are
// compared literally; there are no wildcards.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'ServiceAccount' ? has(self.__namespace__) : !has(self.__namespace__)",message="a ServiceAccount needs a namespace, a User or Group takes none",fieldPath=".namespace"
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	//
	// +required
	Kind SubjectKind `json:"kind"`

	// Name is the name of the user, group or service account. Service accounts
	// are also users, called system:serviceaccount:NAMESPACE:NAME, and members of
	// the groups system:serviceaccounts and system:serviceaccounts:NAMESPACE.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`

	// Namespace is the namespace of the service account.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// SubjectKind is the kind of a Subject.
//
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type SubjectKind string

const (
	// SubjectKindUser is a user, by the authenticated name.
	SubjectKindUser SubjectKind = "User"

	// SubjectKindGroup is all members of a group.
	SubjectKindGroup SubjectKind = "Group"

	// SubjectKindServiceAccount is a service account.
	SubjectKindServiceAccount SubjectKind = "ServiceAccount"
)
