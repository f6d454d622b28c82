// Package publication watches which certificate authorities the API servers trust when they call Stencil's webhooks: the
// caBundle of each webhook of the named Mutating- and ValidatingWebhookConfigurations, and since when each
// authority has been there.
//
// Every configuration is watched by its name, one watch for each. That is more connections than one watch of all configurations, but it needs no
// permission to read those of other products, and these change more often than Stencil's own.
package publication
