package approval

// Added returns every place in spec at which a stored VirtualMachine has something
// that rendered, which is what its template makes, has not, in a fixed order. Where
// both have a value it is not compared, and a zero is no value: clients written in Go
// send one for every field that their types hold to be required. Labels and annotations of the VirtualMachine
// itself are not looked at: tools of all kinds keep their notes there, and no part of
// the machine is made of them.
//
// Who added it cannot be told any more; see ClusterAdditions for what the cluster
// does. Neither object is modified. See Changes for how they are decoded, and for
// what is returned when there are very many places.
func Added(rendered, stored map[string]any) []Path {
	t := &touches{}
	t.begin(Path{Field("spec")}, nil)
	t.added(rendered["spec"], stored["spec"])
	t.end()
	return t.result()
}

func (t *touches) added(under, value any) {
	switch {
	case vacant(value) || zero(value):
		return
	case vacant(under):
		t.appeared(value)
		return
	case t.tooDeep():
		if !same(under, value) {
			t.add()
		}
		return
	}
	switch v := value.(type) {
	case map[string]any:
		below, _ := under.(map[string]any)
		for key, item := range v {
			t.into(Field(key), func() { t.added(below[key], item) })
		}
	case []any:
		below, _ := under.([]any)
		t.addedItems(below, v)
	}
}

func (t *touches) addedItems(under, list []any) {
	before, after := names(under), names(list)
	switch {
	case before != nil && after != nil:
		for name, at := range after {
			position, known := before[name]
			if !known {
				t.addInside(Item(name))
				continue
			}
			t.into(Item(name), func() { t.added(under[position], list[at]) })
		}
	case len(under) < len(list):
		t.addInside(anyItem)
	default:
		for i := range list {
			t.into(Index(i), func() { t.added(under[i], list[i]) })
		}
	}
}

// zero says whether a value is an empty text, or 0 as a number or a quantity.
func zero(value any) bool {
	if text, is := value.(string); is {
		return text == "" || text == "0"
	}
	n, is := number(value)
	return is && n == "0"
}
