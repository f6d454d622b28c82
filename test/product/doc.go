// Package product provides Stencil's programs to tests, benchmarks and the demo, built from this checkout.
//
// The Go command caches the results of tests. Tests that start a program see a change of that program only if the cache does:
// it compares environment variables that a test read with os.Getenv, and files inside the test's own module. The programs, the
// chart and the documents that tests apply are none of these. The runner (test/runner) therefore builds the programs, computes
// one digest of all that tests take from outside their module, and sets it as [Variable]. [Digest] reads it with os.Getenv, so that a changed
// product runs every package again that starts a part of it, and an unchanged one does not.
//
// The programs of a digest are copied to a folder of their own in Stencil's cache, which a later build does not change.
package product
