// Command release builds a release of Stencil from a checkout, without a container engine and without root: images as OCI layouts, the chart, archives
// of stencilctl and what verifies them.
//
// Everything that it writes depends on the checkout, the version, the time in SOURCE_DATE_EPOCH and the version of Go only, so that others who build
// the same commit get the same digests. `make release` calls it with the version of Go that go.mod of this folder names.
package main
