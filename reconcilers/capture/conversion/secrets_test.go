package conversion_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
	"github.com/vmstencil/stencil/template/plain"
)

const pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaHByaXZhdGU=\n-----END OPENSSH PRIVATE KEY-----\n"

// withUserData returns a VM with one cloud-init volume.
func withUserData(t *testing.T, source map[string]any) string {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": "a", "namespace": "shop"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"domain": map[string]any{"devices": map[string]any{}}, "volumes": []any{map[string]any{"name": "init", "cloudInitNoCloud": source}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

const secretive = `#cloud-config
# Everybody ${KNOWS}.
password: hunter2
chpasswd:
  expire: false
  list: |
    root:hunter3
    ada:RANDOM
  users:
  - {name: bob, password: $6$hunter4, type: hash}
users:
- default
- name: eve
  passwd: $6$hunter5
- {name: joe, lock_passwd: true, passwd: "!"}
ssh_keys:
  ed25519_private: |
    -----BEGIN OPENSSH PRIVATE KEY-----
    hunter6b3Blbn
    -----END OPENSSH PRIVATE KEY-----
  ed25519_public: ssh-ed25519 AAAA
write_files:
- path: /etc/app
  content: "token ${T} -----BEGIN PRIVATE KEY----- hunter7 -----END PRIVATE KEY-----"
runcmd:
- echo root:hunter8 | chpasswd
- wifi: {psk: hunter9}
`

func TestSecretsAreFoundAndNeverShown(t *testing.T) {
	const userData = "spec.template.spec.volumes[0].cloudInitNoCloud.userData"
	found := []capturing.Secret{
		{Path: " (password)", Parameter: "PASSWORD"},
		{Path: " (users[1].passwd)", Parameter: "PASSWORD_EVE"},
		{Path: " (chpasswd.list, line 1)", Parameter: "PASSWORD_ROOT"},
		{Path: " (chpasswd.users[0].password)", Parameter: "PASSWORD_BOB"},
		{Path: " (ssh_keys.ed25519_private)", Parameter: "SSH_ED25519_PRIVATE"},
		{Path: " (write_files[0].content)"},
		{Path: " (runcmd[0])"},
		{Path: " (runcmd[1].wifi.psk)"},
	}
	for name, tc := range map[string]struct {
		source  map[string]any
		secrets v1beta1.CaptureSecrets
		path    string
	}{
		"kept":                        {source: map[string]any{"userData": secretive}, path: userData},
		"kept in base64":              {source: map[string]any{"userDataBase64": base64.StdEncoding.EncodeToString([]byte(secretive))}, path: userData + "Base64"},
		"parameterized":               {source: map[string]any{"userData": secretive}, path: userData, secrets: v1beta1.CaptureSecretsParameterize},
		"parameterized out of base64": {source: map[string]any{"userDataBase64": base64.StdEncoding.EncodeToString([]byte(secretive))}, path: userData + "Base64", secrets: v1beta1.CaptureSecretsParameterize},
	} {
		t.Run(name, func(t *testing.T) {
			vm := withUserData(t, tc.source)
			result := convert(t, vm, capturing.Options{Namespace: "shop", Spec: v1beta1.VirtualMachineTemplateRequestSpec{Secrets: tc.secrets}})
			var want []capturing.Secret
			for _, each := range found {
				each.Path = tc.path + each.Path
				if tc.secrets == "" {
					each.Parameter = ""
				}
				want = append(want, each)
			}
			if diff := cmp.Diff(want, result.Secrets); diff != "" {
				t.Errorf("secrets (-want +got):\n%s", diff)
			}
			said, _ := json.Marshal([]any{result.Secrets, result.Left, result.Unsearched, result.Spec.Parameters})
			if strings.Contains(string(said), "hunter") {
				t.Errorf("a secret is told: %s", said)
			}
			if tc.secrets == "" {
				got := render(t, result, map[string]string{"NAME": "a"})
				volumes := got["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"]
				if diff := cmp.Diff(decode(t, vm)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"], volumes); diff != "" {
					t.Errorf("volumes (-want +got):\n%s", diff)
				}
				return
			}
			checkParameterized(t, result)
		})
	}
}

func TestSecretizeIsPassedOn(t *testing.T) {
	vm := withUserData(t, map[string]any{"userData": "#cloud-config\npassword: ${hunter2}\n", "userDataBase64": ""})
	for _, secretize := range []bool{false, true} {
		result := convert(t, vm, capturing.Options{Namespace: "shop", Spec: v1beta1.VirtualMachineTemplateRequestSpec{Secretize: secretize}})
		compiled := compile(t, result)
		rendered := fixture.Render(t, compiled, map[string]string{"NAME": "web"})
		want := ""
		if secretize {
			want = `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web-init"},"stringData":{"userdata":"#cloud-config\npassword: ${hunter2}\n"}}]`
		}
		if diff := cmp.Diff(want, string(rendered.Objects())); diff != "" {
			t.Errorf("with secretize %t the objects are (-want +got):\n%s", secretize, diff)
		}
		if shown := strings.Contains(string(rendered.JSON()), "hunter2"); shown == secretize {
			t.Errorf("with secretize %t the VirtualMachine is %s", secretize, rendered.JSON())
		}
	}
}

func checkParameterized(t *testing.T, result *capturing.Result) {
	t.Helper()
	for _, p := range result.Spec.Parameters {
		if p.Name != "NAME" && p.Name != plain.Dollar && !p.Sensitive {
			t.Errorf("parameter %s is not sensitive", p.Name)
		}
	}
	got := userData(t, render(t, result, map[string]string{
		"NAME": "a", "PASSWORD": "p: #1", "PASSWORD_EVE": "p2", "PASSWORD_ROOT": "p3", "PASSWORD_BOB": "p4",
		"SSH_ED25519_PRIVATE": pem,
	}))
	want := map[string]any{
		"password": "p: #1",
		"chpasswd": map[string]any{
			"expire": false, "list": "root:p3\nada:RANDOM\n",
			"users": []any{map[string]any{"name": "bob", "password": "p4", "type": "text"}},
		},
		"users": []any{
			"default", map[string]any{"name": "eve", "plain_text_passwd": "p2"}, map[string]any{"name": "joe", "lock_passwd": true, "passwd": "!"},
		},
		"ssh_keys":    map[string]any{"ed25519_private": pem, "ed25519_public": "ssh-ed25519 AAAA"},
		"write_files": []any{map[string]any{"path": "/etc/app", "content": "token ${T} -----BEGIN PRIVATE KEY----- hunter7 -----END PRIVATE KEY-----"}},
		"runcmd":      []any{"echo root:hunter8 | chpasswd", map[string]any{"wifi": map[string]any{"psk": "hunter9"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("user data (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("Password of the default user: ${PASSWORD}\nPassword of the user eve: ${PASSWORD_EVE}\n"+
		"Password of the user root: ${PASSWORD_ROOT}\nPassword of the user bob: ${PASSWORD_BOB}", result.Spec.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	// Everything else can be generated; only the key is required.
	compiled := compile(t, result)
	if _, err := compiled.Bind(nil); err == nil || !strings.Contains(err.Error(), "SSH_ED25519_PRIVATE") || strings.Contains(err.Error(), "PASSWORD") {
		t.Errorf("without values: %v", err)
	}
	for _, bad := range []string{`x"y`, `x\y`, "x\ny", "é"} {
		if _, err := compiled.Bind(map[string]string{"PASSWORD": bad, "SSH_ED25519_PRIVATE": pem}); err == nil {
			t.Errorf("the password %q would break the document", bad)
		}
	}
}

func TestOtherUserData(t *testing.T) {
	const path = "spec.template.spec.volumes[0].cloudInitNoCloud."
	for name, tc := range map[string]struct {
		source     map[string]any
		want       []string
		unsearched []string
	}{
		"a script that sets a password": {source: map[string]any{"userData": "#!/bin/sh\necho root:x | chpasswd\n"}, want: []string{path + "userData (a command that sets a password)"}},
		"a script with a private key":   {source: map[string]any{"userData": "#!/bin/sh\ncat <<E\n" + pem + "E\n"}, want: []string{path + "userData (a private key)"}},
		"a script":                      {source: map[string]any{"userData": "#!/bin/sh\nls\n"}, unsearched: []string{path + "userData"}},
		"no YAML":                       {source: map[string]any{"userData": "#cloud-config\n: : -\n\t"}, unsearched: []string{path + "userData"}},
		"no base64":                     {source: map[string]any{"userDataBase64": "%"}, unsearched: []string{path + "userDataBase64"}},
		"compressed":                    {source: map[string]any{"userDataBase64": base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 0xff})}, unsearched: []string{path + "userDataBase64"}},
		"nothing":                       {source: map[string]any{"userData": "#cloud-config\n"}},
		"no secrets":                    {source: map[string]any{"userData": "#cloud-config\npackages: [passwd-tools]\nssh_pwauth: false\npassword: null\n"}},
		"a list":                        {source: map[string]any{"userData": "#cloud-config\n- password: x\n"}, want: []string{path + "userData ([0].password)"}},
		"a list of chpasswd":            {source: map[string]any{"userData": "#cloud-config\nchpasswd: {list: [\"root:x\", \"ada:R\"]}\n"}, want: []string{path + "userData (chpasswd.list[0])"}},
		"an alias":                      {source: map[string]any{"userData": "#cloud-config\nx: &p secret1\npassword: *p\n"}, want: []string{path + "userData (password)"}},
		"network data":                  {source: map[string]any{"networkData": "version: 2\nwifis: {w: {access-points: {home: {password: x}}}}\n"}, want: []string{path + "networkData (wifis.w.access-points.home.password)"}},
	} {
		t.Run(name, func(t *testing.T) {
			result := convert(t, withUserData(t, tc.source), capturing.Options{Namespace: "shop"})
			compile(t, result)
			var got []string
			for _, each := range result.Secrets {
				got = append(got, each.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("secrets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unsearched, result.Unsearched); diff != "" {
				t.Errorf("unsearched (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIgnition(t *testing.T) {
	result := convert(t, `{metadata: {name: a}, spec: {template: {metadata: {annotations: {kubevirt.io/ignitiondata: '{"passwordHash": "$y$x"}'}}, spec: {domain: {devices: {}}}}}}`, capturing.Options{})
	if diff := cmp.Diff([]capturing.Secret{{Path: "spec.template.metadata.annotations[kubevirt.io/ignitiondata]"}}, result.Secrets); diff != "" {
		t.Error(diff)
	}
}
