// Package lint holds the command lint: what there is to say about templates in files.
package lint
