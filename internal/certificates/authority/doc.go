// Package authority is the source of serving certificates in which Stencil is its own certificate authority.
//
// cert-manager's library does the signing: its DynamicAuthority keeps the key and certificate of the authority in
// a Secret, makes them when they are missing and again after two thirds of their life, and its
// DynamicSource lets each replica sign a certificate for itself, after two thirds of that one's life a new one, and one at
// once whenever the authority has changed. Every replica may write the Secret; resource versions settle who does.
//
// What the library does not know is whom the API servers trust. The moment the authority changes, DynamicSource
// holds a certificate that no caBundle vouches for yet, and serving it would fail every call until
// reconcilers/cabundle has published the new authority and every API server has seen that. So this package keeps the
// certificates that the library hands out, and [choose] says which of them to serve: the newest one whose authority
// every webhook configuration has published for a while. Until then the one before goes on being served.
//
// A replica that starts in the middle of a rotation has no earlier certificate. It serves what it has, and is
// not ready until that is trusted; replicas that have an earlier one answer in the meantime.
package authority
