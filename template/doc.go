// Package template is the engine that turns a VirtualMachineTemplate and the values of its parameters into a VirtualMachine.
//
// It works in three steps, so that a template is checked once and rendered many times:
//
//   - Compile checks a template and translates its VirtualMachine into a flat program: JSON text, and between its pieces
//     the slots that parameters fill.
//   - Bind sets the value of every parameter: the one the user gave, or the template's default, or a generated one.
//   - Render runs the program over those values into one buffer. ${NAME|ENCODER} writes a value so that the program which
//     parses the text reads that value.
//
// BindName is the inverse: it reads parameters out of the name of a VirtualMachine. Match does so with a whole
// VirtualMachine, and reports whether it conforms to the template.
//
// Compile checks everything that does not depend on a parameter, against the Go types of kubevirt.io/api. Slots that can
// fail store what Render needs to check them. All causes of an error are collected in one InvalidError, with paths into the
// template; none contains the value of a sensitive parameter.
//
// The package is pure: it uses no Kubernetes client, no clock and no files, and receives its source of randomness. The
// language is defined in docs/template-language.md, with an example of every rule.
package template
