// Package process measures stencil-apiserver through the aggregation of a real kube-apiserver: how many requests for process it
// answers, what create adds to a plain creation, and the memory that it takes with many templates. It needs Linux, for /proc.
package process
