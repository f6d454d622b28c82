// Package bundle reads and writes the PEM bundles of certificate authorities in the caBundle of webhook configurations and in Secrets. It is pure.
package bundle
