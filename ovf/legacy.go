package ovf

import "strings"

// upgrade translates an envelope of OVF 0.9 into OVF 1.0: sections and systems are elements called Section and Content there, and their kind is the
// attribute xsi:type.
func upgrade(e *Element) {
	if e.Local == "Section" || e.Local == "Content" {
		if kind, found := strings.CutSuffix(e.Attribute("type"), "_Type"); found {
			if _, local, qualified := strings.Cut(kind, ":"); qualified {
				kind = local
			}
			e.Local = kind
		}
	}
	for _, child := range e.Children {
		upgrade(child)
	}
}
