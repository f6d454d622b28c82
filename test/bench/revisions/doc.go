// Package revisions measures how long the manager takes to migrate stored instance types, and with how much memory, beside a client that makes the
// same three writes for each, and one that makes the same four requests.
package revisions
