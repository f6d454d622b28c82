// Package ova reads and writes OVAs: tar archives of an OVF descriptor, the files that it refers to, and optionally a manifest of their digests
// and a signature of the manifest (DMTF DSP0243, OVF package).
//
// [Open] gives random access to an OVA in a file; [NewReader] reads an OVA of which every byte passes once, such as a download. Both accept the
// descriptor at any position. Members are never written to paths: callers receive their bytes. Only regular files are accepted, with unique names
// without folders. What the descriptor does not refer to is dropped, with a warning.
//
// [NewWriter] writes OVAs in one pass, the descriptor first and the manifest last, and [Size] returns their size before anything is written.
// [Sign] adds a signature to an existing OVA.
//
// The package is pure: it uses no files, no network and no clock.
package ova
