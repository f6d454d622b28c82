// Package web reads a file of an HTTP server that is named by a user: as one stream that continues after cuts, and by ranges.
//
// Each address is checked after it was resolved, also those of redirects. Credentials are sent to the named host only. Messages have neither credentials
// nor the query of an address, which may be a signature.
package web
