package policies

import "embed"

// FS holds every policy at its root, one ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1) per .yaml file.
//
//go:embed *.yaml
var FS embed.FS
