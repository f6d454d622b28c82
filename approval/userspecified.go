package approval

// UserSpecified returns, in a fixed order, every place that the user set in a VirtualMachine, including those where the value is the same as the
// template's. The object is as the user sent it, rendered is the result of the template before the object is merged into it. An item of a list merged
// by name is returned as a whole when rendered does not have it, and field by field when it does.
//
// Neither is modified. See Changes for how they are decoded, and for what is
// returned when there are very many places.
func UserSpecified(object, rendered map[string]any) []Path {
	t := &touches{}
	under := map[string]any{}
	for _, s := range sections(rendered) {
		under[s.path.String()] = s.value
	}
	for _, s := range sections(object) {
		t.begin(s.path, s.skip)
		t.requested(s.value, under[s.path.String()])
		t.end()
	}
	return t.result()
}

func (t *touches) requested(value, under any) {
	if vacant(value) && vacant(under) || value == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		below, isMap := under.(map[string]any)
		switch {
		case vacant(under):
			t.appeared(v)
		case !isMap || t.tooDeep():
			t.add()
		default:
			for key, item := range v {
				if t.evaluates(key) {
					t.into(Field(key), func() { t.requested(item, below[key]) })
				}
			}
		}
	case []any:
		t.requestedList(v, under)
	default:
		t.add()
	}
}

// requestedList follows the merge: two lists of uniquely named items are merged, any other list replaces the previous one.
func (t *touches) requestedList(list []any, under any) {
	if vacant(under) {
		t.appeared(list)
		return
	}
	below, isList := under.([]any)
	if !isList {
		t.add()
		return
	}
	positions := names(below)
	if len(list) == 0 || names(list) == nil || positions == nil {
		t.addInside(anyItem)
		return
	}
	for _, item := range list {
		name := nameOf(item)
		position, found := positions[name]
		if !found {
			t.addInside(Item(name))
			continue
		}
		t.into(Item(name), func() {
			base, _ := below[position].(map[string]any)
			for key, value := range item.(map[string]any) {
				if key != "name" {
					t.into(Field(key), func() { t.requested(value, base[key]) })
				}
			}
		})
	}
}
