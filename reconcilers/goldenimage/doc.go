// Package goldenimage keeps boot images fresh: it checks the source of each GoldenImage at its time, has CDI import the newest image, and moves
// the DataSources of channels. Package goldenimage of the product decides; this one reads, checks and writes.
//
// # Account
//
// All objects besides the GoldenImage are read and written as a ServiceAccount of their own, which the manager impersonates. It has permissions only in
// the namespaces that the admin lists; a GoldenImage elsewhere has reason NamespaceNotEnabled in its condition UpToDate.
//
// The package runs on the leader.
package goldenimage
