// Package powers is the only way in which Stencil acts with an account of its own for a user: lending, export, import, examination, capture, objects, golden
// images, policies of sources and stored instance types. Each action has four steps.
//
//   - Authorize: the user may do it at this moment (package authorization, and Lend and Lacks here), or could when the object was stored that orders it and that
//     cannot be changed, by an admission policy.
//   - Resolve: Disk follows references to the object that they lead to. The user needs the right to each namespace on the way.
//   - Act: As is the configuration of the account. RBAC and an admission policy limit the account, and with it a stolen token.
//   - Record: what is written names the resolved object. Grant and WrittenBy are records of a user that no other user can write.
//
// The page docs/security/powers.md lists all powers. The linter forbids to impersonate accounts elsewhere.
package powers
