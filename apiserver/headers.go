package apiserver

import "net/http"

// securityHeaders are those of every response. Rendered VirtualMachines may hold passwords, so none is stored by a proxy or a browser: the
// directives are those that OWASP recommends for content that needs authentication. The OpenAPI documents, which need none, replace
// Cache-Control by their own.
var securityHeaders = map[string]string{
	"Cache-Control":           "no-cache, no-store, must-revalidate, private",
	"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":  "nosniff",
	"X-Frame-Options":         "DENY",
}

// WithSecurityHeaders adds security headers to the responses of a handler, errors included.
func WithSecurityHeaders(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		handler.ServeHTTP(w, request)
	})
}
