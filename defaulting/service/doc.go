// Package service is the engine behind HTTP, for a unix socket.
//
//	POST /v1/defaults     a defaulting.Request, answered with a defaulting.Response
//	GET  /v1/environment  versions and machine types
//	GET  /healthz         200 while the process serves
//	GET  /readyz          200 while libvirt is available
//	GET  /metrics         Prometheus metrics
//	GET  /openapi.json    this API, as an OpenAPI document
//
// Errors are application/problem+json. Status 422 is caused by the user; after any other error,
// the caller may continue without defaults.
package service
