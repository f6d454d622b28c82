// Package machines judges a VirtualMachine by the rules that came with it: those of
// the template that it is made of, and those in its own annotation. Templates that come
// from OpenShift have them; package validations reads them and knows what they mean.
//
// A machine that an instance type sizes is judged by the size that KubeVirt will give it.
package machines
