package apiserver

import "net/http"

// securityHeaders of every response. Rendered VirtualMachines may hold passwords, so none is stored by a proxy or a browser: the
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

// WithClosedConnections makes clients leave their connections once shutdown is closed: each response ends its connection, in HTTP/2 by a GOAWAY, and
// the next request goes to another replica. Otherwise a request could be on its way when the server ends its connections, and a proxy, which cannot
// send the body of a request again, would lose it.
func WithClosedConnections(handler http.Handler, shutdown <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		select {
		case <-shutdown:
			w.Header().Set("Connection", "close")
		default:
		}
		handler.ServeHTTP(w, request)
	})
}
