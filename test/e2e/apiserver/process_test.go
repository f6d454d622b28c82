package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// processed is the response of process and create.
type processed struct {
	APIVersion, Kind, Message string
	TemplateRef               struct{ Namespace, Name string }
	VirtualMachine            struct {
		APIVersion, Kind string
		Metadata         struct {
			Name, Namespace, UID string
			Annotations, Labels  map[string]string
		}
		Spec struct {
			Template struct {
				Spec struct {
					Domain struct {
						CPU struct{ Cores json.Number }
					}
					Volumes []struct {
						CloudInitNoCloud struct{ UserData string }
					}
				}
			}
		}
	}
}

func decode(t *testing.T, got answer) processed {
	t.Helper()
	if got.code != http.StatusOK {
		t.Fatalf("%d: %s", got.code, got.body)
	}
	var p processed
	if err := yaml.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	return p
}

// The behaviour that compat promises, in both versions.
func TestProcess(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			for _, tc := range []struct {
				name              string
				body, contentType string
				accept            string
				wantNumber        string
				wantType          string
			}{
				{name: "JSON", body: `{"parameters":{"NAME":"web-1"}}`, contentType: "application/json", wantNumber: "1", wantType: "application/json"},
				{name: "YAML that is called JSON", body: "parameters:\n  NAME: web-1\n", contentType: "application/json", wantNumber: "1", wantType: "application/json"},
				{name: "JSON that is called YAML", body: `{"parameters":{"NAME":"web-1"}}`, contentType: "application/yaml", wantNumber: "1", wantType: "application/json"},
				{name: "no content type", body: "parameters: {NAME: web-1}", wantNumber: "1", wantType: "application/json"},
				{name: "a content type that nobody knows", body: "parameters: {NAME: web-1}", contentType: "application/x-whatever", wantNumber: "1", wantType: "application/json"},
				{name: "YAML is answered", body: "parameters: {NAME: web-1}", accept: "application/yaml", wantNumber: "1", wantType: "application/yaml"},
				{name: "a number is kept as it was written", body: "parameters: {NAME: web-1, NUMBER: 1.10}", wantNumber: "1.10", wantType: "application/json"},
				{name: "a truth is kept as it was written", body: `{"parameters":{"NAME":"web-1","NUMBER":true}}`, wantNumber: "true", wantType: "application/json"},
			} {
				t.Run(tc.name, func(t *testing.T) {
					got := request{as: bob, path: subresource(t, version, "box", "process") + "?dryRun=All", contentType: tc.contentType, accept: tc.accept, body: tc.body}.do(t)
					if found := got.header.Get("Content-Type"); found != tc.wantType {
						t.Errorf("Content-Type %s, want %s", found, tc.wantType)
					}
					p := decode(t, got)
					if p.APIVersion != group+"/"+version || p.Kind != "ProcessedVirtualMachineTemplate" || p.TemplateRef.Namespace != shop(t) || p.TemplateRef.Name != "box" {
						t.Errorf("%+v", p)
					}
					if p.VirtualMachine.APIVersion != "kubevirt.io/v1" || p.VirtualMachine.Kind != "VirtualMachine" || p.VirtualMachine.Metadata.Name != "web-1" {
						t.Errorf("%+v", p.VirtualMachine)
					}
					if found := p.VirtualMachine.Metadata.Annotations["number"]; found != tc.wantNumber {
						t.Errorf("number %q, want %q", found, tc.wantNumber)
					}
					_, password, _ := strings.Cut(p.VirtualMachine.Spec.Template.Spec.Volumes[0].CloudInitNoCloud.UserData, "password: ")
					if password = strings.TrimSpace(password); len(password) != 12 || !strings.Contains(p.Message, "has password "+password+" and the number "+tc.wantNumber) {
						t.Errorf("the message %q does not say the password %q of the VM", p.Message, password)
					}
				})
			}
		})
	}
	if out := mustKubectl(t, "", "get", "virtualmachines", "--namespace="+shop(t), "-o", "name"); strings.Contains(out, "web-1") {
		t.Errorf("something was stored: %s", out)
	}
}

func TestATemplateThatIsSentIsProcessedByKubectl(t *testing.T) {
	const sent = `{"apiVersion":"template.kubevirt.io/v1alpha1","kind":"VirtualMachineTemplate","metadata":{"name":"draft"},"spec":{
		"parameters":[{"name":"NAME","value":"web-1"}],"virtualMachine":{"metadata":{"name":"${NAME}"},"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}}}}}}}}`
	everyForm(t, func(t *testing.T, version, form string) {
		own := request{as: bob, path: "/apis/" + group + "/" + version + "/namespaces/" + shop(t) + "/processedtemplates", body: strings.Replace(sent, "v1alpha1", version, 1)}
		got := own.in(t, form).do(t)
		p := decode(t, answer{code: got.code - http.StatusCreated + http.StatusOK, body: got.body})
		if p.Kind != "ProcessedVirtualMachineTemplate" || p.APIVersion != group+"/"+version || p.VirtualMachine.Metadata.Name != "web-1" || got.header.Get("Content-Type") != "application/"+strings.ToLower(form) {
			t.Errorf("%s: %s", got.header.Get("Content-Type"), got.body)
		}
		own.as = carl
		if got := own.in(t, form).do(t); got.code != http.StatusForbidden {
			t.Errorf("without a right: %d %s", got.code, got.body)
		}
	})
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		path := "/apis/" + group + "/" + version + "/namespaces/" + shop(t) + "/processedtemplates"
		out := kubectl(t, bob, sent, "create", "--raw", path, "-f", "-")
		if out.Code != 0 || !strings.Contains(out.Stdout, `"name":"web-1"`) {
			t.Errorf("%d: %s%s", out.Code, out.Stdout, out.Stderr)
		}
		if out := kubectl(t, carl, sent, "create", "--raw", path, "-f", "-"); out.Code == 0 || !strings.Contains(out.Stderr, "forbidden") {
			t.Errorf("without a right: %d: %s%s", out.Code, out.Stdout, out.Stderr)
		}
	}
	if out := mustKubectl(t, "", "get", "vmt", "--namespace="+shop(t), "-o", "name"); strings.Contains(out, "draft") {
		t.Errorf("it was stored: %s", out)
	}
}
