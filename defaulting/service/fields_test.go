package service_test

import (
	"reflect"
	"strings"
)

// fieldsOf returns the JSON names of a type's fields.
func fieldsOf(value any) []string {
	var names []string
	for field := range reflect.TypeOf(value).Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}
