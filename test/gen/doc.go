// Package gen builds the objects and the users of tests. Each builder takes a name and modifiers, and sets nothing else unless its comment
// says so:
//
//	vm := gen.VM("web-1", gen.InNamespace("team-a"), gen.FromTemplate("golden/fedora"), gen.Parameter("INSTANCETYPE", "u1.large"))
//	harness.Must(t, plane, ada, gen.Manifest(vm), "create", "-f", "-")
//
//	ada, err := gen.User(ctx, plane, "ada", gen.Role("team-a", "edit"), gen.UsesTemplates("golden", "fedora"))
//
// Modifiers apply in the order in which they are given.
package gen
