package rego_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/rego"
)

// definitions returns n policies of the library, with repetitions.
func definitions(tb testing.TB, n int) []rego.Definition {
	tb.Helper()
	files, err := filepath.Glob("../charts/stencil/files/library/*.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("the library has %d policies: %v", len(files), err)
	}
	var result []rego.Definition
	for i := range n {
		file := files[i%len(files)]
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var policy struct {
			Spec struct {
				Rego             string
				Parameters       map[string]any
				ParametersSchema map[string]any
				Match            struct{ Kinds []string }
			}
		}
		if err := yaml.Unmarshal(text, &policy); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		result = append(result, rego.Definition{
			Name: fmt.Sprintf("%s-%d", filepath.Base(file), i), Source: policy.Spec.Rego, Kinds: policy.Spec.Match.Kinds,
			Parameters: policy.Spec.Parameters, Schema: policy.Spec.ParametersSchema,
		})
	}
	return result
}

func compileAll(tb testing.TB, compiler *rego.Compiler, all []rego.Definition, workers int) []*rego.Policy {
	tb.Helper()
	policies := make([]*rego.Policy, len(all))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				policy, err := compiler.Compile(context.Background(), all[i])
				if err != nil {
					tb.Errorf("%s: %v", all[i].Name, err)
				}
				policies[i] = policy
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	group.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
	return policies
}

func benchmarkDocument(tb testing.TB) rego.Document {
	tb.Helper()
	text, err := os.ReadFile("testdata/machine.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		tb.Fatal(err)
	}
	return rego.Document{
		Request:    rego.Request{Operation: "CREATE", Kind: rego.KindVirtualMachine, Namespace: "team-a", Name: "web-1", UserInfo: rego.UserInfo{Username: "jane", Groups: []string{"team-a"}}},
		Object:     object,
		Namespace:  rego.Namespace{Name: "team-a", Labels: map[string]string{"team": "a"}},
		Parameters: map[string]string{"NAME": "web-1"},
	}
}

// BenchmarkEvaluate is one request: its input is converted, and then each policy is
// evaluated, one after the other.
func BenchmarkEvaluate(b *testing.B) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	document := benchmarkDocument(b)
	for _, n := range []int{1, 20, 100} {
		policies := compileAll(b, compiler, definitions(b, n), 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begin := threadCPU()
			defer func() { b.ReportMetric(float64(threadCPU()-begin)/float64(b.N), "cpu-ns/op") }()
			for b.Loop() {
				in, err := rego.NewInput(document)
				if err != nil {
					b.Fatal(err)
				}
				for _, policy := range policies {
					if _, err := policy.Evaluate(b.Context(), in); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkNewInput(b *testing.B) {
	document := benchmarkDocument(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rego.NewInput(document); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompile1000 compiles a thousand policies on two cores, and reports how much memory they hold.
func BenchmarkCompile1000(b *testing.B) {
	compiler, err := rego.NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	all := definitions(b, 1000)
	for b.Loop() {
		before := heap()
		begin := cpu()
		policies := compileAll(b, compiler, all, 2)
		b.ReportMetric(float64(cpu()-begin)/1e9, "cpu-s")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-held")
		runtime.KeepAlive(policies)
	}
}

func BenchmarkNewCompiler(b *testing.B) {
	for b.Loop() {
		if _, err := rego.NewCompiler(); err != nil {
			b.Fatal(err)
		}
	}
}

// cpu is what the process has used of its cores, in nanoseconds. On a busy host it is more accurate than the elapsed time.
func cpu() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// threadCPU is the same for the present thread: without the collection of garbage,
// which goes on beside it.
func threadCPU() int64 {
	const thread = 1 // RUSAGE_THREAD of Linux
	var usage syscall.Rusage
	_ = syscall.Getrusage(thread, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
