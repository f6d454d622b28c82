package lint

// Severity is the severity of a finding.
type Severity string

const (
	// Error means that the template webhook, or the API server before it, denies the template.
	Error Severity = "error"
	// Warning means that the webhook stores the template, and returns this warning.
	Warning Severity = "warning"
	// Advice means that the webhook does not report the finding.
	Advice Severity = "advice"
)

// Finding is a problem with a template, or advice.
type Finding struct {
	// Rule is the ID of the rule that found it.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Path is the field that the finding refers to, in the form of field errors; empty if it refers to the whole template.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Key is true if the finding refers to the name of the field, not to its value.
	Key bool `json:"-"`
}

// IDs of the rules. They do not change.
const (
	RuleManifest          = "manifest"
	RuleInvalid           = "invalid"
	RuleValidations       = "validations"
	RuleSuspicious        = "suspicious"
	RuleUnused            = "unused-parameter"
	RuleDefaults          = "defaults"
	RuleDiskWithoutVolume = "disk-without-volume"
	RuleVolumeWithoutDisk = "volume-without-disk"
	RuleSharedClaim       = "shared-claim"
	RuleNoNamespace       = "source-without-namespace"
	RuleUndescribed       = "template-without-description"
	RuleUndescribedParam  = "parameter-without-description"
	RuleNotSensitive      = "password-not-sensitive"
	RuleNotGenerated      = "password-not-generated"
	RuleLiteralPassword   = "password-in-template"
	RuleShownPassword     = "password-in-user-data"
	RuleTag               = "image-without-digest"
	RuleNoName            = "no-name"
	RuleFixedName         = "fixed-name"
	RuleNoRunStrategy     = "no-run-strategy"
	RuleRunning           = "running-deprecated"
)

// Rule describes a rule.
type Rule struct {
	ID       string
	Severity Severity
	Text     string
}

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{
		{RuleManifest, Error, "the manifest is not one of a VirtualMachineTemplate: a field that there is not, a value of another type"},
		{RuleInvalid, Error, "the engine cannot compile the template"},
		{RuleDefaults, Error, "no parameter is left for a user to give, and the values that the template has make no VirtualMachine"},
		{RuleValidations, Error, "an annotation with validation rules for the VM, as templates of OpenShift have them, is malformed"},
		{RuleSuspicious, Warning, "something is allowed, but probably not intended"},
		{RuleUnused, Warning, "a parameter is declared and never referred to"},
		{RuleDiskWithoutVolume, Warning, "a disk has no volume, and KubeVirt denies such a VirtualMachine"},
		{RuleVolumeWithoutDisk, Warning, "a volume has no disk, although other volumes have one; KubeVirt adds a disk"},
		{RuleSharedClaim, Warning, "two volumes have the same claim"},
		{RuleNoNamespace, Warning, "the `sourceRef` of a disk has no namespace, and is looked for in the namespace of each VM"},
		{RuleUndescribed, Advice, "the template has no annotation `description`, which consoles show"},
		{RuleUndescribedParam, Advice, "a parameter has no description, so users cannot see its purpose"},
		{RuleNotSensitive, Advice, "a parameter that is named like a password is not marked sensitive, and is readable in annotations and denials"},
		{RuleNotGenerated, Advice, "a password has a default, which becomes the password of every VM: generate it, or require it"},
		{RuleLiteralPassword, Advice, "cloud-init sets a password that is in the template"},
		{RuleShownPassword, Advice, "cloud-init data in the VirtualMachine contain a sensitive parameter: `secretize` moves them into a Secret"},
		{RuleTag, Advice, "an image is named by a tag, which can become another image: name it by its digest"},
		{RuleNoName, Advice, "the VirtualMachine has neither name nor generateName, so process prints, and create creates, one that nothing names"},
		{RuleFixedName, Advice, "the VirtualMachine's name is fixed, so create can create it once in a namespace"},
		{RuleNoRunStrategy, Advice, "neither runStrategy nor running is set, and KubeVirt rejects such a VirtualMachine"},
		{RuleRunning, Advice, "running is deprecated in KubeVirt: write runStrategy"},
	}
}
