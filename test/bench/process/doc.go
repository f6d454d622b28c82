// Package process measures stencil-apiserver through the aggregation of a real kube-apiserver: the number of requests for process that it answers,
// what create adds to a plain creation, and its memory with many templates. It needs Linux, for /proc.
package process
