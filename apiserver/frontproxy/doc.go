// Package frontproxy authenticates requests that kube-apiserver forwards: by the client certificate of its connection, and by the headers that
// identify the user.
//
// k8s.io/apiserver does that too, and verifies the certificate with every request, which takes more time than processing a template. This package
// verifies it with the same code, and caches the result for a while. The user is read from the headers of every request.
package frontproxy
