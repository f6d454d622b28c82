package approval_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// What follows is a second, much simpler implementation of overrides, with which the fuzz target checks the first: it removes from a tree what may be
// overridden.

// split takes the text of an override apart: .key and ["key"] become a key behind a
// dot, items and wildcards stay as they are.
func split(text string) []string {
	var steps []string
	text = "." + text
	for text != "" {
		end := len(text)
		switch {
		case strings.HasPrefix(text, `["`), strings.HasPrefix(text, `[name="`):
			quote := strings.IndexByte(text, '"')
			close := quote + 1
			for text[close] != '"' {
				if text[close] == '\\' {
					close++
				}
				close++
			}
			unquoted := strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[quote+1 : close])
			if quote == 1 {
				steps = append(steps, "."+unquoted)
			} else {
				steps = append(steps, "[name="+unquoted+"]")
			}
			text = text[close+2:]
			continue
		case text[0] == '[':
			end = strings.IndexByte(text, ']') + 1
		default:
			if next := strings.IndexAny(text[1:], ".["); next >= 0 {
				end = next + 1
			}
		}
		steps = append(steps, text[:end])
		text = text[end:]
	}
	return steps
}

// evaluatedParts returns a copy of the evaluated parts of an object.
func evaluatedParts(object map[string]any) any {
	object = runtime.DeepCopyJSON(numbersAsText(object).(map[string]any))
	delete(object, "apiVersion")
	delete(object, "kind")
	delete(object, "status")
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, part := range []string{"labels", "annotations"} {
		entries, isMap := metadata[part].(map[string]any)
		for key := range entries {
			if strings.HasPrefix(key, "template.kubevirt.io/rendered") || key == "template.kubevirt.io/template-ref" || strings.HasPrefix(key, "parameter.template.kubevirt.io/") ||
				key == "kubectl.kubernetes.io/last-applied-configuration" || part == "labels" && strings.HasPrefix(key, "vm.kubevirt.io/template") {
				delete(entries, key)
			}
		}
		if isMap || metadata[part] != nil {
			kept[part] = metadata[part]
		}
	}
	object["metadata"] = kept
	return object
}

func numbersAsText(value any) any {
	switch v := value.(type) {
	case map[string]any:
		changed := map[string]any{}
		for key, item := range v {
			changed[key] = numbersAsText(item)
		}
		return changed
	case []any:
		changed := make([]any, len(v))
		for i, item := range v {
			changed[i] = numbersAsText(item)
		}
		return changed
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") {
			if f == float64(int64(f)) && f < 1<<53 && f > -1<<53 {
				return "number " + strconv.FormatInt(int64(f), 10)
			}
			return fmt.Sprint("number ", f)
		}
		return "number " + string(v)
	default:
		return value
	}
}

// erase removes what an override covers.
func erase(value any, path []string) any {
	if len(path) == 0 {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if path[0] == ".*" || path[0] == "."+key {
				v[key] = erase(item, path[1:])
			}
		}
	case []any:
		var kept []any
		for _, item := range v {
			m, _ := item.(map[string]any)
			name, _ := m["name"].(string)
			if path[0] != "[*]" && (name == "" || path[0] != "[name="+name+"]") {
				kept = append(kept, item)
			} else if len(path) > 1 {
				kept = append(kept, erase(item, path[1:]))
			}
		}
		return kept
	}
	return value
}

// prune removes what has no meaning: null, and empty maps and lists, unless they are items of a list.
func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if item = prune(item); item == nil {
				delete(v, key)
			} else {
				v[key] = item
			}
		}
		if len(v) == 0 {
			return nil
		}
		return v
	case []any:
		for i, item := range v {
			if v[i] = prune(item); v[i] == nil {
				v[i] = "(nothing)"
			}
		}
		if len(v) == 0 {
			return nil
		}
		return v
	default:
		return value
	}
}

// edit changes an object at one place that an override covers. Names of items are not changed, because an item of another name is another item.
func edit(random *rand.Rand, value any, path []string) {
	last := len(path) == 1
	switch v := value.(type) {
	case map[string]any:
		if !strings.HasPrefix(path[0], ".") {
			return
		}
		key := path[0][1:]
		if path[0] == ".*" {
			key = []string{"a", "x", "y"}[random.IntN(3)]
		}
		switch next := v[key].(type) {
		case map[string]any, []any:
			if last {
				break
			}
			edit(random, next, path[1:])
			return
		case nil:
			if !last {
				v[key] = build(random, path[1:])
				return
			}
		default:
			if !last {
				return
			}
		}
		if !last || key == "name" {
			return
		}
		if random.IntN(3) == 0 {
			delete(v, key)
		} else {
			v[key] = anything(random)
		}
	case []any:
		for _, item := range v {
			m, _ := item.(map[string]any)
			name, _ := m["name"].(string)
			if !last && (path[0] == "[*]" || name != "" && path[0] == "[name="+name+"]") && random.IntN(2) == 0 {
				edit(random, item, path[1:])
			}
		}
	}
}

// build makes the maps on the way to a new place and puts something there. On the
// way through a list it makes nothing.
func build(random *rand.Rand, path []string) any {
	if len(path) == 0 {
		return "new"
	}
	if !strings.HasPrefix(path[0], ".") {
		return nil
	}
	below := build(random, path[1:])
	if below == nil {
		return nil
	}
	return map[string]any{strings.Replace(path[0][1:], "*", "any", 1): below}
}

func anything(random *rand.Rand) any {
	return []any{"text", json.Number("7"), true, map[string]any{}, map[string]any{"k": "v"}, []any{}, []any{"e"}, []any{map[string]any{"name": "n"}}}[random.IntN(8)]
}
