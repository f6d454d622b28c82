package conversion_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
)

// with are options with these objects, in YAML.
func with(t *testing.T, objects ...string) capturing.Options {
	t.Helper()
	options := capturing.Options{Namespace: "golden"}
	for _, each := range objects {
		options.Spec.Objects = append(options.Spec.Objects, runtime.RawExtension{Raw: fixture.JSON(t, each)})
	}
	return options
}

func TestObjectsOfTheMachine(t *testing.T) {
	const vm = `
metadata: {name: web-1, namespace: shop, annotations: {objects.template.kubevirt.io/pending: x}}
spec:
  template:
    metadata: {labels: {app: web, kubevirt.io/vm: web-1}, annotations: {objects.template.kubevirt.io/hold: objects}}
    spec:
      accessCredentials: [{sshPublicKey: {source: {secret: {secretName: keys}}, propagationMethod: {noCloud: {}}}}, {userPassword: {source: {secret: {secretName: passwords}}, propagationMethod: {qemuGuestAgent: {}}}}]
      domain: {devices: {}, firmware: {kernelBoot: {container: {image: k, imagePullSecret: pull}}}}
      volumes:
      - {name: init, cloudInitNoCloud: {secretRef: {name: web-1-login}, networkDataSecretRef: {name: web-1-login}}}
      - {name: keys, secret: {secretName: keys}}
      - {name: answers, sysprep: {secret: {name: web-10}}}
      - {name: image, containerDisk: {image: x, imagePullSecret: pull}}
      - {name: config, configMap: {name: keys}}
`
	const service = `
apiVersion: v1
kind: Service
metadata: {name: web-1, namespace: shop, uid: u, resourceVersion: "7", labels: {app: web}, annotations: {note: "${A}", meta.helm.sh/release-name: web}, ownerReferences: [{kind: VirtualMachine, name: web-1}]}
spec:
  clusterIP: 10.0.0.1
  clusterIPs: [10.0.0.1]
  externalTrafficPolicy: Local
  healthCheckNodePort: 30001
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  loadBalancerIP: 192.0.2.1
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30000}]
  selector: {app: web, kubevirt.io/vm: web-1}
  type: LoadBalancer
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
rights: Template
`
	options := with(t, service,
		`{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, clusterIPs: [None], ports: [{port: 5432}]}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: web-1-login, labels: {objects.template.kubevirt.io/owner: u}}, data: {userdata: I2Nsb3VkLWNvbmZpZw==}, type: Opaque}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {key: "${KEY}"}, immutable: true, rights: Template}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: web-10}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: pull}}`,
	)
	result := convert(t, vm, options)
	rendered := fixture.Render(t, compile(t, result), map[string]string{"NAME": "new"})
	want := `[
{apiVersion: v1, kind: Service, metadata: {name: new, labels: {app: web}, annotations: {note: "${A}"}}, spec: {externalTrafficPolicy: Local, ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80, targetPort: 8080}],
  selector: {app: web, kubevirt.io/vm: new, vm.kubevirt.io/name: new}, type: LoadBalancer}},
{apiVersion: v1, kind: Service, metadata: {name: new-db}, spec: {clusterIP: None, ports: [{port: 5432}]}},
{apiVersion: v1, kind: Secret, metadata: {name: new-login}, data: {userdata: I2Nsb3VkLWNvbmZpZw==}, type: Opaque},
{apiVersion: v1, kind: Secret, metadata: {name: new-keys}, stringData: {key: "${KEY}"}, immutable: true},
{apiVersion: v1, kind: Secret, metadata: {name: new-web-10}},
{apiVersion: v1, kind: Secret, metadata: {name: new-pull}}]`
	if diff := cmp.Diff(decode(t, "items: "+want), fixture.VM(t, `{"items":`+string(rendered.Objects())+`}`)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if text := string(rendered.JSON()); strings.Contains(text, "objects.template.kubevirt.io") {
		t.Errorf("the machine would wait for the objects of the captured one: %s", text)
	}
	guest := decode(t, `
accessCredentials: [{sshPublicKey: {source: {secret: {secretName: new-keys}}, propagationMethod: {noCloud: {}}}}, {userPassword: {source: {secret: {secretName: passwords}}, propagationMethod: {qemuGuestAgent: {}}}}]
domain: {devices: {}, firmware: {kernelBoot: {container: {image: k, imagePullSecret: new-pull}}}}
volumes:
- {name: init, cloudInitNoCloud: {secretRef: {name: new-login}, networkDataSecretRef: {name: new-login}}}
- {name: keys, secret: {secretName: new-keys}}
- {name: answers, sysprep: {secret: {name: new-web-10}}}
- {name: image, containerDisk: {image: x, imagePullSecret: new-pull}}
- {name: config, configMap: {name: keys}}
`)
	got := fixture.VM(t, rendered.JSON())["spec"].(map[string]any)["template"].(map[string]any)["spec"]
	if diff := cmp.Diff(any(guest), got); diff != "" {
		t.Errorf("spec.template.spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]capturing.Left{
		{What: "spec.template.spec.volumes[4].configMap: ConfigMap keys stays in namespace shop", Unreachable: true},
		{What: "spec.template.spec.accessCredentials[1].userPassword: Secret passwords stays in namespace shop", Unreachable: true},
	}, result.Left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]capturing.Secret{
		{Path: "spec.objects[2] (Secret web-1-login)"}, {Path: "spec.objects[3] (Secret keys)"}, {Path: "spec.objects[4] (Secret web-10)"}, {Path: "spec.objects[5] (Secret pull)"},
	}, result.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

func TestObjectsWithNamesThatWouldBecomeTheSame(t *testing.T) {
	vm := `{metadata: {name: web}, spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, secret: {secretName: keys}}, {name: b, secret: {secretName: web-keys}}]}}}}`
	result := convert(t, vm, with(t, `{apiVersion: v1, kind: Secret, metadata: {name: keys}}`, `{apiVersion: v1, kind: Secret, metadata: {name: web-keys}}`))
	if diff := cmp.Diff([]string{"Secret ${NAME}-keys", "Secret ${NAME}-web-keys"}, compile(t, result).Objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestObjectsThatAreNotCaptured(t *testing.T) {
	for name, raw := range map[string]string{
		"no object":      `[]`,
		"another kind":   `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		"another group":  `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"name":"a"}}`,
		"without a name": `{"apiVersion":"v1","kind":"Secret"}`,
		"no JSON":        `{`,
	} {
		t.Run(name, func(t *testing.T) {
			vm := decode(t, `{metadata: {name: web}, spec: {template: {spec: {domain: {devices: {}}}}}}`)
			_, err := capturing.Convert(vm, capturing.Options{Spec: v1beta1.VirtualMachineTemplateRequestSpec{Objects: []runtime.RawExtension{{Raw: []byte(raw)}}}})
			if err == nil {
				t.Error("it is captured")
			}
		})
	}
}
