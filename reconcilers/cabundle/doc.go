// Package cabundle publishes Stencil's certificate authority: it keeps the caBundle of each of Stencil's webhook configurations
// equal to the present authority and the former ones that may still have signed something in use.
//
// It runs on the leader only, and only when Stencil is its own authority. Gather: the Secret of the authority, the named
// webhook configurations, and what this process has seen before. Decide ([decide], pure): the one bundle
// that all of them should hold. Apply: a patch of the caBundle fields and nothing else, conditional on the
// resource version that was read, so that nobody's concurrent change is lost.
//
// Helm, which applies server-side since version 4, and kubectl apply leave the field alone, because the chart does not mention it; when
// somebody else does reset it, it is put back.
//
// A former authority stays for as long as a serving certificate may have been signed by it and be in use: until it
// expires itself, or until the life of a serving certificate has passed since it was replaced. The authority that an
// administrator rotates because its key has leaked is therefore trusted for at most that long.
package cabundle
