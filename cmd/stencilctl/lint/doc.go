// Package lint holds the command lint: it reports findings about templates in files.
package lint
