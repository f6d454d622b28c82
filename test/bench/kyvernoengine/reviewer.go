package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	policies "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/engine"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	vpol "github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	api "github.com/kyverno/kyverno/pkg/engine/api"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed policies.yaml
var source []byte

// reviewer reviews one VirtualMachine by compiled policies.
type reviewer struct {
	engine  vpol.Engine
	machine *unstructured.Unstructured
	number  int
}

func newReviewer(machine string, number int) (*reviewer, error) {
	text, err := os.ReadFile(machine)
	if err != nil {
		return nil, fmt.Errorf("reading the VM: %w", err)
	}
	r := &reviewer{machine: &unstructured.Unstructured{}, number: number}
	if err := yaml.Unmarshal(text, &r.machine.Object); err != nil {
		return nil, fmt.Errorf("decoding the VM: %w", err)
	}
	kinds, err := read()
	if err != nil {
		return nil, err
	}
	var all []policies.ValidatingPolicyLike
	for i := range number {
		policy := kinds[i%len(kinds)].DeepCopy()
		policy.Name = fmt.Sprintf("%s-%d", policy.Name, i)
		all = append(all, policy)
	}
	provider, err := vpol.NewProvider(compiler.NewCompiler(), all, nil)
	if err != nil {
		return nil, fmt.Errorf("compiling the policies: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.machine.GetNamespace()}}
	r.engine = vpol.NewEngine(provider, func(string) *corev1.Namespace { return namespace }, matching.NewMatcher())
	return r, nil
}

// read returns the policies in the file.
func read() ([]*policies.ValidatingPolicy, error) {
	var all []*policies.ValidatingPolicy
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(source), 4096)
	for {
		policy := &policies.ValidatingPolicy{}
		err := decoder.Decode(policy)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the policies: %w", err)
		}
		all = append(all, policy)
	}
}

// review reviews the VM once. It fails unless each policy was evaluated and allows the VM.
func (r *reviewer) review() error {
	request := engine.Request(noContext{}, r.machine.GroupVersionKind(), schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}, "",
		r.machine.GetName(), r.machine.GetNamespace(), admissionv1.Create, authenticationv1.UserInfo{Username: "alice", Groups: []string{"team-a", "system:authenticated"}}, r.machine, nil, false, nil)
	response, err := r.engine.Handle(context.Background(), request, nil)
	if err != nil {
		return fmt.Errorf("reviewing the VM: %w", err)
	}
	if len(response.Policies) != r.number {
		return fmt.Errorf("%d of %d policies were evaluated", len(response.Policies), r.number)
	}
	for _, policy := range response.Policies {
		for _, rule := range policy.Rules {
			if rule.Status() != api.RuleStatusPass {
				return fmt.Errorf("policy %s: %s: %s", policy.Policy.GetName(), rule.Status(), rule.Message())
			}
		}
		if len(policy.Rules) == 0 {
			return fmt.Errorf("policy %s was not evaluated", policy.Policy.GetName())
		}
	}
	return nil
}

// noContext is the access to a cluster that no policy here uses.
type noContext struct{ libs.Context }
