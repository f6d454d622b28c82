package rego

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// TestEveryOtherBuiltinIsRefused calls each function that OPA has and policies do not have.
func TestEveryOtherBuiltinIsRefused(t *testing.T) {
	allowed := map[string]bool{}
	for _, b := range testCompiler.sandbox.Capabilities.Builtins {
		allowed[b.Name] = true
	}
	rejected := 0
	for _, b := range ast.Builtins {
		if allowed[b.Name] || strings.HasPrefix(b.Name, "internal.") {
			continue
		}
		rejected++
		arguments := make([]string, b.Decl.Arity())
		for i := range arguments {
			arguments[i] = "input"
		}
		call := fmt.Sprintf("%s(%s)", b.Name, strings.Join(arguments, ", "))
		_, err := testCompiler.Compile(context.Background(), Definition{Source: "package p\n\ndeny contains \"x\" if " + call + "\n"})
		if want := fmt.Sprintf("3:22: %s is not available to policies", b.Name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", call, err)
		}
	}
	if rejected < 60 {
		t.Errorf("only %d functions were tried", rejected)
	}
}

func TestNoBuiltinReachesOutside(t *testing.T) {
	for _, name := range Builtins() {
		declared := ast.BuiltinMap[name]
		if declared.Nondeterministic {
			t.Errorf("%s does not depend on its operands alone", name)
		}
		for _, part := range []string{"http", "net.lookup", "rand", "uuid", "now", "runtime", "jwt", "x509", "hmac", "aws", "trace", "opa."} {
			if strings.Contains(name, part) {
				t.Errorf("%s is on the list", name)
			}
		}
	}
	if !slices.Contains(Builtins(), "sprintf") || slices.Contains(Builtins(), "plus") {
		t.Errorf("the list of names is %v", Builtins())
	}
}

// TestBoundedFunctionsAreOPAs compares the functions that this package implements with the documentation of OPA: a call, and its result.
func TestBoundedFunctionsAreOPAs(t *testing.T) {
	for call, want := range map[string]string{
		`glob.match("*.example.com", null, "a.b.example.com")`: "true",
		`glob.match("*.example.com", [], "a.b.example.com")`:   "false",
		`glob.match("*.example.com", [], "a.example.com")`:     "true",
		`glob.match("**.example.com", [], "a.b.example.com")`:  "true",
		`glob.match("a:*:c", [":"], "a:b:c")`:                  "true",
		`glob.match("a:*:c", [":"], "a:b:b:c")`:                "false",
		`glob.match("?at", null, "cat")`:                       "true",
		`glob.match("[abc]at", null, "bat")`:                   "true",
		`glob.match("[abc]at", null, "rat")`:                   "false",
		`glob.match("[!abc]at", null, "rat")`:                  "true",
		`glob.match("[a-c]at", null, "cat")`:                   "true",
		`glob.match("[!a-c]at", null, "cat")`:                  "false",
		`glob.match("{cat,b*at}", null, "boat")`:               "true",
		`glob.match("{cat,bat}s", null, "bats")`:               "true",
		`glob.match("{cat,bat}", null, "rat")`:                 "false",
		`glob.match("a\\*c", null, "a*c")`:                     "true",
		`glob.match("a\\*c", null, "abc")`:                     "false",
		`glob.match("a.c", null, "abc")`:                       "false",
		`glob.match("", null, "")`:                             "true",
		`glob.match("*", null, "a\nb")`:                        "true",
		`regex.match("^a+$", "aaa")`:                           "true",
		`regex.is_valid("(")`:                                  "false",
		`regex.is_valid("a{1000}")`:                            "true",
		`regex.find_n("a.", "abacad", -1)`:                     `["ab", "ac", "ad"]`,
		`regex.find_n("a.", "abacad", 2)`:                      `["ab", "ac"]`,
		`regex.find_n("x", "abacad", -1)`:                      `[]`,
		`regex.find_all_string_submatch_n("a(.)", "abac", -1)`: `[["ab", "b"], ["ac", "c"]]`,
		`regex.find_all_string_submatch_n("a(x)?", "ab", 1)`:   `[["a", ""]]`,
		`regex.replace("abab", "(a)", "<$1>")`:                 `"<a>b<a>b"`,
		`regex.replace("abab", "x", "y")`:                      `"abab"`,
		`regex.split("/", "a/b//c")`:                           `["a", "b", "", "c"]`,
		`yaml.is_valid("a: [1")`:                               "false",
		`yaml.is_valid("a: [1]")`:                              "true",
		`yaml.unmarshal("a: &x [1]\nb: *x").b[0]`:              "1",
		`numbers.range(3, 1)`:                                  "[3, 2, 1]",
		`count(numbers.range(1, 10000))`:                       "10000",
		`sum([1, 2.5])`:                                        "3.5",
		`product([2, 3])`:                                      "6",
		`sprintf("%5.1f|%-4s|%v|%%", [2.25, "a", {"b": [1]}])`: `"  2.2|a   |{\"b\": [1]}|%"`,
		`sprintf("%[2]d %[1]d", [1, 2])`:                       `"2 1"`,
		`replace("aXbX", "X", "--")`:                           `"a--b--"`,
		`strings.replace_n({"a": "1", "b": "2"}, "abc")`:       `"12c"`,
		`concat(",", ["a", "b"])`:                              `"a,b"`,
		`split("a,b", ",")`:                                    `["a", "b"]`,
		`bits.lsh(1, 10)`:                                      "1024",
		`time.date([1700000000000000000, "UTC"])`:              "[2023, 11, 14]",
		`time.weekday(1700000000000000000)`:                    `"Tuesday"`,
		`object.union({"a": {"b": 1}}, {"a": {"c": 2}})`:       `{"a": {"b": 1, "c": 2}}`,
		`object.subset({"a": [1, 2]}, {"a": [1, 2]})`:          "true",
		`to_number("12")`:                                      "12",
		`units.parse_bytes("1.5Ki")`:                           "1536",
		`json.unmarshal("{\"a\": [1]}").a`:                     "[1]",
		`net.cidr_contains("10.0.0.0/8", "10.1.2.3")`:          "true",
		`semver.compare("1.2.3", "1.10.0")`:                    "-1",
		`{1, 2} | {3}`:                                         "{1, 2, 3}",
		`{1, 2} - {2}`:                                         "{1}",
		`substring("abcdef", 1, 2)`:                            `"bc"`,
		`[x | walk({"a": [7]}, [["a", 0], x])]`:                "[7]",
	} {
		policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains sprintf(\"%v\", [x]) if x := " + call + "\n"})
		got, err := policy.Evaluate(context.Background(), mustInput(t, Document{}))
		want = strings.Trim(want, `"`)
		if err != nil || len(got.Deny) != 1 || strings.ReplaceAll(got.Deny[0].Message, `"`, `\"`) != want && got.Deny[0].Message != want {
			t.Errorf("%s: got %v, %v; want %s", call, got.Deny, err, want)
		}
	}
}

// TestBoundsAreWhereTheyAreSaidToBe has for each bound a call that is just allowed, and one that is not.
func TestBoundsAreWhereTheyAreSaidToBe(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("a", n) + `"` }
	// Two bytes a letter; 2048 of them and 512 are more than the product may be, and 511 are not.
	wide := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	const large = "the operands are too large"
	for name, tc := range map[string]struct{ within, beyond, want string }{
		"searches":                {`indexof(` + wide(2048) + `, ` + wide(511) + `)`, `indexof(` + wide(2048) + `, ` + wide(512) + `)`, large},
		"searches of ASCII":       {`indexof(` + long(30000) + `, ` + long(20000) + `)`, `indexof(` + long(30000) + `, ` + wide(512) + `)`, large},
		"searches for all places": {`indexof_n(` + wide(2048) + `, ` + wide(511) + `)`, `indexof_n(` + wide(2048) + `, ` + wide(512) + `)`, large},
		"replacing":               {`replace("a", ` + long(2048) + `, "")`, `replace("a", ` + long(2049) + `, "")`, large},
		"replacing many":          {`strings.replace_n({` + long(2048) + `: ""}, "a")`, `strings.replace_n({` + long(2049) + `: ""}, "a")`, large},
		"trimming":                {`trim(` + wide(2048) + `, ` + wide(511) + `)`, `trim(` + wide(2048) + `, ` + wide(512) + `)`, large},
		"trimming of ASCII":       {`trim(` + wide(2048) + `, ` + long(30000) + `)`, `trim(` + long(30000) + `, ` + wide(512) + `)`, large},
		"trimming on the left":    {`trim_left(` + wide(2048) + `, ` + wide(511) + `)`, `trim_left(` + wide(2048) + `, ` + wide(512) + `)`, large},
		"trimming on the right":   {`trim_right(` + wide(2048) + `, ` + wide(511) + `)`, `trim_right(` + wide(2048) + `, ` + wide(512) + `)`, large},
		"ranges":                  {"numbers.range(1, 10001)", "numbers.range(1, 10002)", "ranges have at most 10000 numbers"},
		"shifts":                  {"bits.lsh(1, 512)", "bits.lsh(1, 513)", "shifts are at most 512 bits"},
		"exponents":               {`to_number("1e400")`, `to_number("1e401")`, "numbers have at most 512 digits and exponents of at most 400"},
		"digits":                  {`to_number("` + strings.Repeat("1", 512) + `")`, `to_number("` + strings.Repeat("1", 513) + `")`, "numbers have at most 512 digits and exponents of at most 400"},
		"patterns":                {`regex.match(` + long(4096) + `, "")`, `regex.match(` + long(4097) + `, "")`, "the pattern is longer than 4096 bytes"},
		"repetitions":             {`regex.match("(a{100}){80}", "")`, `regex.match("(abcdef){900}(abcdef){900}", "")`, "the pattern repeats too much"},
		"texts of addresses":      {`net.cidr_is_valid(` + long(1024) + `)`, `net.cidr_is_valid(` + long(1025) + `)`, "the text is longer than 1024 bytes"},
		"widths":                  {`sprintf("%999d", [1])`, `sprintf("%1000d", [1])`, "widths have at most three digits"},
	} {
		t.Run(name, func(t *testing.T) {
			evaluate := func(call string) error {
				policy := mustCompile(t, Definition{Source: "package p\n\ndeny contains \"x\" if " + call + " != \"\"\n"})
				_, err := policy.Evaluate(context.Background(), mustInput(t, Document{}))
				return err
			}
			if err := evaluate(tc.within); err != nil && strings.Contains(err.Error(), tc.want) {
				t.Errorf("within: %v", err)
			}
			if err := evaluate(tc.beyond); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("beyond: %v", err)
			}
		})
	}
}
