// Package goldenimage decides how boot images are kept fresh: which tag is the newest, when a source is checked, who owns a DataSource,
// and what has to be written so that CDI imports an image and a DataSource stands for it.
//
// CDI's DataImportCron imports: it is made without a schedule, and imports the digest in its annotation
// cdi.kubevirt.io/storage.import.sourceDesiredDigest. It names volumes by the DataSource and the first 12 digits of the digest, moves the DataSource
// that has its label, and deletes the volumes with its label that were used least recently. A volume that a channel stands for does not have
// that label, so that CDI keeps it.
//
// The package is pure: it has no client and no clock. reconcilers/goldenimage reads the State, and carries out the Plan.
package goldenimage
