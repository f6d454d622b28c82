package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// advisor checks a template for what is allowed, but could be improved.
type advisor struct {
	template *v1beta1.VirtualMachineTemplate
	findings []Finding
}

func (a *advisor) add(rule, path, format string, arguments ...any) {
	a.findings = append(a.findings, Finding{Rule: rule, Severity: Advice, Path: path, Message: fmt.Sprintf(format, arguments...)})
}

// warn adds a finding that the webhook returns, too.
func (a *advisor) warn(rule, path, format string, arguments ...any) {
	a.findings = append(a.findings, Finding{Rule: rule, Severity: Warning, Path: path, Message: fmt.Sprintf(format, arguments...)})
}

func (a *advisor) advise() {
	if a.template.Annotations["description"] == "" {
		a.add(RuleUndescribed, "metadata", "the template has no annotation description, which consoles show")
	}
	for i := range a.template.Spec.Parameters {
		a.parameter(&a.template.Spec.Parameters[i], fmt.Sprintf("spec.parameters[%d]", i))
	}
	vm := a.decodedVM()
	if vm == nil {
		return
	}
	a.name(vm)
	a.runs(vm)
	a.walk(vm, "spec.virtualMachine")
}

// decodedVM returns the VirtualMachine of the template, nil if there is none or it cannot be decoded.
func (a *advisor) decodedVM() map[string]any {
	var vm map[string]any
	if raw := template.Braces(a.template).Spec.VirtualMachine; raw == nil || json.Unmarshal(raw.Raw, &vm) != nil {
		return nil
	}
	return vm
}

var (
	// secrecy matches the names of parameters that hold secrets. reference matches the end of names of parameters that only
	// refer to one.
	secrecy   = regexp.MustCompile(`(?i)password|passwd|passphrase|secret|token|private_?key`)
	reference = regexp.MustCompile(`(?i)(name|ref|namespace|file|hash)$`)
	// placeholder matches a placeholder that is not escaped.
	placeholder = regexp.MustCompile(`(?:^|[^$])\$\{\{?(\w+)`)
	// literal matches a password in cloud-init's user data.
	literal = regexp.MustCompile(`(?m)^\s*(?:-\s*)?(password|passwd|plain_text_passwd)\s*:\s*(\S.*)$`)
)

func (a *advisor) parameter(p *v1beta1.Parameter, at string) {
	if p.Description == "" && p.DisplayName == "" {
		a.add(RuleUndescribedParam, at, "parameter %s has no description", p.Name)
	}
	secret := secrecy.MatchString(p.Name) && !reference.MatchString(p.Name)
	if secret && !p.Sensitive {
		a.add(RuleNotSensitive, at+".name", "parameter %s is named like a password: with sensitive: true its value does not appear in annotations, denials and logs", p.Name)
	}
	if (secret || p.Sensitive) && p.Value != "" {
		a.add(RuleNotGenerated, at+".value", "the default of %s becomes the password of every VM: generate one, or require it", p.Name)
	}
}

func (a *advisor) name(vm map[string]any) {
	metadata, _ := vm["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	generated, _ := metadata["generateName"].(string)
	switch {
	case name == "" && generated == "":
		a.add(RuleNoName, "spec.virtualMachine.metadata", "the VirtualMachine has no name: write one with a parameter, such as ${NAME}")
	case name != "" && !strings.Contains(name, "${"):
		a.add(RuleFixedName, "spec.virtualMachine.metadata.name", "the name is the same for every VirtualMachine: write it with a parameter, such as ${NAME}")
	}
}

func (a *advisor) runs(vm map[string]any) {
	spec, _ := vm["spec"].(map[string]any)
	_, strategy := spec["runStrategy"]
	_, running := spec["running"]
	switch {
	case running:
		a.add(RuleRunning, "spec.virtualMachine.spec.running", "running is deprecated: write runStrategy, Always for true and Halted for false")
	case !strategy:
		a.add(RuleNoRunStrategy, "spec.virtualMachine.spec", "KubeVirt rejects a VirtualMachine without runStrategy")
	}
}

// walk checks for images and passwords.
func (a *advisor) walk(value any, at string) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			a.walk(item, fmt.Sprintf("%s[%d]", at, i))
		}
	case map[string]any:
		for _, key := range sorted(value) {
			a.member(value[key], key, at+"."+key)
		}
	}
}

func (a *advisor) member(value any, key, at string) {
	text, isText := value.(string)
	switch {
	case !isText:
		a.walk(value, at)
	case key == "image" && (strings.HasSuffix(at, ".containerDisk.image") || strings.HasSuffix(at, ".kernelBoot.container.image")):
		a.image(text, at)
	case key == "url" && strings.HasSuffix(at, ".registry.url"):
		a.image(strings.TrimPrefix(text, "docker://"), at)
	case strings.HasPrefix(key, "userData"), strings.HasPrefix(key, "networkData"):
		a.cloudInit(text, key, at)
	}
}

// cloudInit checks data of cloud-init for passwords.
func (a *advisor) cloudInit(text, key, at string) {
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		i := slices.IndexFunc(a.template.Spec.Parameters, func(p v1beta1.Parameter) bool { return p.Name == found[1] })
		if i >= 0 && a.template.Spec.Parameters[i].Sensitive && !a.template.Spec.Secretize {
			a.add(RuleShownPassword, at, "every user who can read the VirtualMachine can read %s: spec.secretize: true moves it into a Secret", found[1])
			break
		}
	}
	if key == "userData" {
		for _, found := range literal.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(found[2], "${") {
				// The finding must not show the password.
				a.add(RuleLiteralPassword, at, "%s is in the template in plain text: make it a parameter that is sensitive and generated", found[1])
				return
			}
		}
	}
}

func (a *advisor) image(name, at string) {
	if !strings.Contains(name, "@sha256:") && !strings.Contains(name, "${") && name != "" {
		a.add(RuleTag, at, "image %s can become another one: name it by its digest, NAME@sha256:…", name)
	}
}

func sorted(object map[string]any) []string {
	return slices.Sorted(maps.Keys(object))
}
