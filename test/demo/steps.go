package main

import "path/filepath"

const manyMistakes = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: mistaken
  annotations:
    template.kubevirt.io/template-ref: golden/ubuntu
    parameter.template.kubevirt.io/CORES: many
    parameter.template.kubevirt.io/ENVIRONMNT: production
`

const approved = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-2
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
    parameter.template.kubevirt.io/INSTANCETYPE: u1.small
  labels:
    app.kubernetes.io/name: web
spec:
  runStrategy: Always
`

const unapprovedFields = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-3
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
spec:
  template:
    spec:
      nodeSelector:
        disktype: ssd
      volumes:
      - name: tools
        containerDisk:
          image: registry.example.com/tools
`

const unapprovedValue = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-3
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
    parameter.template.kubevirt.io/INSTANCETYPE: u1.8xlarge
`

const untemplated = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: by-hand
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        memory:
          guest: 2Gi
        devices: {}
`

// steps are the tour: what the admin prepares, what ada creates, and what is
// refused to whom, with the message that person sees.
func steps(example func(string) string) []step {
	file := func(path string) string { return filepath.Clean(example(path)) }
	return []step{
		{says: "The admin publishes golden templates and lets team A use them.",
			args: []string{"apply", "-f", file("golden"), "-f", file("access")}},
		{args: []string{"get", "vmt", "--namespace=golden"}},

		{says: "Ada, of team A, writes a name, a template and a size …", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/web-1.yaml")}},
		{says: "… and this is what is stored.", as: "ada",
			args: []string{"get", "vm", "web-1", "--namespace=team-a", "-o", "yaml"}},
		{says: "A generated name; the password is given, used, and not kept as an annotation.", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/runner.yaml"), "-o",
				`jsonpath={.metadata.name}{"\n"}{.metadata.annotations}{"\n"}{.spec.template.spec.volumes[1].cloudInitNoCloud.userData}{"\n"}`}},
		{says: "What Ada writes beside the reference is laid over the template; parameters are checked and typed.", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/database.yaml"), "-o",
				`jsonpath={.metadata.labels}{"\n"}{.spec.template.spec.domain.cpu}{" "}{.spec.template.spec.networks[*].name}{" "}{.spec.template.spec.nodeSelector}{"\n"}`}},
		{says: "The same manifest a second time changes nothing: what GitOps needs.", as: "ada",
			args: []string{"apply", "--server-side", "--namespace=team-a", "-f", file("machines/web-1.yaml")}},
		{as: "ada", args: []string{"apply", "--server-side", "--namespace=team-a", "-f", file("machines/web-1.yaml")}},
		{says: "KubeVirt's own controllers take the machines over.", as: "ada",
			args: []string{"get", "vm", "--namespace=team-a", "-L", "vm.kubevirt.io/template,vm.kubevirt.io/template.revision"}},

		{says: "Refused: every mistake at once, each with its field.", as: "ada", stdin: manyMistakes,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, refused: "CORES"},
		{says: "Refused: a template that does not exist.", as: "ada",
			stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: lost\n  annotations:\n    template.kubevirt.io/template-ref: golden/nowhere\n",
			args:  []string{"create", "--namespace=team-a", "-f", "-"}, refused: "not found"},
		{says: "Refused: another template for a machine that is stored.", as: "ada",
			args:    []string{"annotate", "vm", "web-1", "--namespace=team-a", "--overwrite", "template.kubevirt.io/template-ref=golden/windows"},
			refused: "template-ref"},
		{says: "Eve may create machines in team-a and use no template.",
			args: []string{"create", "rolebinding", "eve", "--namespace=team-a", "--role=machine-owner", "--user=eve"}},
		{as: "eve", args: []string{"create", "--namespace=team-a", "--dry-run=server", "-f", file("machines/web-1.yaml")},
			refused: "may not use it"},
		{says: "Refused: a template that could never be rendered, to its author.",
			stdin: "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nmetadata:\n  name: typo\n  namespace: golden\nspec:\n  parameters:\n  - name: NAME\n  virtualMachine:\n    metadata:\n      name: ${NAMME}\n    spec:\n      runStrategy: Halted\n      template:\n        spec:\n          domain:\n            cpu:\n              coress: 2\n",
			args:  []string{"create", "-f", "-"}, refused: "coress"},

		{says: "Team A's namespace becomes a governed one: the admin approves two templates, some values, and little beside them.",
			args: []string{"apply", "-f", file("approvals/team-a.yaml")}},
		{quiet: true, args: []string{"wait", "namespace/team-a", "--timeout=60s",
			`--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`}},
		{says: "An approved machine is created as before; app.kubernetes.io/name and runStrategy are overrides of the approval.", as: "ada", stdin: approved,
			args: []string{"create", "--namespace=team-a", "-f", "-"}},
		{says: "Refused: fields that nobody approved, each by its path, on a machine from an approved template.", as: "ada", stdin: unapprovedFields,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, refused: "spec.template.spec.nodeSelector"},
		{says: "Refused: a size that nobody approved.", as: "ada", stdin: unapprovedValue,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, refused: "INSTANCETYPE"},
		{says: "Refused: a machine without a template; Ada is told which ones she may use.", as: "ada", stdin: untemplated,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, refused: "you may use: golden/fedora, golden/ubuntu"},
	}
}
