// Package files is the source of serving certificates that somebody else puts into a directory: cert-manager through
// a mounted Secret, or an administrator.
//
// The files are read again when they change. Until they hold a key and a certificate that belong together, the pair read
// before stays in use, so that a rotation that writes the two one after the other breaks nothing. That the API
// servers trust the new certificate before it is served is up to whoever writes both.
package files
