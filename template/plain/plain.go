// Package plain writes text in the language of templates so that it stays as it is.
package plain

import (
	"regexp"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// Dollar is the usual name of the parameter with which [Text] writes dollar signs.
const Dollar = "DOLLAR"

// Parameter returns the parameter with which [Text] writes dollar signs, called name.
func Parameter(name string) v1beta1.Parameter {
	return v1beta1.Parameter{Name: name, Value: "$", Description: "A dollar sign: ${" + name + "}{HOME} becomes the text ${HOME}"}
}

var beforeBrace = regexp.MustCompile(`\$+\{`)

// Text returns text in the language of templates that renders to text itself, also by KubeVirt's engine, which has no escape. It writes every dollar sign
// before a brace as a reference to the parameter called dollar, which is one of [Parameter].
func Text(text, dollar string) string {
	return beforeBrace.ReplaceAllStringFunc(text, func(found string) string {
		return strings.Repeat("${"+dollar+"}", len(found)-len("{")) + "{"
	})
}
