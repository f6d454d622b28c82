// Package service is the engine behind HTTP, for a unix socket.
//
//	POST /v1/defaults     a defaulting.Request, answered with a defaulting.Response
//	GET  /v1/environment  versions and machine types
//	GET  /healthz         200 while the process serves
//	GET  /readyz          200 while libvirt can be asked
//	GET  /metrics         Prometheus metrics
//	GET  /openapi.json    this, as an OpenAPI document
//
// Errors are application/problem+json. What says 422 is the user's fault; everything
// else is not, and a caller may go on without defaults.
package service
