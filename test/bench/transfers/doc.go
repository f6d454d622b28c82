// Package transfers measures imports and exports of stencil-mover beside what the codecs of its formats take for the same disk.
package transfers
