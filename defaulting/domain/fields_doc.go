package domain

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/defaulting"
)

// by maps a source to its name in the document.
var by = map[defaulting.Source]string{
	defaulting.FromKubeVirt: "KubeVirt", defaulting.FromPreference: "the preference",
	defaulting.FromLibvirt: "libvirt", defaulting.FromStencil: "Stencil",
}

// FieldsDocument returns the content of docs/defaulting-fields.md.
func FieldsDocument() string {
	var text strings.Builder
	text.WriteString(`# Fields that are defaulted

<!-- Generated from defaulting/domain/fields.go by ` + "`go test ./domain -update`" + ` in defaulting. Do not edit. -->

What the defaulter fills in or looks at. Paths are below ` + "`spec.template.spec`" + `; places are those of libvirt's
[domain XML](https://libvirt.org/formatdomain.html), and a field without one is not shown to libvirt. Where a preference has a
value, it comes before KubeVirt's default. *Written* is ` + "`yes`, `no`" + `, or the policy that decides. [How it works](defaulting.md).

| field | in the domain | default | whose | written | why |
|---|---|---|---|---|---|
`)
	for _, field := range Fields {
		place := ""
		if field.Domain != "" {
			place = "`" + field.Domain + "`"
		}
		persisted := string(field.Persisted)
		if persisted != string(Always) && persisted != string(Never) {
			persisted = "`" + persisted + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s | %s |\n", strings.TrimPrefix(field.Path, templateSpec), place, field.Default, by[field.By], persisted, field.Why)
	}
	return text.String()
}
