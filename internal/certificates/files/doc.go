// Package files is the source of serving certificates that another component puts into a directory: cert-manager through a mounted Secret, or an
// administrator.
//
// The files are read again when they change. Until they hold a key and a certificate that belong together, the previous pair stays in use, so that a
// rotation that writes one after the other breaks nothing. The writer of both must ensure that the API servers trust the new certificate before it is
// served.
package files
