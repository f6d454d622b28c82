package validations

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// prefix is the prefix of paths in rules.
const prefix = "jsonpath::"

// path is a parsed JSONPath: steps into fields, into items, and into all of either.
type path []step

type step struct {
	key   string
	index int
	kind  stepKind
}

type stepKind uint8

const (
	stepKey stepKind = iota
	stepIndex
	stepAll
)

// parsePath reads jsonpath:: and a path such as .spec.domain.devices.disks[*].disk.bus. Of JSONPath it supports fields,
// indices and wildcards, which rules use.
func parsePath(text string) (path, error) {
	rest, found := strings.CutPrefix(text, prefix)
	if !found {
		return nil, fmt.Errorf("must begin with %s", prefix)
	}
	whole := rest
	bad := func(what string) error {
		return fmt.Errorf("character %d of the path: %s", len(whole)-len(rest)+1, what)
	}
	rest = strings.TrimPrefix(rest, "$")
	var p path
	for rest != "" {
		var s step
		switch {
		case strings.HasPrefix(rest, ".."):
			return nil, bad("a rule cannot search at any depth (..)")
		case rest == ".": // the whole object
			rest = ""
			continue
		case strings.HasPrefix(rest, ".["):
			rest = rest[1:]
			continue
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			s = step{key: rest[1:end]}
			if s.key == "*" {
				s = step{kind: stepAll}
			} else if strings.Trim(s.key, fieldCharacters) != "" {
				return nil, bad("want the name of a field")
			}
			rest = rest[end:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, bad("the bracket is not closed")
			}
			inside := rest[1:end]
			index, err := strconv.Atoi(inside)
			switch {
			case inside == "*":
				s = step{kind: stepAll}
			case len(inside) >= 2 && (inside[0] == '\'' || inside[0] == '"') && inside[len(inside)-1] == inside[0]:
				s = step{key: inside[1 : len(inside)-1]}
			case err == nil && index >= 0:
				s = step{kind: stepIndex, index: index}
			default:
				return nil, bad("want [*], [INDEX] or ['KEY']")
			}
			rest = rest[end+1:]
		default:
			return nil, bad("want . or [")
		}
		p = append(p, s)
	}
	return p, nil
}

const fieldCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/"

// field returns the path in a VirtualMachine.
func (p path) field() string {
	var b strings.Builder
	b.WriteString("spec.template")
	for _, s := range p {
		switch {
		case s.kind == stepIndex:
			fmt.Fprintf(&b, "[%d]", s.index)
		case s.kind == stepAll:
			b.WriteString("[*]")
		case strings.Trim(s.key, fieldCharacters) == "" && !strings.Contains(s.key, "/"):
			b.WriteString("." + s.key)
		default:
			fmt.Fprintf(&b, "[%s]", s.key)
		}
	}
	return b.String()
}

// find returns the values at the path.
func (p path) find(root any) []any {
	found := []any{root}
	for _, s := range p {
		var next []any
		for _, value := range found {
			switch value := value.(type) {
			case map[string]any:
				switch s.kind {
				case stepKey:
					if each, there := value[s.key]; there && each != nil {
						next = append(next, each)
					}
				case stepAll:
					for _, key := range slices.Sorted(maps.Keys(value)) {
						next = append(next, value[key])
					}
				case stepIndex:
				}
			case []any:
				switch {
				case s.kind == stepAll:
					next = append(next, value...)
				case s.kind == stepIndex && s.index < len(value):
					next = append(next, value[s.index])
				}
			}
			if len(next) > maxFound {
				return next[:maxFound]
			}
		}
		found = next
	}
	return found
}
