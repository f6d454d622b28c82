// Package debian makes files of an image from Debian packages that a lock file names. No package is installed: their scripts do not run.
//
// The formats are those of deb(5) and deb-control(5).
package debian
