// Package template is the engine that turns a VirtualMachineTemplate and the
// values of its parameters into a VirtualMachine.
//
// The work is done in three steps, so that a template is looked at once and
// rendered many times:
//
//   - Compile checks a template and translates its VirtualMachine into a flat
//     program: JSON text, and between its pieces the slots that parameters fill.
//   - Bind settles the value of every parameter: the one a person gave, or the
//     template's default, or a generated one.
//   - Render runs the program over those values into one buffer. ${NAME|ENCODER}
//     writes a value so that the program which parses the text reads that value.
//
// BindName goes the other way: it reads parameters out of the name of a
// VirtualMachine. Match does so with a whole VirtualMachine, and reports whether one is
// what the template makes.
//
// Whatever does not depend on a parameter is checked by Compile, against the Go
// types of kubevirt.io/api. The slots that can go wrong keep what is needed to
// check them in Render. All causes of an error come together in one InvalidError,
// with paths into the template; none holds the value of a sensitive parameter.
//
// The package is pure: it knows no Kubernetes client, no clock and no file, and
// randomness is handed to it. What the language means, with an example of every
// rule, is in docs/template-language.md.
package template
