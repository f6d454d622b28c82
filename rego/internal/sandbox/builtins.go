package sandbox

import (
	"errors"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// builtin is a built-in function that policies may call.
type builtin struct {
	name string
	// before inspects the operands and rejects excessive work before it begins: nothing can interrupt a built-in function.
	before func([]*ast.Term) error
	// instead replaces OPA's implementation.
	instead topdown.BuiltinFunc
	// makes reports whether the function makes a new composite value or a text, which is counted against the budget of the evaluation.
	makes bool
}

// bounded reports whether the function is called through this package.
func (b builtin) bounded() bool { return b.before != nil || b.instead != nil || b.makes }

// builtins is the list of functions that policies may call: all others of OPA are rejected when a policy is compiled, also those that later versions
// of OPA add.
//
// A function is on it if its result depends on its operands alone and its work is
// bounded by their size. These are not, in the order of OPA's reference:
//
//   - bits: nothing is missing, but shifts are short.
//   - strings.render_template: loops as often as the template requires.
//   - regex.globs_match, regex.template_match: unbounded automata, and glob.match does it.
//   - numbers.range_step, rand.intn, uuid.*: ranges of steps need no built-in; chance.
//   - json.patch, json.marshal_with_options, json.verify_schema, json.match_schema:
//     copies of copies; indentation times depth; schemas loaded from the network.
//   - yaml.marshal: nothing needs it.
//   - time.now_ns: the clock. input.request.time is when the request was made.
//   - io.jwt.*, crypto.x509.*, crypto.hmac.*, crypto.parse_private_keys: keys and signatures.
//   - graph.*: reachable_paths is exponential.
//   - http.send, net.lookup_ip_addr, providers.aws.*: the network.
//   - net.cidr_expand, net.cidr_merge, net.cidr_contains_matches: results out of proportion.
//   - graphql.*, rego.parse_module, rego.metadata.*, opa.runtime, trace: policies do not need them.
//   - functions that Rego v1 deprecates.
//
// print is accepted and does nothing.
var builtins = []builtin{
	// Comparison, assignment, membership.
	{name: "eq"}, {name: "assign"}, {name: "equal"}, {name: "neq"},
	{name: "gt"}, {name: "gte"}, {name: "lt"}, {name: "lte"},
	{name: "internal.member_2"}, {name: "internal.member_3"},

	// Numbers. They have at most maxNumberLength digits.
	{name: "plus", before: numbers}, {name: "minus", before: difference, makes: true},
	{name: "mul", before: numbers}, {name: "div", before: numbers}, {name: "rem", before: numbers},
	{name: "abs", before: numbers}, {name: "ceil", before: numbers}, {name: "floor", before: numbers}, {name: "round", before: numbers},
	{name: "bits.and", before: numbers}, {name: "bits.or", before: numbers}, {name: "bits.xor", before: numbers}, {name: "bits.negate", before: numbers},
	{name: "bits.lsh", before: shift}, {name: "bits.rsh", before: shift},
	{name: "numbers.range", before: numberRange, makes: true},
	{name: "format_int", before: numbers, makes: true},
	{name: "to_number", before: numberText},
	{name: "units.parse", before: shortText}, {name: "units.parse_bytes", before: shortText},

	// Aggregates.
	{name: "count"}, {name: "max"}, {name: "min"}, {name: "sort", makes: true},
	{name: "sum", before: fewNumbers}, {name: "product", before: fewNumbers},

	// Arrays and sets.
	{name: "array.concat", makes: true}, {name: "array.flatten", makes: true},
	{name: "array.reverse", makes: true}, {name: "array.slice", before: numbers, makes: true},
	{name: "and", before: product, makes: true}, {name: "or", before: product, makes: true},
	{name: "intersection", before: unionOfMany, makes: true}, {name: "union", before: unionOfMany, makes: true},

	// Objects.
	{name: "object.filter", makes: true}, {name: "object.get"}, {name: "object.keys", makes: true}, {name: "object.remove", makes: true},
	{name: "object.subset", before: product}, {name: "object.union", before: product, makes: true},
	{name: "object.union_n", before: unionOfMany, makes: true},
	{name: "json.filter", before: product, makes: true}, {name: "json.remove", before: product, makes: true},

	// Text.
	{name: "concat", before: concatenation, makes: true}, {name: "sprintf", before: formatted, makes: true},
	{name: "internal.template_string", before: interpolated, makes: true},
	{name: "replace", before: replaced, makes: true}, {name: "strings.replace_n", before: replacedMany, makes: true},
	{name: "contains"}, {name: "startswith"}, {name: "endswith"}, {name: "strings.any_prefix_match", before: product}, {name: "strings.any_suffix_match", before: product},
	{name: "indexof", before: searched}, {name: "indexof_n", before: searchedOften, makes: true}, {name: "strings.count"},
	{name: "lower", makes: true}, {name: "upper", makes: true}, {name: "strings.reverse", makes: true},
	{name: "split", before: shortOrFew, makes: true}, {name: "strings.split_n", before: shortOrFew, makes: true}, {name: "substring", before: numbers, makes: true},
	{name: "trim", before: trimmed}, {name: "trim_left", before: trimmed}, {name: "trim_right", before: trimmed},
	{name: "trim_prefix"}, {name: "trim_space"}, {name: "trim_suffix"},

	// Patterns. Matching takes time proportional to the length of the text times the size of the pattern.
	{name: "regex.is_valid", instead: regexIsValid}, {name: "regex.match", instead: regexMatch},
	{name: "regex.find_n", instead: regexFind, makes: true}, {name: "regex.find_all_string_submatch_n", instead: regexSubmatches, makes: true},
	{name: "regex.replace", instead: regexReplace, makes: true}, {name: "regex.split", instead: regexSplit, makes: true},
	{name: "glob.match", instead: globMatch}, {name: "glob.quote_meta", makes: true},

	// Encodings.
	{name: "base64.encode", makes: true}, {name: "base64.decode", makes: true}, {name: "base64.is_valid"},
	{name: "base64url.encode", makes: true}, {name: "base64url.encode_no_pad", makes: true}, {name: "base64url.decode", makes: true},
	{name: "hex.encode", makes: true}, {name: "hex.decode", makes: true},
	{name: "urlquery.encode", makes: true}, {name: "urlquery.decode", makes: true}, {name: "urlquery.encode_object", makes: true}, {name: "urlquery.decode_object", before: shortOrFew, makes: true},
	{name: "uri.parse", makes: true}, {name: "uri.is_valid"},
	{name: "json.marshal", before: printed, makes: true}, {name: "json.unmarshal", before: document, makes: true}, {name: "json.is_valid", before: document},
	{name: "yaml.unmarshal", instead: yamlUnmarshal, makes: true}, {name: "yaml.is_valid", instead: yamlIsValid},
	{name: "crypto.md5", makes: true}, {name: "crypto.sha1", makes: true}, {name: "crypto.sha256", makes: true},

	// Parsing and formatting of times. Time zones other than UTC are files of the host that evaluates.
	{name: "time.parse_ns", before: shortText}, {name: "time.parse_rfc3339_ns", before: shortText}, {name: "time.parse_duration_ns", before: shortText},
	{name: "time.add_date", before: numbers}, {name: "time.date", before: zoned}, {name: "time.clock", before: zoned},
	{name: "time.diff", before: zoned}, {name: "time.format", before: zoned}, {name: "time.weekday", before: zoned},

	// Network addresses.
	{name: "net.cidr_contains", before: shortText}, {name: "net.cidr_intersects", before: shortText}, {name: "net.cidr_is_valid", before: shortText},

	// Versions.
	{name: "semver.compare", before: shortText}, {name: "semver.is_valid", before: shortText},

	// Types.
	{name: "is_array"}, {name: "is_boolean"}, {name: "is_null"}, {name: "is_number"}, {name: "is_object"}, {name: "is_set"}, {name: "is_string"}, {name: "type_name"},

	// A walk is evaluated step by step, like any rule.
	{name: "walk"},

	{name: "print"}, {name: "internal.print"},
}

// Builtins returns the names of the built-in functions that policies may call, as authors use them.
func Builtins() []string {
	operators := map[string]bool{"eq": true, "assign": true, "print": true}
	var names []string
	for _, b := range builtins {
		declared := ast.BuiltinMap[b.name]
		if operators[b.name] || declared.Infix != "" || len(b.name) > 9 && b.name[:9] == "internal." {
			continue
		}
		names = append(names, b.name)
	}
	return names
}

// boundedPrefix begins the names under which compiled policies call bounded
// functions. It cannot be part of a name in Rego.
const boundedPrefix = "bounded "

// Sandbox is the table of builtins in the forms that OPA takes.
type Sandbox struct {
	// Capabilities are for OPA's compiler.
	Capabilities *ast.Capabilities
	// renamed maps the name of a bounded function to the term that calls it.
	renamed map[string]*ast.Term
	// Functions are the bounded functions by their new names.
	Functions map[string]*topdown.Builtin
}

// New returns the sandbox.
func New() *Sandbox {
	s := &Sandbox{
		Capabilities: ast.CapabilitiesForThisVersion(),
		renamed:      map[string]*ast.Term{},
		Functions:    map[string]*topdown.Builtin{},
	}
	declared := make([]*ast.Builtin, 0, len(builtins))
	for _, b := range builtins {
		declaration, known := ast.BuiltinMap[b.name]
		if !known {
			panic("sandbox: OPA has no built-in function " + b.name)
		}
		declared = append(declared, declaration)
		if !b.bounded() {
			continue
		}
		own := *declaration
		own.Name = boundedPrefix + b.name
		own.CanSkipBctx = false
		s.Functions[own.Name] = &topdown.Builtin{Decl: &own, Func: b.function()}
		s.renamed[b.name] = ast.NewTerm(ast.Ref{ast.VarTerm(own.Name)})
	}
	s.Functions[bindValue.Name] = &topdown.Builtin{Decl: bindValue, Func: bindValueBuiltin}
	s.Capabilities.Builtins = declared
	// Rego v1 and nothing that comes after it: the bounds cover all its expressions.
	s.Capabilities.FutureKeywords = []string{"contains", "every", "if", "in"}
	s.Capabilities.Features = []string{ast.FeatureRegoV1, ast.FeatureKeywordsInRefs, ast.FeatureTemplateStrings}
	s.Capabilities.AllowNet = []string{}
	return s
}

// function returns the implementation with its bounds.
func (b builtin) function() topdown.BuiltinFunc {
	do := b.instead
	if do == nil {
		do = topdown.GetBuiltin(b.name)
	}
	arity := ast.BuiltinMap[b.name].Decl.Arity()
	return func(context topdown.BuiltinContext, operands []*ast.Term, found func(*ast.Term) error) error {
		if b.before != nil {
			if err := b.before(operands[:min(len(operands), arity)]); err != nil {
				return failed(b.name, context.Location, err)
			}
		}
		spent, ok := context.Cancel.(*Budget)
		if ok && (b.makes || b.before != nil) {
			check := acceptors.Get().(*acceptor)
			check.budget, check.name, check.location, check.found = spent, b.name, context.Location, found
			defer check.release()
			found = check.accept
		}
		err := do(context, operands, found)
		if err != nil && b.instead != nil {
			return failed(b.name, context.Location, err)
		}
		return err
	}
}

// acceptor checks a result before the policy receives it.
type acceptor struct {
	budget   *Budget
	name     string
	location *ast.Location
	found    func(*ast.Term) error
	// accept is the method check.
	accept func(*ast.Term) error
}

// acceptors are reused: an evaluation calls many functions.
var acceptors = sync.Pool{New: func() any {
	a := &acceptor{}
	a.accept = a.check
	return a
}}

func (a *acceptor) release() {
	a.budget, a.location, a.found = nil, nil, nil
	acceptors.Put(a)
}

func (a *acceptor) check(result *ast.Term) error {
	var err error
	switch value := result.Value.(type) {
	case ast.Boolean, ast.Null:
	case ast.Number:
		err = CheckNumber(string(value))
	case ast.String:
		if err = a.budget.take(result.Value); err == nil && len(value) > maxText {
			err = errLongText
		}
	default:
		err = a.budget.take(value)
	}
	if err != nil {
		return failed(a.name, a.location, err)
	}
	return a.found(result)
}

// failed ends the evaluation: with strict errors everything after an error is ignored.
func failed(name string, location *ast.Location, err error) error {
	var (
		halt  topdown.Halt
		typed *topdown.Error
	)
	switch {
	case errors.As(err, &halt):
		return halt
	case errors.As(err, &typed):
		return topdown.Halt{Err: typed}
	default:
		return topdown.Halt{Err: &topdown.Error{Code: topdown.BuiltinErr, Message: name + ": " + err.Error(), Location: location}}
	}
}
