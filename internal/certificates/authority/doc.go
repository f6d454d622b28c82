// Package authority is the source of serving certificates in which Stencil is its own certificate authority.
//
// cert-manager's library does the signing: its DynamicAuthority stores the key and certificate of the authority in a Secret, makes them when they are
// missing and again after two thirds of their life. Its DynamicSource lets each replica sign a certificate for itself, a new one after two thirds of
// its life, and one at once whenever the authority has changed. Every replica may write the Secret; resource versions resolve conflicts.
//
// The library does not consider which authorities the API servers trust. When the authority changes, DynamicSource has a certificate that no caBundle
// vouches for yet, and serving it would fail every call until reconcilers/cabundle has published the new authority and every API server has observed
// that. So this package retains the certificates of the library, and [choose] selects the one to serve: the newest one with an authority that every
// webhook configuration has published for a while. Until then the previous one is served.
//
// A replica that starts in the middle of a rotation has no earlier certificate. It serves what it has, and is
// not ready until that is trusted; replicas that have an earlier one answer in the meantime.
package authority
