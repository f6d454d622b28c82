package identity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/identity"
)

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	return fixture.VM(t, fixture.JSON(t, text))
}

func strip(vm map[string]any) identity.Report {
	return identity.Of(vm, func(parts ...string) any { return strings.Join(parts, "${NAME}") }).Strip(vm)
}

// field is a VirtualMachine that a network plugin, Harvester and a backup tool have marked, with data for the guest that no rule can change.
const field = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: parent1
  namespace: field
  uid: 6c1f7a52-0a57-4a7e-8a3c-000000000001
  resourceVersion: "7"
  labels: {velero.io/restore-name: r1, app: parent1, tier: web}
  annotations: {harvesterhci.io/mac-address: '{"default":"02:00:00:12:34:56"}', console: https://console.example/vm/parent1, note: The first of its kind}
spec:
  runStrategy: Halted
  template:
    metadata:
      creationTimestamp: null
      labels: {kubevirt.io/vm: parent1}
      annotations:
        ovn.kubernetes.io/ip_address: 192.0.2.15
        ovn.kubernetes.io/mac_address: "02:00:00:53:6B:B6"
        ovn.kubernetes.io/logical_switch: green
        cni.projectcalico.org/ipAddrs: '["192.0.2.16"]'
    spec:
      hostname: parent1
      nodeSelector: {kubernetes.io/hostname: node-3, disk: ssd}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {kubevirt.io/vm: parent1}}, topologyKey: kubernetes.io/hostname}]
      domain:
        chassis: {serial: S, asset: A, sku: K}
        firmware: {uuid: 6c1f7a52-0a57-4a7e-8a3c-000000000002, serial: F}
        devices:
          disks: [{name: root, serial: D, disk: {bus: virtio}}, {name: init}]
          interfaces: [{name: default, macAddress: "02:00:00:12:34:56", masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, containerDisk: {image: quay.io/containerdisks/fedora}}
      - name: init
        cloudInitNoCloud:
          userData: "#cloud-config\nhostname: parent1\n"
          networkData: "version: 2\nethernets: {eth0: {match: {macaddress: '02:00:00:12:34:56'}, addresses: [192.0.2.7/24]}}\n"
`

func TestWhatIdentifiesOneVMIsRemovedAndTheRestIsReported(t *testing.T) {
	vm := read(t, field)
	report := strip(vm)
	want := read(t, `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: ${NAME}
  labels: {app: "${NAME}", tier: web}
  annotations: {console: "https://console.example/vm/${NAME}", note: The first of its kind}
spec:
  runStrategy: Halted
  template:
    metadata:
      labels: {kubevirt.io/vm: "${NAME}"}
      annotations: {ovn.kubernetes.io/logical_switch: green}
    spec:
      nodeSelector: {disk: ssd}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {kubevirt.io/vm: "${NAME}"}}, topologyKey: kubernetes.io/hostname}]
      domain:
        chassis: {sku: K}
        devices:
          disks: [{name: root, disk: {bus: virtio}}, {name: init}]
          interfaces: [{name: default, masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, containerDisk: {image: quay.io/containerdisks/fedora}}
      - name: init
        cloudInitNoCloud:
          userData: "#cloud-config\nhostname: parent1\n"
          networkData: "version: 2\nethernets: {eth0: {match: {macaddress: '02:00:00:12:34:56'}, addresses: [192.0.2.7/24]}}\n"
`)
	if diff := cmp.Diff(want, vm); diff != "" {
		t.Errorf("the VirtualMachine (-want +got):\n%s", diff)
	}
	const devices, guest = "spec.template.spec.domain.devices.", "spec.template.spec."
	wantReport := identity.Report{
		Removed: []string{
			"metadata.labels[velero.io/restore-name] (written for one VM)",
			"metadata.annotations[harvesterhci.io/mac-address] (written for one VM)",
			"spec.template.metadata.annotations[cni.projectcalico.org/ipAddrs] (written for one VM)",
			"spec.template.metadata.annotations[ovn.kubernetes.io/ip_address] (written for one VM)",
			"spec.template.metadata.annotations[ovn.kubernetes.io/mac_address] (written for one VM)",
			guest + "hostname", guest + "domain.firmware.uuid", guest + "domain.firmware.serial", guest + "domain.chassis.serial", guest + "domain.chassis.asset",
			devices + "disks[0].serial", devices + "interfaces[0].macAddress",
			guest + "nodeSelector[kubernetes.io/hostname] (its host)",
		},
		Renamed: []string{
			"metadata.labels[app]", "metadata.annotations[console]", "spec.template.metadata.labels[kubevirt.io/vm]",
			guest + "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels.kubevirt.io/vm",
		},
		Kept: []string{
			guest + "volumes[1].cloudInitNoCloud.userData (hostname)",
			guest + "volumes[1].cloudInitNoCloud.networkData (ethernets.eth0.addresses: a static address)",
			guest + "volumes[1].cloudInitNoCloud.networkData (a MAC address)",
		},
	}
	if diff := cmp.Diff(wantReport, report); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}
}

func TestRulesForLabelsAndAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		// want is the annotation in the template; empty if it has none.
		want string
		// report is the entry about it, with a prefix.
		report string
	}{
		"text that says nothing about the VM stays":        {"team: payments", "payments", ""},
		"a value that only begins like the name stays":     {"team: parent10", "parent10", ""},
		"the name becomes the parameter":                   {"app: parent1", "${NAME}", "renamed"},
		"the name in a domain name becomes the parameter":  {"dns: parent1.field.example", "${NAME}.field.example", "renamed"},
		"the name in a text is reported":                   {"about: 'Do not delete parent1, it is in use'", "Do not delete parent1, it is in use", "kept: the name of the VM"},
		"the UID is left out":                              {"owner: id-of:6C1F7A52-0a57-4a7e-8a3c-000000000001", "", "removed: its UID"},
		"the host is left out":                             {"last: node-3", "", "removed: its host"},
		"the MAC address is left out":                      {"nic: 'eth0 02:00:00:12:34:56'", "", "removed: a MAC address"},
		"an address of network data is left out":           {"ip: 'reserved 192.0.2.7 in the IPAM'", "", "removed: an IP address"},
		"an address of a network plugin is left out":       {"ip: reserved 192.0.2.15", "", "removed: an IP address"},
		"a value that is an address is left out":           {"ip: 2001:db8::7/64", "", "removed: an address"},
		"a list of addresses is left out":                  {`ips: '["192.0.2.30", "192.0.2.31"]'`, "", "removed: an address"},
		"an address of another host is reported":           {"ntp: server 192.0.2.99 iburst", "server 192.0.2.99 iburst", "kept: an address"},
		"addresses that all have are none":                 {"listen: 0.0.0.0 127.0.0.1 255.255.255.0", "0.0.0.0 127.0.0.1 255.255.255.0", ""},
		"a setting of KubeVirt with the address is kept":   {"kubevirt.io/ignitiondata: '{\"ip\": \"192.0.2.7\"}'", `{"ip": "192.0.2.7"}`, "kept: an address or the UID"},
		"networks that a user requests stay":               {"k8s.v1.cni.cncf.io/networks: net/lan", "net/lan", ""},
		"what Multus reports is left out":                  {"k8s.v1.cni.cncf.io/network-status: '[]'", "", "removed: state of a controller"},
		"the domain of a provider of a network plugin":     {"lan.net.ovn.kubernetes.io/ip_address: x", "", "removed: written for one VM"},
		"a domain that only ends like one of a plugin's":   {"notvelero.io/x: yes!", "yes!", ""},
		"the name under a domain of a cloud stays a label": {"harvesterhci.io/vmName: parent1", "${NAME}", "renamed"},
		"the name under a key of GitOps is left out":       {"argocd.argoproj.io/instance: parent1", "", "removed: state of a controller"},
	} {
		t.Run(name, func(t *testing.T) {
			key, _, _ := strings.Cut(tc.annotation, ": ")
			vm := read(t, strings.Replace(field, "annotations: {harvesterhci", "annotations: {"+tc.annotation+", harvesterhci", 1))
			report := strip(vm)
			annotations := vm["metadata"].(map[string]any)["annotations"].(map[string]any)
			if got, _ := annotations[key].(string); got != tc.want {
				t.Errorf("the annotation is %q, want %q", got, tc.want)
			}
			path := "metadata.annotations[" + key + "]"
			var got string
			for kind, lines := range map[string][]string{"removed": report.Removed, "renamed": report.Renamed, "kept": report.Kept} {
				for _, line := range lines {
					if why, found := strings.CutPrefix(line, path); found {
						got = strings.TrimSuffix(strings.Replace(kind+why, " (", ": ", 1), ")")
					}
				}
			}
			if got != tc.report {
				t.Errorf("reported is %q, want %q", got, tc.report)
			}
		})
	}
}

func TestDataForTheGuestIsReported(t *testing.T) {
	const noCloud = "spec.template.spec.volumes[0].cloudInitNoCloud."
	for name, tc := range map[string]struct {
		data string
		want []string
	}{
		"a script with the name":         {`userData: "#!/bin/sh\nhostnamectl set-hostname parent1\n"`, []string{noCloud + "userData (the name of the VM)"}},
		"a full name":                    {`userData: "#cloud-config\nfqdn: a.example\n"`, []string{noCloud + "userData (fqdn)"}},
		"the MAC address in a file":      {`userData: "#cloud-config\nwrite_files: [{path: /x, content: 'HWADDR=02:00:00:12:34:56'}]\n"`, []string{noCloud + "userData (a MAC address)"}},
		"encoded in base64":              {`networkDataBase64: dmVyc2lvbjogMgpldGhlcm5ldHM6IHtlOiB7YWRkcmVzc2VzOiBbMTkyLjAuMi45LzI0XX19Cg==`, []string{noCloud + "networkDataBase64 (ethernets.e.addresses: a static address)"}},
		"version 1":                      {`networkData: "version: 1\nconfig: [{type: physical, name: e, subnets: [{type: static, address: 192.0.2.8/24}]}, {type: nameserver, address: 192.0.2.1}]\n"`, []string{noCloud + "networkData (config[0].subnets[0].address: a static address)"}},
		"name servers and routes":        {`networkData: "version: 2\nethernets: {e: {dhcp4: true, nameservers: {addresses: [192.0.2.1]}, routes: [{to: default, via: 192.0.2.254}]}}\n"`, nil},
		"nothing":                        {`userData: "#cloud-config\npackages: [nginx]\n"`, nil},
		"a document that is no document": {`networkData: "{"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			vm := read(t, `{metadata: {name: parent1}, spec: {template: {spec: {domain: {devices: {interfaces: [{name: a, macAddress: "02:00:00:12:34:56"}]}}, volumes: [{name: i, cloudInitNoCloud: {}}]}}}}`)
			volume := vm["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)[0].(map[string]any)
			volume["cloudInitNoCloud"] = read(t, tc.data)
			if diff := cmp.Diff(tc.want, strip(vm).Kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAffinityToHostsIsReported(t *testing.T) {
	report := strip(read(t, `{metadata: {name: a}, spec: {template: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-3]}]}]}}}}}}}`))
	const want = "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0] (hosts)"
	if !slices.Equal(report.Kept, []string{want}) {
		t.Errorf("kept %q, want %q", report.Kept, want)
	}
}

func TestAVMWithoutAnythingIsStripped(t *testing.T) {
	vm := map[string]any{}
	if report := strip(vm); report.Removed != nil || report.Kept != nil {
		t.Errorf("the report is %+v", report)
	}
}
