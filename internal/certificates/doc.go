// Package certificates says what a source of serving certificates is, and its folders hold the two there are.
//
//   - authority (flag --certificate-source=authority): Stencil is its own certificate authority. The key of the authority lives in a
//     Secret, every replica signs a short-lived certificate for itself and keeps it in memory.
//   - files (--certificate-source=files): somebody else, cert-manager for one, keeps tls.crt and tls.key in a directory;
//     they are read again when they change.
//
// The two rooms beside them serve the first source. bundle reads, writes and unites PEM bundles of authorities;
// publication watches which authorities the caBundle of each of Stencil's webhook configurations holds, which is what the API
// servers trust. Who writes those caBundles is not here but in reconcilers/cabundle.
package certificates
