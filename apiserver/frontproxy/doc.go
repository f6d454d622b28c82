// Package frontproxy authenticates requests that kube-apiserver hands on: by the
// client certificate of its connection, and by the headers in which it names the
// person.
//
// k8s.io/apiserver does that too, and verifies the certificate anew with every
// request, which takes more time than processing a template. Here it is verified by
// the same code, and that it was is remembered for a while. Who the person is, is read
// from the headers of every request.
package frontproxy
