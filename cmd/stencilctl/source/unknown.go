package source

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/template"
)

// unknownField matches the message of the API server's strict decoder about an unknown field, with its path.
var unknownField = regexp.MustCompile(`unknown field "(.*)"$`)

// UnknownField returns the path in an error of the strict decoder about an unknown field, and the field of the decoded type that was probably meant, or
// "" if none is similar. found is false for other errors.
func UnknownField(err error, decoded any) (path, meant string, found bool) {
	match := unknownField.FindStringSubmatch(err.Error())
	if match == nil {
		return "", "", false
	}
	at, names := reflect.TypeOf(decoded), strings.Split(match[1], ".")
	for _, name := range names[:len(names)-1] {
		name, _, _ = strings.Cut(name, "[")
		if at = fields(at)[name]; at == nil {
			return match[1], "", true
		}
	}
	return match[1], template.Nearest(names[len(names)-1], slices.Sorted(maps.Keys(fields(at)))), true
}

// Suggesting returns an error of the strict decoder with the field that was probably meant. Other errors stay as they are.
func Suggesting(err error, decoded any) error {
	if _, meant, _ := UnknownField(err, decoded); meant != "" {
		return fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	return err
}

// fields returns the types of the fields of a struct, or of the items of a list of structs, by their names in JSON.
func fields(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	all := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		switch {
		case name == "" && t.Field(i).Anonymous && strings.Contains(options, "inline"):
			maps.Copy(all, fields(t.Field(i).Type))
		case name != "" && name != "-":
			all[name] = t.Field(i).Type
		}
	}
	return all
}
