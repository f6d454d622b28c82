package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

const (
	container = "mover"
	// moverUser is the user of the mover's process, that of QEMU in KubeVirt's images.
	moverUser = 107
	// moverRestarts is how often a mover that ends early is started again.
	moverRestarts = 5
	// annotationTemplateVersion on the Job of an export is the version of the template, as versionOf returns it.
	annotationTemplateVersion = "template.kubevirt.io/template-version"
)

// owner is the import, export or request to which objects belong.
type owner struct {
	kind, namespace, name string
	uid                   types.UID
}

// called returns the name of an object of the transfer, with at most 63 characters.
func (o owner) called(suffix string) string { return "transfer-" + string(o.uid) + suffix }

func (o owner) metadata(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.namespace, Name: name, Labels: o.labels(),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: o.kind, Name: o.name, UID: o.uid}},
	}
}

func (o owner) labels() map[string]string {
	return map[string]string{v1beta1.LabelTransferUID: string(o.uid)}
}

// job are the parts of a mover's Job that differ.
type job struct {
	// template is the version of the template that is exported; empty if there is none.
	template string
	// secret is the name of the Secret with the task, digest that of the task.
	secret, digest string
	disks          []jobDisk
	// credentials and authorities are the names of a Secret and a ConfigMap of the user; empty if there are none.
	credentials, authorities string
	// source is the claim that an import reads, result that to which an export or a received package is written.
	source, result string
}

// jobDisk is a claim with a disk.
type jobDisk struct {
	name, claim string
	block       bool
	readOnly    bool
}

// secret returns the Secret with the task and the identity of a mover, and the digest of the task, which the mover verifies: users may be permitted to
// change Secrets of their namespace.
func (o owner) secret(name string, task *transfer.Task, who *identity) (*corev1.Secret, string, error) {
	raw, err := json.Marshal(task)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the task of the mover: %w", err)
	}
	sum := sha256.Sum256(raw)
	return &corev1.Secret{ObjectMeta: o.metadata(name), Immutable: new(true), Data: map[string][]byte{
		transfer.TaskFile: raw, transfer.TokenFile: []byte(who.token), transfer.CertificateFile: who.certificate, transfer.KeyFile: who.key,
	}}, "sha256:" + hex.EncodeToString(sum[:]), nil
}

// job returns the Job of a mover.
func (o owner) job(name string, j job, settings *Settings) *batchv1.Job {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(moverUser)), RunAsGroup: new(int64(moverUser)), FSGroup: new(int64(moverUser)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: settings.Image, ImagePullPolicy: settings.PullPolicy,
			Args:  []string{"--task-digest=" + j.digest},
			Env:   []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
			Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: transfer.Port, Protocol: corev1.ProtocolTCP}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources: settings.Resources, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}},
		ImagePullSecrets: settings.PullSecrets,
	}
	one := &pod.Containers[0]
	mount := func(name, path string, readOnly bool, source corev1.VolumeSource) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		one.VolumeMounts = append(one.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	claim := func(name string, readOnly bool) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: readOnly}}
	}
	mount("task", transfer.TaskFolder, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: j.secret}})
	if j.credentials != "" {
		mount("credentials", transfer.CredentialsFolder, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: j.credentials}})
	}
	if j.authorities != "" {
		mount("authorities", transfer.AuthoritiesFolder, true, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: j.authorities},
		}})
	}
	if j.source != "" {
		mount("source", transfer.SourceFolder, true, claim(j.source, true))
	}
	if j.result != "" {
		mount("result", transfer.ResultFolder, false, claim(j.result, false))
	}
	for i, each := range j.disks {
		volume, path := fmt.Sprintf("disk-%d", i), transfer.DisksFolder+"/"+each.name
		if each.block {
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: claim(each.claim, each.readOnly)})
			one.VolumeDevices = append(one.VolumeDevices, corev1.VolumeDevice{Name: volume, DevicePath: path})
			continue
		}
		mount(volume, path, each.readOnly, claim(each.claim, each.readOnly))
	}
	metadata := o.metadata(name)
	if j.template != "" {
		metadata.Annotations = map[string]string{annotationTemplateVersion: j.template}
	}
	return &batchv1.Job{ObjectMeta: metadata, Spec: batchv1.JobSpec{
		BackoffLimit: new(int32(moverRestarts)), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: o.labels()}, Spec: pod},
	}}
}

// networkPolicy returns the NetworkPolicy of the movers of a transfer. They accept connections of the manager, and those that serve or receive a package all
// at its port. They connect to name servers, to public addresses and to the networks that are allowed.
func (o owner) networkPolicy(serves bool, settings *Settings) *networkingv1.NetworkPolicy {
	port := []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(transfer.Port))}}
	ingress := networkingv1.NetworkPolicyIngressRule{Ports: port}
	if !serves {
		ingress.From = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: settings.Namespace}}}}
	}
	egress := []networkingv1.NetworkPolicyEgressRule{}
	if !serves {
		dns := intstr.FromInt32(53)
		egress = append(egress,
			networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{
				{Protocol: new(corev1.ProtocolUDP), Port: &dns}, {Protocol: new(corev1.ProtocolTCP), Port: &dns},
			}},
			networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{
				{IPBlock: &networkingv1.IPBlock{CIDR: all4.String(), Except: slices.Concat(private4, settings.except(all4))}},
				{IPBlock: &networkingv1.IPBlock{CIDR: all6.String(), Except: slices.Concat(private6, settings.except(all6))}},
			}},
		)
		for _, network := range settings.AllowedNetworks {
			egress = append(egress, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: network.String(), Except: settings.except(network)}}}})
		}
	}
	return &networkingv1.NetworkPolicy{ObjectMeta: o.metadata(o.called("")), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: o.labels()},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{ingress}, Egress: egress,
	}}
}

// The private networks that NetworkPolicies of movers except. The mover itself checks each address too.
var (
	all4, all6 = netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")

	private4 = []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "240.0.0.0/4",
	}
	private6 = []string{"fc00::/7", "fe80::/10"}
)

// Settings are what the installation determines.
type Settings struct {
	// Namespace of the manager.
	Namespace string
	// Image of stencil-mover. If it is empty, nothing is transferred.
	Image       string
	PullPolicy  corev1.PullPolicy
	PullSecrets []corev1.LocalObjectReference
	Resources   corev1.ResourceRequirements
	// AllowedNetworks are private networks that imports may read from, and exports write to.
	AllowedNetworks []netip.Prefix
	// ClusterNetworks are networks of the cluster, which movers do not connect to.
	ClusterNetworks []netip.Prefix
	// MaxDisks and MaxBytes limit an import.
	MaxDisks int
	MaxBytes int64
	// Limit is how many imports, exports and examinations may be in progress at a time.
	Limit int
	// LimitPerNamespace is how many of them may be in progress at a time in one namespace.
	LimitPerNamespace int
	// Ingress is how movers are reached from outside of the cluster.
	Ingress IngressSettings
	// ExamineCaptures has the disks of captured templates examined.
	ExamineCaptures bool
}

// restrict sets the networks in the task of a mover.
func (s *Settings) restrict(task *transfer.Task) {
	task.AllowedNetworks, task.ClusterNetworks = texts(s.AllowedNetworks), texts(s.ClusterNetworks)
}

func texts(networks []netip.Prefix) (texts []string) {
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return texts
}

// except returns the networks of the cluster within a network.
func (s *Settings) except(within netip.Prefix) (texts []string) {
	for _, network := range s.ClusterNetworks {
		if network.Bits() > within.Bits() && within.Contains(network.Addr()) {
			texts = append(texts, network.String())
		}
	}
	return texts
}

// claim returns a PersistentVolumeClaim.
func (o owner) claim(name string, size int64, class string, modes []corev1.PersistentVolumeAccessMode, mode *corev1.PersistentVolumeMode) *corev1.PersistentVolumeClaim {
	made := &corev1.PersistentVolumeClaim{ObjectMeta: o.metadata(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, VolumeMode: mode,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}},
	}}
	if class != "" {
		made.Spec.StorageClassName = &class
	}
	return made
}
