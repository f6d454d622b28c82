// Package jsonschema describes the parameters of templates as JSON Schema, draft 2020-12, for forms and for editors of YAML.
//
// A schema permits what a request to process may contain: numbers for type int, true and false for type bool, text for the others. It is as strict as
// process, with these differences. It does not permit an empty text in place of a parameter that is left out, a value in another form than its type,
// such as "2" for 2, or the default of a closed sensitive parameter. It permits values that violate a requirement, which it has in its description
// only, numbers such as 1.0 in place of 1, and texts with a pattern of more than 16 KiB.
package jsonschema
