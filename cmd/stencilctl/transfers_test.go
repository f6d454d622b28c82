package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	importsAt = "/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplateimports"
	exportsAt = "/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplateexports"
)

// transferred returns an import or export with a status: a phase, further fields, and conditions, each TYPE STATUS REASON.
func transferred(kind, phase string, fields map[string]any, conditions ...string) string {
	var list []any
	for _, condition := range conditions {
		words := strings.Fields(condition)
		list = append(list, map[string]any{"type": words[0], "status": words[1], "reason": words[2], "message": "told", "lastTransitionTime": "2026-11-27T08:00:00Z"})
	}
	status := map[string]any{"phase": phase, "conditions": list}
	for name, value := range fields {
		status[name] = value
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "template.kubevirt.io/v1beta1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web-abcde"},
		"spec": map[string]any{}, "status": status,
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func importOf(phase string, fields map[string]any, conditions ...string) string {
	return transferred("VirtualMachineTemplateImport", phase, fields, conditions...)
}

func exportOf(phase string, fields map[string]any, conditions ...string) string {
	return transferred("VirtualMachineTemplateExport", phase, fields, conditions...)
}

// transferCommands are command lines of imports and exports without a download.
var transferCommands = map[string]struct {
	line    string
	answers map[string][]string
}{
	"ova import": {"ova import https://downloads.example.com/Web.ova -n shop --poll-interval 1ms --secret key --certificates ca --storage-class fast --network VM=Pod --labels os=fedora " +
		"--checksum sha256:00 --verification Require --accept-eula --deployment-option big --instancetype u1.medium --preference None --approval Auto", map[string][]string{
		"POST " + importsAt: {importOf("", nil)},
		"GET " + importsAt + "/web-abcde": {
			importOf("Transferring", map[string]any{"percent": 40}, "Progressing True Reconciling"),
			importOf("Succeeded", map[string]any{"templateRef": map[string]any{"name": "web"}, "warnings": []string{"the VM has no network"}},
				"Progressing False Succeeded", "Ready True Succeeded", "Sealed False IdentityFound"),
		},
	}},
	"ova import from a claim": {"ova import pvc://drop/images/app.ova -n shop --name web --poll-interval 1ms -o name", map[string][]string{
		"POST " + importsAt:               {importOf("", nil)},
		"GET " + importsAt + "/web-abcde": {importOf("Succeeded", map[string]any{"templateRef": map[string]any{"name": "web"}})},
	}},
	"ova import fails": {"ova import https://downloads.example.com/web.ova -n shop --poll-interval 1ms", map[string][]string{
		"POST " + importsAt:               {importOf("", nil)},
		"GET " + importsAt + "/web-abcde": {importOf("Failed", nil, "Ready False ChecksumMismatch")},
	}},
	"ova import waits": {"ova import https://downloads.example.com/web.ova -n shop --poll-interval 1ms --approval Manual", map[string][]string{
		"POST " + importsAt:               {importOf("", nil)},
		"GET " + importsAt + "/web-abcde": {importOf("Waiting", nil, "Progressing True WaitingForUser")},
	}},
	"ova import, too late": {"ova import https://downloads.example.com/web.ova -n shop --timeout 1ms --poll-interval 1h", map[string][]string{
		"POST " + importsAt:               {importOf("", nil)},
		"GET " + importsAt + "/web-abcde": {importOf("Inspecting", nil)},
	}},
	"ova import, deleted": {"ova import https://downloads.example.com/web.ova -n shop", map[string][]string{"POST " + importsAt: {importOf("", nil)}}},
	"ova import, denied": {"ova import https://downloads.example.com/web.ova -n shop", map[string][]string{
		"POST " + importsAt: {respondWithError(403, "Forbidden", "you may not")},
	}},
	"ova import, nothing to wait for":  {"ova import https://downloads.example.com/web.ova -n shop --wait=false", map[string][]string{"POST " + importsAt: {importOf("", nil)}}},
	"ova import, dry run":              {"ova import https://downloads.example.com/web.ova -n shop --dry-run=client -o yaml", nil},
	"ova import, no file":              {"ova import none.ova -n shop", nil},
	"ova import, a folder":             {"ova import policies -n shop", nil},
	"ova import, needless for a file":  {"ova import web.ova -n shop --secret key", nil},
	"ova import, a password":           {"ova import https://ada:hidden@downloads.example.com/web.ova -n shop", nil},
	"ova import, a password elsewhere": {"ova import ftp://ada:hidden@downloads.example.com/web.ova -n shop", nil},
	"ova import, no path":              {"ova import pvc://drop -n shop", nil},
	"ova import, needless":             {"ova import pvc://drop/web.ova -n shop --secret key", nil},
	"ova import, no name":              {"ova import https://downloads.example.com/ -n shop", nil},
	"ova import, no approval":          {"ova import https://downloads.example.com/web.ova -n shop --approval Maybe", nil},
	"ova import, no verification":      {"ova import https://downloads.example.com/web.ova -n shop --verification Maybe", nil},
	"ova import, an instance type":     {"ova import https://downloads.example.com/web.ova -n shop --instancetype u1.medium --dry-run=client -o yaml", nil},
	"oci import, an instance type":     {"oci import oci://registry.example.com/web:v1 -n shop --instancetype u1.medium", nil},
	"oci import, a preference":         {"oci import oci://registry.example.com/web:v1 -n shop --preference linux", nil},
	"ova import, no time":              {"ova import https://downloads.example.com/web.ova -n shop --timeout 0s", nil},
	"oci import": {"oci import oci://registry.example.com:5000/templates/web:v1 -n shop --plain-http --secret key --certificates ca --wait=false", map[string][]string{
		"POST " + importsAt: {importOf("", nil)},
	}},
	"oci import, no source":    {"oci import ftp://registry.example.com/web -n shop", nil},
	"oci import from a server": {"oci import https://downloads.example.com/Web.tar -n shop --dry-run=client -o yaml", nil},
	"oci import, TLS":          {"oci import https://downloads.example.com/web.tar -n shop --plain-http", nil},
	"oci import, no bucket":    {"oci import oci://registry.example.com/web:v1 -n shop --s3", nil},
	"ova import from a bucket": {"ova import https://s3.example.com/packages/web.ova -n shop --s3 --region north --secret bucket --certificates ca --dry-run=client -o yaml", nil},
	"ova import, no keys":      {"ova import https://s3.example.com/packages/web.ova -n shop --s3", nil},
	"ova import, no bucket":    {"ova import https://s3.example.com/packages/web.ova -n shop --region north", nil},
	"oci export to a registry": {"oci export web oci://registry.example.com/templates/web:v1 -n shop --secret key --certificates ca --plain-http --source-namespace golden --storage-class fast --compression Best --poll-interval 1ms", map[string][]string{
		"POST " + exportsAt: {exportOf("", nil)},
		"GET " + exportsAt + "/web-abcde": {strings.Replace(exportOf("Succeeded", map[string]any{"image": "registry.example.com/templates/web@sha256:00"}, "Ready True Succeeded"),
			`"spec":{}`, `"spec":{"target":{"registry":{"image":"registry.example.com/templates/web:v1"}}}`, 1)},
	}},
	"ova export fails": {"ova export web web.ova -n shop --ttl 1h --poll-interval 1ms", map[string][]string{
		"POST " + exportsAt:               {exportOf("", nil)},
		"GET " + exportsAt + "/web-abcde": {exportOf("Failed", nil, "Ready False TemplateUnusable")},
	}},
	"ova export, an expired one": {"ova export --export web-abcde web.ova -n shop", map[string][]string{
		"GET " + exportsAt + "/web-abcde": {exportOf("Expired", nil)},
	}},
	"ova export, no such compression":      {"ova export web web.ova -n shop --compression Strong", nil},
	"ova export, a compression of another": {"ova export --export web-abcde web.ova -n shop --compression None", nil},
	"ova export, to a registry":            {"ova export web oci://registry.example.com/web:v1 -n shop", nil},
	"oci export, two targets":              {"oci export --export web-abcde oci://registry.example.com/web:v1 -n shop", nil},
	"oci export, needless":                 {"oci export web web.tar -n shop --secret key", nil},
	"ova export, a file that is":           {"ova export web policies -n shop", nil},
	"ova export, no file":                  {"ova export web -n shop", nil},
	"ova export, two names of one":         {"ova export --export web-abcde web web.ova -n shop", nil},
	"ova export, no such namespace":        {"ova export web web.ova -n shop", nil},
}

func TestTransfers(t *testing.T) {
	t.Chdir("testdata")
	for name, tc := range transferCommands {
		t.Run(name, func(t *testing.T) { golden(t, name, runInCluster(t, tc.line, tc.answers)) })
	}
}
