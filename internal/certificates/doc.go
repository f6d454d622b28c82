// Package certificates defines the source of serving certificates, and its folders hold the two that exist.
//
//   - authority (flag --certificate-source=authority): Stencil is its own certificate authority. The key of the authority is in a
//     Secret, every replica signs a short-lived certificate for itself and holds it in memory.
//   - files (--certificate-source=files): another component, for example cert-manager, provides tls.crt and tls.key in a directory;
//     they are read again when they change.
//
// Two other packages serve the first source. bundle reads, writes and unites PEM bundles of authorities; publication watches which authorities the
// caBundle of each of Stencil's webhook configurations holds, which are those that the API servers trust. reconcilers/cabundle writes those
// caBundles.
package certificates
