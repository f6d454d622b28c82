package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

// kubeletConfig is a KubeletConfiguration: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/.
func (c Config) kubeletConfig(plane *controlplane.Plane, resolve string) map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": filepath.Join(plane.Dir(), "pki", "clients-ca.crt")},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"address":                  Address,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + c.group(),
		"cgroupsPerQOS":            true,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"containerRuntimeEndpoint": "unix://" + runtimeSocket,
		"resolvConf":               resolve,
		"clusterDNS":               []string{Address},
		"clusterDomain":            clusterDomain,
		// The disk and the memory are the host's, which others use too.
		"evictionHard":                map[string]any{"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		"imageGCHighThresholdPercent": 100,
		"serializeImagePulls":         false,
		"syncFrequency":               "10s",
		"nodeStatusUpdateFrequency":   "5s",
	}
}

// proxyConfig is a KubeProxyConfiguration: https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/.
func proxyConfig(kubeconfig string) map[string]any {
	return map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "nftables", "clusterCIDR": podRange, "hostnameOverride": Name,
		"clientConnection": map[string]any{"kubeconfig": kubeconfig},
		// They are settings of the whole host.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
		"nftables":  map[string]any{"minSyncPeriod": "100ms"},
	}
}

// startNode starts kubelet, kube-proxy and kube-scheduler, and returns when the node is ready.
func (c Config) startNode(ctx context.Context, plane *controlplane.Plane, tools map[string]string) error {
	resolve, err := c.write("nameserver "+Address+"\n", "resolv.conf")
	if err != nil {
		return err
	}
	kubelet, err := plane.User("system:node:"+Name, "system:nodes")
	if err != nil {
		return err
	}
	proxy, err := plane.User("system:kube-proxy")
	if err != nil {
		return err
	}
	scheduler, err := plane.User("system:kube-scheduler")
	if err != nil {
		return err
	}
	kubeletFile, err := c.writeJSON(c.kubeletConfig(plane, resolve), "kubelet.json")
	if err != nil {
		return err
	}
	proxyFile, err := c.writeJSON(proxyConfig(proxy.Kubeconfig), "kube-proxy.json")
	if err != nil {
		return err
	}
	err = errors.Join(
		plane.StartProgram("kubelet", tools["kubelet"], "--kubeconfig="+kubelet.Kubeconfig, "--config="+kubeletFile, "--hostname-override="+Name, "--node-ip="+Address, "--v=2"),
		plane.StartProgram("kube-proxy", tools["kube-proxy"], "--config="+proxyFile),
		plane.StartProgram("kube-scheduler", tools["kube-scheduler"], "--kubeconfig="+scheduler.Kubeconfig, "--leader-elect=false", "--secure-port=0",
			"--authentication-kubeconfig="+scheduler.Kubeconfig, "--authorization-kubeconfig="+scheduler.Kubeconfig),
	)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return err
	}
	return deadline.Wait(ctx, "the node is ready", limit, func(ctx context.Context) error { return ready(ctx, client) })
}

// roles are labels of nodes on which the parts of KubeVirt run. A kubelet may not write them.
const roles = `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":"","node-role.kubernetes.io/worker":""}}}`

// ready returns an error until the node is ready. It labels the node.
func ready(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Patch(ctx, Name, types.MergePatchType, []byte(roles), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	for _, each := range node.Status.Conditions {
		if each.Type == corev1.NodeReady && each.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("the conditions of the node are %v", node.Status.Conditions)
}

func (c Config) writeJSON(value any, name string) (string, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return c.write(string(content), name)
}
