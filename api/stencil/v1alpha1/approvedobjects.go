package v1alpha1

// ApprovedObjects specifies which objects besides the VirtualMachine are created for
// a new VirtualMachine. A VirtualMachine whose template has another one is not
// approved.
//
// +kubebuilder:validation:XValidation:rule="!has(self.allowed) || size(self.allowed) == 0 || !has(self.policy) || self.policy == 'Allow'",message="allowed limits what policy Allow permits, so it needs policy Allow",fieldPath=".allowed"
type ApprovedObjects struct {
	// Policy is Allow or Deny. Allow permits the objects of an approved template, or
	// those of them that are listed in allowed. Deny permits none: then no
	// VirtualMachine of a template with objects is approved.
	//
	// +optional
	// +kubebuilder:default=Allow
	Policy ObjectPolicy `json:"policy,omitempty"`

	// Allowed limits Allow to objects that at least one entry lists.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Allowed []ApprovedObject `json:"allowed,omitempty"`
}

// ObjectPolicy specifies whether a template may create objects besides the
// VirtualMachine.
//
// +kubebuilder:validation:Enum=Allow;Deny
type ObjectPolicy string

const (
	// ObjectAllow permits the objects of an approved template, or those that are listed.
	ObjectAllow ObjectPolicy = "Allow"
	// ObjectDeny permits no objects.
	ObjectDeny ObjectPolicy = "Deny"
)

// ObjectRights specifies with which rights an object is created.
//
// +kubebuilder:validation:Enum=User;Template
type ObjectRights string

const (
	// ObjectRightsUser requires that the user may create the object.
	ObjectRightsUser ObjectRights = "User"
	// ObjectRightsTemplate does not require that the user may create the object.
	ObjectRightsTemplate ObjectRights = "Template"
)

// ApprovedObject lists objects by their kinds and names.
type ApprovedObject struct {
	// Kinds are the kinds of the objects: KIND for the core API group, and
	// KIND.GROUP for others, such as Secret and NetworkPolicy.networking.k8s.io.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[A-Z][0-9A-Za-z]{0,62}(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Kinds []string `json:"kinds"`

	// Names are patterns that the names of the objects match: * stands for any
	// text, so that *-access matches web-access. Without names, objects of these
	// kinds may have any name.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[-0-9A-Za-z.:_*]+$`
	Names []string `json:"names,omitempty"`

	// Rights is User or Template. User lists objects that users create by their own
	// rights. Template also lists objects of which the template lends the right to
	// create them: no approval allows those without such an entry.
	//
	// +optional
	// +kubebuilder:default=User
	Rights ObjectRights `json:"rights,omitempty"`
}
