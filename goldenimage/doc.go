// Package goldenimage decides how boot images are kept fresh: which tag is the newest, when a source is checked, who owns a DataSource,
// and what has to be written so that CDI imports an image and a DataSource stands for it.
//
// Images of registries, image streams and claims are imported by CDI's DataImportCron: it is made without a schedule, imports the digest in its
// annotation cdi.kubevirt.io/storage.import.sourceDesiredDigest, and moves the DataSource that has its label. Files, which DataImportCrons do not
// take, are imported by DataVolumes that this package makes, and it moves their DataSources itself. Volumes have names of the DataSource and the
// first 12 digits of the digest. CDI deletes none of them: see collect.
//
// The package is pure: it has no client and no clock. reconcilers/goldenimage reads the State, and carries out the Plan.
package goldenimage
