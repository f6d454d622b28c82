package rego

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// lines repeats a line for each number from 1 to n, with %d for the number and %p
// for the one before.
func lines(n int, line string) string {
	var out strings.Builder
	for i := 1; i <= n; i++ {
		out.WriteString(strings.NewReplacer("%d", fmt.Sprint(i), "%p", fmt.Sprint(i-1)).Replace(line))
		out.WriteByte('\n')
	}
	return out.String()
}

func hostile(body string) string {
	return "package hostile\n\ndeny contains \"x\" if {\n" + body + "\n}\n"
}

var hostilePolicies = map[string]string{
	"an array doubled in local variables": hostile("x0 := input.object.metadata.name\n" + lines(8, "x%d := [x%p, x%p]") + "y0 := [x8 | some _ in [1, 2]]\n" + lines(40, "y%d := [y%p | some _ in [1, 2]]") + "y40 == 1"),
	"an array doubled and compared with another": hostile("a0 := [[1] | some _ in [1]]\nb0 := [[1] | some _ in [1]]\n" +
		lines(40, "a%d := [a%p | some _ in [1, 2]]\nb%d := [b%p | some _ in [1, 2]]") + "a40 == b40"),
	"an array doubled by functions": "package hostile\n\nf0(x) := x\n" + lines(40, "f%d(x) := y if { y := [f%p(x) | some _ in [1, 2]] }") +
		"deny contains \"x\" if { f40(1) == f40(2) }\n",
	"an array doubled by rules":                "package hostile\n\np0 contains input.object.metadata.name\n" + lines(40, "p%d contains [p%p, i] if some i in [1, 2]") + "deny contains \"x\" if { p40 == 1 }\n",
	"an object doubled and printed":            hostile("x0 := {\"a\": 1}\n" + lines(40, "x%d := {k: x%p | some k in [\"a\", \"b\"]}") + "contains(sprintf(\"%v\", [x40]), \"x\")"),
	"a set doubled":                            hostile("x0 := {1}\n" + lines(40, "x%d := {[x%p, i] | some i in [1, 2]}") + "count(x40) > 2"),
	"a text doubled by concat":                 hostile("x0 := \"abcdefgh\"\n" + lines(60, "x%d := concat(x%p, [x%p, x%p])") + "x60 == \"\""),
	"a text doubled by sprintf":                hostile("x0 := \"abcdefgh\"\n" + lines(60, "x%d := sprintf(\"%s%s\", [x%p, x%p])") + "x60 == \"\""),
	"a text doubled by replace":                hostile("x0 := \"aaaaaaaa\"\n" + lines(60, "x%d := replace(x%p, \"a\", x%p)") + "x60 == \"\""),
	"a text doubled by regex.replace":          hostile("x0 := \"aaaaaaaa\"\n" + lines(60, "x%d := regex.replace(x%p, \".*\", \"$0$0$0\")") + "x60 == \"\""),
	"a text doubled by replace_n":              hostile("x0 := \"aaaaaaaa\"\n" + lines(60, "x%d := strings.replace_n({\"a\": x%p}, x%p)") + "x60 == \"\""),
	"a text doubled by templates":              hostile("x0 := \"aaaaaaaa\"\n" + lines(60, "x%d := $\"{x%p}{x%p}{x%p}\"") + "x60 == \"\""),
	"a wide sprintf":                           hostile("sprintf(\"%999999999d\", [1]) == \"\""),
	"a wide sprintf by star":                   hostile("sprintf(\"%*d\", [999999999, 1]) == \"\""),
	"a text split into letters":                hostile("x0 := \"abcdefgh\"\n" + lines(16, "x%d := concat(\"\", [x%p, x%p])") + "count(split(x16, \"\")) == 1"),
	"an array doubled by concat":               hostile("x0 := [1, 2]\n" + lines(60, "x%d := array.concat(x%p, x%p)") + "count(x60) == 1"),
	"a large range":                            hostile("some i in numbers.range(1, 1000000000)\ni < 0"),
	"many ranges":                              hostile("some a in numbers.range(1, 10000)\nsome b in numbers.range(1, 10000)\nsome c in numbers.range(1, 10000)\na + b == c - 40000"),
	"a product of ranges collected":            hostile("x := [[a, b, c] | some a in numbers.range(1, 10000); some b in numbers.range(1, 10000); some c in numbers.range(1, 10000)]\ncount(x) == 1"),
	"a set of products of ranges":              hostile("x := {[a, b] | some a in numbers.range(1, 10000); some b in numbers.range(1, 10000)}\ncount(x) == 1"),
	"an object of products of ranges":          hostile("x := {k: [k, k, k] | some a in numbers.range(1, 10000); some b in numbers.range(1, 10000); k := sprintf(\"%d %d\", [a, b])}\ncount(x) == 1"),
	"two arrays joined in one line":            hostile("a := numbers.range(1, 10000)\nb := [-i | some i in numbers.range(1, 10000)]\na[_] = b[_]"),
	"ranges in every":                          hostile("every a in numbers.range(1, 10000) { every b in numbers.range(1, 10000) { a + b > 0 } }"),
	"a number squared often":                   hostile("x0 := 12345678901234567890\n" + lines(60, "x%d := x%p * x%p") + "x60 == 1"),
	"a number with a large exponent":           hostile("x := to_number(\"1e1000000000\")\nx % 7 == 1"),
	"a literal with a large exponent":          hostile("x := 1e1000000000\nx % 7 == 1"),
	"a literal with a large exponent compared": hostile("x := 1e1000000000\nx < input.object.metadata.generation"),
	"a long shift":                             hostile("bits.lsh(1, 10000000000) == 1"),
	"a product of many numbers":                hostile("product(numbers.range(1000000, 1009999)) == 1"),
	"a pattern that repeats repeats":           hostile("regex.match(\"((((a{99}){99}){99}){99})b\", input.object.metadata.name)"),
	"a pattern against a long text":            hostile("x0 := \"aaaaaaaa\"\n" + lines(14, "x%d := concat(\"\", [x%p, x%p])") + "regex.match(\"(a?){900}(a?){900}(a?){900}$b\", x14)"),
	"a glob of stars":                          hostile("x0 := \"aaaaaaaa\"\n" + lines(8, "x%d := concat(\"\", [x%p, x%p])") + "glob.match(\"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\", null, x8)"),
	"documents in documents":                   hostile("x0 := \"1\"\n" + lines(60, "x%d := json.marshal([x%p, x%p])") + "x60 == \"\""),
	"a nested document":                        hostile("json.unmarshal(\"" + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "\") == 1"),
	"aliases of aliases":                       hostile("yaml.unmarshal(\"a0: &a0 [x,x,x,x,x,x,x,x,x]\\n" + strings.ReplaceAll(lines(9, "a%d: &a%d [*a%p,*a%p,*a%p,*a%p,*a%p,*a%p,*a%p,*a%p,*a%p]"), "\n", "\\n") + "\") == 1"),
	"walks in walks":                           hostile("walk(input, [a, _])\nwalk(input, [b, _])\nwalk(input, [c, _])\nwalk(input, [d, _])\ncount(a) + count(b) + count(c) + count(d) < 0"),
	"calls that branch":                        "package hostile\n\nf0(x) := x\n" + lines(12, "f%d(x) := f%p(x + 1) + f%p(x + 2)") + "deny contains \"x\" if { f12(1) == -1 }\n",
	"calls that fill the stack":                "package hostile\n\nf0(x) := x\n" + lines(30, "f%d(x) := f%p(x + 1) + f%p(x + %d0000)") + "deny contains \"x\" if { f30(1) == -1 }\n",
	"patterns that bind each other":            hostile("[a, [[1, 1], [1, 1]]] = [[[2, 2], [2, 2]], b]\na == b"),
	"large arguments passed on":                "package hostile\n\nf0(x) := count(x)\n" + lines(60, "f%d(x) := f%p([x, x])") + "deny contains \"x\" if { f60(1) == -1 }\n",
	"a union of large objects":                 hostile("a := {sprintf(\"%d\", [i]): i | some i in numbers.range(1, 10000)}\nb := {sprintf(\"%d\", [i]): -i | some i in numbers.range(1, 10000)}\nsome i in numbers.range(1, 10000)\nobject.union(a, b)[\"1\"] == i"),
	"a search of one long text in another":     hostile("x0 := \"éééééééé\"\n" + lines(15, "x%d := concat(\"\", [x%p, x%p])") + "indexof(concat(\"\", [x15, x14]), concat(\"\", [x15, \"e\"])) == 1"),
	"all places of one long text in another":   hostile("x0 := \"éééééééé\"\n" + lines(15, "x%d := concat(\"\", [x%p, x%p])") + "count(indexof_n(concat(\"\", [x15, x14]), concat(\"\", [x15, \"e\"]))) == 1"),
	"a long text trimmed of another":           hostile("x0 := \"éééééééé\"\n" + lines(15, "x%d := concat(\"\", [x%p, x%p])") + "trim(x15, concat(\"\", [replace(x15, \"é\", \"ü\"), \"é\"])) == \"\""),
	"a long text trimmed of another on a side": hostile("x0 := \"éééééééé\"\n" + lines(15, "x%d := concat(\"\", [x%p, x%p])") + "trim_left(x15, concat(\"\", [replace(x15, \"é\", \"ü\"), \"é\"])) == trim_right(x15, concat(\"\", [replace(x15, \"é\", \"ü\"), \"é\"]))"),
	"ten thousand messages":                    "package hostile\n\ndeny contains sprintf(\"%d\", [i]) if some i in numbers.range(1, 10000)\n",
	"messages that are long":                   "package hostile\n\ndeny contains concat(\"\", [sprintf(\"%d\", [i]), x]) if {\nx := concat(\"\", [\"aaaaaaaa\" | some _ in numbers.range(1, 10000)])\nsome i in numbers.range(1, 10000)\n}\n",
}

// TestHostilePoliciesAreStopped checks the bounds of compilation and evaluation. Unbounded work takes minutes or more, so that the limits leave room
// for a busy host.
func TestHostilePoliciesAreStopped(t *testing.T) {
	in := mustInput(t, vmDocument(t))
	for name, text := range hostilePolicies {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			policy, err := testCompiler.compile(Definition{Name: "hostile", Source: text})
			compiled := time.Since(begin)
			if compiled > 30*time.Second {
				t.Errorf("compiling took %v", compiled)
			}
			if err != nil {
				var problems *CompileError
				if !errors.As(err, &problems) {
					t.Fatal(err)
				}
				t.Logf("%v: not compiled: %v", compiled, shorten(err.Error(), 200))
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			begin = time.Now()
			result, err := policy.Evaluate(ctx, in)
			took := time.Since(begin)
			runtime.ReadMemStats(&after)
			t.Logf("compiled in %v, evaluated in %v, %d MiB allocated: %d findings, %v", compiled, took, (after.TotalAlloc-before.TotalAlloc)>>20, len(result.Deny), err)
			if took > 20*time.Second {
				t.Errorf("evaluating took %v", took)
			}
			var failed *EvaluationError
			if err != nil && !errors.As(err, &failed) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
