package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/vmstencil/stencil/test/images"
)

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

const laidOutVM = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web-4
  annotations:
    template.kubevirt.io/template-ref: golden/ubuntu
    parameter.template.kubevirt.io/SSH_KEY: ssh-ed25519 AAAA ada
`

// workbench is a VM that a user has set up by hand; its disk contains what was installed on it.
const workbench = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: workbench
spec:
  runStrategy: Halted
  dataVolumeTemplates:
  - metadata: {name: workbench}
    spec:
      source: {blank: {}}
      storage: {resources: {requests: {storage: 1Gi}}}
  template:
    spec:
      hostname: workbench
      domain:
        memory: {guest: 2Gi}
        devices: {}
      volumes:
      - {name: root, dataVolume: {name: workbench}}
      - name: init
        cloudInitNoCloud:
          userData: |
            #cloud-config
            password: hunter2
            runcmd: ["echo ${HOME}"]
`

// goldenImage is the image of the template golden/fedora, in the registry of this address.
const goldenImage = `apiVersion: stencil.kubevirt.io/v1alpha1
kind: GoldenImage
metadata:
  name: fedora
spec:
  source:
    registry:
      url: %s/containerdisks/fedora
      tags: {semver: ">=43 <44"}
  storage: {size: 1Gi}
  staleAfter: 720h
  defaults: {preference: fedora}
  channels:
  - name: stable
    promote: {manual: true}
`

// desk is a VM whose user data are in a Secret.
const desk = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: desk
  annotations:
    template.kubevirt.io/template-ref: golden/login
`

// shop is a VM whose template has a Secret and a Service.
const shop = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: shop
  annotations:
    template.kubevirt.io/template-ref: golden/web
`

// borrower is a VM whose user names another claim of the namespace of its template.
const borrower = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: borrower
  annotations:
    template.kubevirt.io/template-ref: golden/fedora
spec:
  dataVolumeTemplates:
  - metadata: {name: borrower}
    spec:
      source: {pvc: {namespace: golden, name: payroll}}
      storage: {resources: {requests: {storage: 30Gi}}}
`

const capture = `apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplateRequest
metadata:
  name: workbench
spec:
  virtualMachineRef: {namespace: workshop, name: workbench}
  secrets: Parameterize
`

const captured = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: bench-1
  annotations:
    template.kubevirt.io/template-ref: workbench
`

// subresources is the path of the golden templates in the aggregated API.
const subresources = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/"

// templateSteps are the first part of the tour: what the admin prepares, what ada creates, and what is denied, with the message that the user sees.
// KubeVirt is not there yet.
func templateSteps(example func(string) string, defaulted bool) []step {
	file := func(path string) string { return filepath.Clean(example(path)) }
	copies := []string{"get", "controllerrevisions", "--namespace=attic", "--selector=!stencil.kubevirt.io/revision-backup", "-o",
		"custom-columns=NAME:.metadata.name,VERSION:.data.apiVersion,KIND:.data.kind,CPUS:.data.spec.cpu.guest"}
	all := []step{
		{chapter: "first", text: "The admin publishes golden templates and lets team A use them.",
			args: []string{"apply", "-f", file("golden"), "-f", file("access")}},
		{args: []string{"get", "vmt", "--namespace=golden"}},

		{text: "Ada, of team A, writes a name, a template and a size …", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/web-1.yaml")}, timed: "The first VM was created from a template"},
		{chapter: "templates", text: "… and this is what is stored.", as: "ada",
			args: []string{"get", "vm", "web-1", "--namespace=team-a", "-o", "yaml"}},
		{text: "A generated name; the password is given, used, and not kept as an annotation.", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/runner.yaml"), "-o",
				`jsonpath={.metadata.name}{"\n"}{.metadata.annotations}{"\n"}{.spec.template.spec.volumes[1].cloudInitNoCloud.userData}{"\n"}`}},
		{text: "What Ada writes beside the reference is laid over the template; parameters are checked and typed.", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/database.yaml"), "-o",
				`jsonpath={.metadata.labels}{"\n"}{.spec.template.spec.domain.cpu}{" "}{.spec.template.spec.networks[*].name}{" "}{.spec.template.spec.nodeSelector}{"\n"}`}},
		{text: "The same manifest a second time changes nothing: what GitOps needs.", as: "ada",
			args: []string{"apply", "--server-side", "--namespace=team-a", "-f", file("machines/web-1.yaml")}},
		{as: "ada", args: []string{"apply", "--server-side", "--namespace=team-a", "-f", file("machines/web-1.yaml")}},
		{text: "An override says what it covers …", as: "ada",
			args: []string{"patch", "vm", "web-1", "--namespace=team-a", "--type=merge", "--patch", `{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}`,
				"-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/overrides}{"\n"}`}},
		{text: "… and removed, it leaves the template's value.", as: "ada",
			args: []string{"patch", "vm", "web-1", "--namespace=team-a", "--type=merge", "--patch", `{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": null}}}}`,
				"-o", `jsonpath={.spec.template.spec.terminationGracePeriodSeconds}{"\n"}`}},

		{text: "Parameters that the template declares mutable change on a stored VM.", as: "ada",
			args: []string{"annotate", "vm", "database", "--namespace=team-a", "--overwrite", "parameter.template.kubevirt.io/CORES=8",
				"-o", `jsonpath={.spec.template.spec.domain.cpu}{"\n"}`}},

		{text: "Refused: every mistake at once, each with its field.", as: "ada", stdin: manyMistakes,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, wantDenied: "CORES"},
		{text: "Refused: a template that does not exist.", as: "ada",
			stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: lost\n  annotations:\n    template.kubevirt.io/template-ref: golden/nowhere\n",
			args:  []string{"create", "--namespace=team-a", "-f", "-"}, wantDenied: "not found"},
		{text: "Refused: another template for a VM that is stored.", as: "ada",
			args:       []string{"annotate", "vm", "web-1", "--namespace=team-a", "--overwrite", "template.kubevirt.io/template-ref=golden/windows"},
			wantDenied: "template-ref"},
		{text: "Eve may create VMs in team-a and use no template.",
			args: []string{"create", "rolebinding", "eve", "--namespace=team-a", "--role=machine-owner", "--user=eve"}},
		{as: "eve", args: []string{"create", "--namespace=team-a", "--dry-run=server", "-f", file("machines/web-1.yaml")},
			wantDenied: "may not use it"},
		{text: "Refused: a template that could never be rendered, to its author.",
			stdin: "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nmetadata:\n  name: typo\n  namespace: golden\nspec:\n  parameters:\n  - name: NAME\n  virtualMachine:\n    metadata:\n      name: ${NAMME}\n    spec:\n      runStrategy: Halted\n      template:\n        spec:\n          domain:\n            cpu:\n              coress: 2\n",
			args:  []string{"create", "-f", "-"}, wantDenied: "coress"},

		{chapter: "process", text: "Bob has no right on VMs and none on templates; the admin lets him process templates, and create VMs from fedora in team-a.",
			args: []string{"apply", "-f", file("process")}},
		{text: "Processed: what the template makes, with nothing stored. virtctl template process asks the same way.", as: "bob", stdin: "parameters: {NAME: probe, INSTANCETYPE: u1.large}",
			laidOut: true, args: []string{"create", "--raw", subresources + "fedora/process", "-f", "-"}},
		{text: "Created for Bob, who may not create VMs himself …", as: "bob", stdin: "parameters: {NAME: bobs, INSTANCETYPE: u1.small}\ntargetNamespace: team-a",
			quiet: true, args: []string{"create", "--raw", subresources + "fedora/create", "-f", "-"}},
		{text: "… which the VM tells.",
			args: []string{"get", "vm", "bobs", "--namespace=team-a", "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/created-by}{" has "}{.spec.instancetype.name}{"\n"}`}},
		{text: "Refused: another template than the one that Bob was given.", as: "bob", stdin: "parameters: {NAME: other}",
			args: []string{"create", "--raw", subresources + "ubuntu/create", "-f", "-"}, wantDenied: "forbidden"},

		{chapter: "revisions", text: "Three VMs of an older KubeVirt. The copies of their instance types have versions that KubeVirt does not read any more.", quiet: true,
			args: []string{"apply", "-f", file("revisions/attic.yaml")}},
		{args: copies},
		{text: "Each is replaced under its name, with the same content. stencilctl revisions apply does this, too.",
			args: []string{"patch", "revisionmigration", "instancetypes", "--type=merge", "--patch", `{"spec": {"mode": "Apply"}}`}},
		{holds: "3 migrated, no old version left: True", args: []string{"get", "revisionmigration", "instancetypes", "-o",
			`jsonpath={.status.migrated} migrated, no old version left: {.status.conditions[?(@.type=="NoOldVersions")].status}{"\n"}`}},
		{args: copies},
		{quiet: true, args: []string{"patch", "revisionmigration", "instancetypes", "--type=merge", "--patch", `{"spec": {"mode": "Report"}}`}},
	}
	if defaulted {
		// The other steps show VMs without defaults, to be the same everywhere.
		all = slices.Insert(all, 1, step{quiet: true, args: []string{"label", "namespace", "team-a", skipDefaults + "=true"}})
	}
	return all
}

// virtualizationSteps are the second part, with KubeVirt and CDI.
func virtualizationSteps(example func(string) string, registry *images.Registry) ([]step, error) {
	first, err := registry.Push("containerdisks/fedora", "43.0")
	if err != nil {
		return nil, err
	}
	newer := func() error {
		_, err := registry.Push("containerdisks/fedora", "43.1")
		return err
	}
	file := func(path string) string { return filepath.Clean(example(path)) }
	all := []step{
		{chapter: "images", text: "KubeVirt's own controllers take over the VMs that were created before.", as: "ada", holds: "Stopped",
			args: []string{"get", "vm", "--namespace=team-a", "-L", "vm.kubevirt.io/template,vm.kubevirt.io/template.revision"}},

		{text: "The golden image: the newest tag of a registry is imported by CDI, and DataSource fedora stands for it.", stdin: fmt.Sprintf(goldenImage, registry.Address()),
			args: []string{"create", "--namespace=golden", "-f", "-"}},
		{holds: "Latest", args: []string{"get", "goldenimage", "fedora", "--namespace=golden"}},
		{text: "Ada may use the template, and has no other permission in its namespace: the template lends her VM a copy of the image.", holds: "Succeeded",
			args: []string{"get", "datavolume", "web-1", "--namespace=team-a"}},
		{text: "A month later the image would be stale (here after a second), which its template says …",
			args: []string{"patch", "goldenimage", "fedora", "--namespace=golden", "--type=merge", "-p", `{"spec": {"staleAfter": "1s"}}`}},
		{holds: "a newer one was due by", args: []string{"get", "virtualmachinetemplate", "fedora", "--namespace=golden", "-o", `jsonpath={.status.conditions[?(@.type=="BootSourceStale")].message}{"\n"}`}},
		{text: "… until there is a newer one. It is found at its time of the schedule, or on demand.", does: newer,
			args: []string{"annotate", "goldenimage", "fedora", "--namespace=golden", "stencil.kubevirt.io/refresh=now"}},
		{quiet: true, args: []string{"patch", "goldenimage", "fedora", "--namespace=golden", "--type=merge", "-p", `{"spec": {"staleAfter": "720h"}}`}},
		{holds: "43.1", args: []string{"get", "goldenimage", "fedora", "--namespace=golden"}},
		{text: "Channel stable stands for the older image until somebody promotes the newer one.", holds: "fedora-stable",
			args: []string{"get", "goldenimage", "fedora", "--namespace=golden", "-o", `jsonpath={range .status.channels[*]}{.dataSource} stands for {.digest}, next {.next}{"\n"}{end}`}},
		{text: "Back to the image before: nothing is imported again, and VMs that were made keep the image that they have.",
			args: []string{"patch", "goldenimage", "fedora", "--namespace=golden", "--type=merge", "-p", `{"spec": {"digest": "` + first + `"}}`}},
		{holds: "Pinned", args: []string{"get", "goldenimage", "fedora", "--namespace=golden"}},

		{text: "Nothing else of that namespace is lent: a VM that names another source there gets no disk.", as: "ada", stdin: borrower,
			args: []string{"create", "--namespace=team-a", "-f", "-"}},
		{holds: "does not name PersistentVolumeClaim golden/payroll",
			args: []string{"get", "events", "--namespace=team-a", "--field-selector=reason=DiskNotLent", "-o", `jsonpath={.items[*].message}{"\n"}`}},

		{chapter: "objects", text: "A template may have more than a VM: a Secret with a generated password, and a Service.",
			args: []string{"apply", "--namespace=golden", "-f", file("objects/web.yaml")}},
		{text: "Refused: the template gives nobody more than they may create themselves.", as: "ada", stdin: shop,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, wantDenied: "may not create secrets"},
		{text: "With the role edit they come with the VM …", args: []string{"create", "rolebinding", "ada-edits", "--namespace=team-a", "--clusterrole=edit", "--user=ada"}},
		// A denial of the API server's authorizer is valid for two seconds.
		{as: "ada", stdin: shop, holds: "created", args: []string{"create", "--namespace=team-a", "-f", "-"}},
		{text: "… before it starts, and they go with it. The password is in the Secret, and nowhere else.", as: "ada", holds: "service/shop",
			args: []string{"get", "secrets,services", "--namespace=team-a", "-l", "app.kubernetes.io/instance=shop", "-o", "name"}},
		{text: "With secretize, a template needs no Secret of its own: its user data, which has a password, come into one that belongs to the VM.",
			args: []string{"apply", "--namespace=golden", "-f", file("objects/login.yaml")}},
		{as: "ada", stdin: desk, holds: "created", args: []string{"create", "--namespace=team-a", "-f", "-"}},
		{as: "ada", holds: "desk-cloudinit", args: []string{"get", "secret/desk-cloudinit", "vm/desk", "--namespace=team-a", "-o",
			`jsonpath={range .items[*]}{.kind} {.metadata.name}{" "}{.spec.template.spec.volumes[*].cloudInitNoCloud}{"\n"}{end}`}},

		{chapter: "policies", text: "A policy in Rego: VMs of team A have owners, and large ones are pointed out. It was compiled, type-checked and tested before it is in force.",
			args: []string{"apply", "-f", file("policies/owners.yaml")}},
		{quiet: true, args: []string{"wait", "vmpol/owners", "--for=condition=Active", "--timeout=60s"}},
		{text: "Refused: a VM without an owner, whatever it comes from.", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("machines/runner.yaml")}, wantDenied: "policy owners (medium): the machine has no owner"},
		{text: "Previewed: what approvals, policies and everybody else would say if Bob created this VM now.", as: "bob",
			stdin:   "parameters: {NAME: probe, INSTANCETYPE: u1.large}\ntargetNamespace: team-a\nexplain: true",
			laidOut: true, part: "decisions", holds: `"policy":"owners"`, args: []string{"create", "--raw", subresources + "fedora/process", "-f", "-"}},
		{text: "Warned: a VM that is large by its instance type.", as: "ada",
			args: []string{"create", "--namespace=team-a", "-f", file("policies/large.yaml")}},
		{text: "Refused: a policy with a misspelt field, which would never find anything.",
			args: []string{"apply", "-f", file("policies/mistaken.yaml")}, wantDenied: "did you mean cores"},
		{quiet: true, args: []string{"delete", "vmpol", "owners"}},

		{chapter: "approvals", text: "Team A's namespace becomes a governed one: the admin approves two templates, some values, and little beside them.",
			args: []string{"apply", "-f", file("approvals/team-a.yaml")}},
		{quiet: true, args: []string{"wait", "namespace/team-a", "--timeout=60s",
			`--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`}},
		{text: "An approved VM is created as before; app.kubernetes.io/name and runStrategy are overrides of the approval.", as: "ada", stdin: approved,
			args: []string{"create", "--namespace=team-a", "-f", "-"}},
		{text: "Refused: fields that nobody approved, each by its path, on a VM from an approved template.", as: "ada", stdin: unapprovedFields,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, wantDenied: "spec.template.spec.nodeSelector"},
		{text: "Refused: a size that nobody approved.", as: "ada", stdin: unapprovedValue,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, wantDenied: "INSTANCETYPE"},
		{text: "Refused: a VM without a template; Ada is told which ones she may use.", as: "ada", stdin: untemplated,
			args: []string{"create", "--namespace=team-a", "-f", "-"}, wantDenied: "you may use: golden/fedora, golden/ubuntu"},
	}
	return append(all, captureSteps()...), nil
}

// captureSteps make a template of a VM.
func captureSteps() []step {
	return []step{
		{chapter: "capture", quiet: true, args: []string{"create", "namespace", "workshop"}},
		{text: "A VM that somebody has set up by hand becomes a template: its disk is copied, and the password in it becomes a parameter.", stdin: workbench,
			args: []string{"create", "--namespace=workshop", "-f", "-"}},
		{quiet: true, holds: "Succeeded", args: []string{"get", "datavolume", "workbench", "--namespace=workshop"}},
		{stdin: capture, args: []string{"create", "--namespace=workshop", "-f", "-"}},
		{args: []string{"wait", "vmtr/workbench", "--namespace=workshop", "--for=condition=Ready", "--timeout=120s"}},
		{args: []string{"get", "vmtr,vmt,datavolume", "--namespace=workshop"}},
		{text: "What stood in dollar signs there still does, and the password is a new one.", stdin: captured,
			args: []string{"create", "--namespace=workshop", "-f", "-", "-o", `jsonpath={.spec.template.spec.volumes[?(@.name=="init")].cloudInitNoCloud.userData}{"\n"}`}},
	}
}

const skipDefaults = "defaults.template.kubevirt.io/skip"

// guestSteps show what a defaulter adds.
func guestSteps() []step {
	create := []string{"create", "--namespace=team-a", "--dry-run=server", "-f", "-", "-o"}
	dryRun := append(slices.Clone(create), "jsonpath={.spec.template.spec.domain}")
	return []step{
		{chapter: guestChapter, text: "So far team A was left alone by what fills in what guests see: machine type, PCI addresses and the like are decided on some node.", as: "ada", stdin: laidOutVM,
			laidOut: true, args: dryRun},
		{text: "Now a real libvirt lays the same VM out before it is stored.",
			args: []string{"label", "namespace", "team-a", skipDefaults + "-"}},
		{text: "What is different (KubeVirt draws the numbers of the firmware for each VM):", as: "ada", stdin: laidOutVM,
			holds: "pciAddress", laidOut: true, compared: true, args: dryRun},
		{text: "A guest of this VM, which QEMU emulates here, on disks and networks that hold nothing, prints what it sees.", as: "ada", stdin: laidOutVM,
			booted: true, args: append(slices.Clone(create), "json")},
	}
}
