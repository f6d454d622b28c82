package evaluation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	ready "github.com/vmstencil/stencil/policies/library"
	policyspec "github.com/vmstencil/stencil/policies/spec"
	"github.com/vmstencil/stencil/rego"
)

// library compiles the policies of the library that apply to VirtualMachines.
func library(t testing.TB) []*rego.Policy {
	t.Helper()
	compiler := compiler(t)
	found, err := ready.Policies()
	if err != nil {
		t.Fatal(err)
	}
	var compiled []*rego.Policy
	for _, each := range found {
		spec, problems := policyspec.Read(each)
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		policy, err := compiler.Compile(t.Context(), spec.Definition)
		if err != nil {
			t.Fatalf("policy %s: %v", each.Name, err)
		}
		if spec.Definition.Kinds[0] == rego.KindVirtualMachine {
			compiled = append(compiled, policy)
		}
	}
	return compiled
}

// renamed is a policy with another name, so that a set can contain it several times.
type renamed struct {
	*rego.Policy
	name string
}

func (r renamed) Name() string { return r.name }

// several returns n entries that match every VirtualMachine.
func several(t testing.TB, from []*rego.Policy, n int) []policyset.Entry {
	t.Helper()
	var entries []policyset.Entry
	for i := range n {
		policy := from[i%len(from)]
		entries = append(entries, policyset.Entry{
			Policy:  renamed{policy, fmt.Sprintf("%s-%03d", policy.Name(), i)},
			Timeout: time.Minute, // a busy machine must not make a benchmark cheap
		})
	}
	return entries
}

func compiler(t testing.TB) *rego.Compiler {
	t.Helper()
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return compiler
}

// machine returns a VirtualMachine of about 3 KB, similar to those of KubeVirt's
// templates.
const machine = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-1
  namespace: shop
  labels: {app: web, tier: web, owner: ada, vm.kubevirt.io/template: fedora-server-small, vm.kubevirt.io/template.namespace: templates}
  annotations:
    vm.kubevirt.io/validations: '[{"name": "minimal-required-memory", "path": "jsonpath::.spec.domain.memory.guest", "rule": "integer", "message": "This VM requires more memory.", "min": 1073741824}]'
spec:
  runStrategy: Always
  dataVolumeTemplates:
  - metadata: {name: web-1-root}
    spec:
      sourceRef: {kind: DataSource, name: fedora, namespace: images}
      storage: {resources: {requests: {storage: 30Gi}}, storageClassName: fast}
  template:
    metadata:
      labels: {app: web, kubevirt.io/domain: web-1, kubevirt.io/size: small}
      annotations: {vm.kubevirt.io/flavor: small, vm.kubevirt.io/os: fedora, vm.kubevirt.io/workload: server}
    spec:
      architecture: amd64
      evictionStrategy: LiveMigrate
      terminationGracePeriodSeconds: 180
      domain:
        cpu: {cores: 2, sockets: 1, threads: 1, model: host-model}
        memory: {guest: 4Gi}
        machine: {type: q35}
        features: {smm: {enabled: true}, acpi: {}}
        firmware: {bootloader: {efi: {secureBoot: true}}}
        devices:
          rng: {}
          networkInterfaceMultiqueue: true
          disks:
          - {name: root, disk: {bus: virtio}, bootOrder: 1}
          - {name: data, disk: {bus: virtio}}
          - {name: cloudinit, disk: {bus: virtio}}
          interfaces:
          - {name: default, masquerade: {}, model: virtio, ports: [{name: http, port: 80}, {name: https, port: 443}]}
          - {name: backend, bridge: {}, model: virtio, macAddress: "02:00:00:00:00:01"}
      networks:
      - {name: default, pod: {}}
      - {name: backend, multus: {networkName: shop/backend}}
      volumes:
      - {name: root, dataVolume: {name: web-1-root}}
      - {name: data, persistentVolumeClaim: {claimName: web-1-data}}
      - name: cloudinit
        cloudInitNoCloud:
          userData: |
            #cloud-config
            user: fedora
            ssh_authorized_keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN1Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q ada@example.com]
            packages: [nginx, qemu-guest-agent]
            runcmd: [[systemctl, enable, --now, nginx, qemu-guest-agent]]
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
`

var object = func() map[string]any {
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(machine), &decoded); err != nil {
		panic(err)
	}
	return decoded
}()

func document() rego.Document {
	return rego.Document{
		Request: rego.Request{
			Operation: "CREATE", Kind: rego.KindVirtualMachine, Namespace: "shop", Name: "web-1",
			UserInfo: rego.UserInfo{Username: "ada", Groups: []string{"developers", "system:authenticated"}},
		},
		Object:    object,
		Namespace: rego.Namespace{Name: "shop", Labels: map[string]string{"team": "shop"}},
	}
}

// TestHostilePolicies evaluates policies that use as many resources as the engine
// permits, beside good ones: these must return their findings, and everything must end
// in time.
func TestHostilePolicies(t *testing.T) {
	hostile := map[string]string{
		"nested comprehensions": `deny contains "no" if {
			xs := numbers.range(1, 1000)
			count([1 | some a in xs; count([1 | some b in xs; count([1 | some c in xs; a + b == c]) > 0]) > 0]) < 0
		}`,
		"joins over the input": `deny contains "no" if {
			some a; some b; some c; some d
			walk(input, [a, _]); walk(input, [b, _]); walk(input, [c, _]); walk(input, [d, _])
			a == ["x"]; b == a; c == b; d == c
		}`,
		"doubling strings": `deny contains s if {
			` + doubling(20) + `
			s := x20
		}`,
		"a bomb of messages": `deny contains msg if {
			some i in numbers.range(1, 1000)
			some j in numbers.range(1, 1000)
			msg := sprintf("%d/%d", [i, j])
		}`,
		"a runtime error": `deny contains "no" if { 1 / (count(input.object.metadata.labels) - count(input.object.metadata.labels)) > 0 }`,
	}
	compiler := compiler(t)
	var entries []policyset.Entry
	for name, rule := range hostile {
		slug := "hostile-" + strings.ReplaceAll(name, " ", "-")
		policy, err := compiler.Compile(t.Context(), rego.Definition{Name: slug, Source: "package hostile\n" + rule})
		if err != nil {
			t.Logf("%s: does not compile: %v", name, err)
			continue
		}
		entries = append(entries, policyset.Entry{Policy: policy, Timeout: 50 * time.Millisecond})
	}
	if len(entries) < 3 {
		t.Fatalf("only %d hostile policies compile", len(entries))
	}
	const good = `deny contains "no" if input.object.metadata.name == "web-1"`
	for i := range 10 {
		policy, err := compiler.Compile(t.Context(), rego.Definition{Name: fmt.Sprintf("p%d", i), Source: "package good\n" + good})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, policyset.Entry{Policy: policy, Timeout: 5 * time.Second})
	}
	set := policyset.NewSet(entries)
	input, err := rego.NewInput(document())
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policyset.NewEvaluator(policyset.Options{Workers: 2, Deadline: 30 * time.Second})
	for range 10 {
		began := time.Now()
		decision := evaluator.Evaluate(t.Context(), set.Matching(created), input)
		took := time.Since(began)
		for _, evaluation := range decision.Evaluations {
			bad := strings.HasPrefix(evaluation.Policy, "hostile-")
			if !bad && evaluation.Result != policyset.ResultDeny {
				t.Errorf("good policy %s: %s (%v)", evaluation.Policy, evaluation.Result, evaluation.Err)
			}
			// The limit is generous: the host may be busy, and the race detector slows
			// the test down.
			if bad && evaluation.Duration > 5*time.Second {
				t.Errorf("%s: %s took %v, its deadline is 50 ms", evaluation.Policy, evaluation.Result, evaluation.Duration)
			}
			if bad && testing.Verbose() {
				t.Logf("%s: %s after %v: %v", evaluation.Policy, evaluation.Result, evaluation.Duration, evaluation.Err)
			}
		}
		t.Logf("the request took %v", took)
	}
}

func doubling(n int) string {
	var b strings.Builder
	b.WriteString("x0 := \"0123456789abcdef\"\n")
	for i := range n {
		fmt.Fprintf(&b, "x%d := concat(\"\", [x%d, x%d])\n", i+1, i, i)
	}
	return b.String()
}
