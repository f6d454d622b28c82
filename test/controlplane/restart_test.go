package controlplane

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestRestartsKeepWhatIsStored(t *testing.T) {
	plane := StartFor(t, Options{})
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	configMaps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	write := func(limit time.Duration, name string) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	for _, tc := range []struct {
		name, process string
		restart, stop func() error
		start         func(context.Context) error
	}{
		{name: "the-api-server", process: apiServerProcess, stop: plane.StopAPIServer, start: plane.StartAPIServer,
			restart: func() error { return plane.RestartAPIServer(t.Context()) }},
		{name: "etcd", process: etcdProcess, stop: plane.StopEtcd, start: plane.StartEtcd,
			restart: func() error { return plane.RestartEtcd(t.Context()) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := write(30*time.Second, tc.name+"-before"); err != nil {
				t.Fatal(err)
			}
			if err := tc.restart(); err != nil {
				t.Fatal(err)
			}
			if err := write(30*time.Second, tc.name+"-after"); err != nil {
				t.Errorf("a write at once after the restart: %v", err)
			}
			if err := tc.start(t.Context()); err == nil || !strings.Contains(err.Error(), "is running") {
				t.Errorf("want an error of a second start, got %v", err)
			}
			if err := tc.stop(); err != nil {
				t.Fatal(err)
			}
			if err := write(2*time.Second, tc.name+"-between"); err == nil {
				t.Error("a write succeeded while the process was stopped")
			}
			if err := tc.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"-before", "-after"} {
				if _, err := configMaps.Get(t.Context(), tc.name+name, metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if len(plane.processes) != 2 || plane.processes[0].name != etcdProcess || plane.processes[1].name != apiServerProcess {
		t.Errorf("want etcd and then kube-apiserver, got %v", plane.processes)
	}
}

func TestAPlaneCanBeStoppedWhileAProcessIs(t *testing.T) {
	plane, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.StopEtcd(); err != nil {
		t.Error(err)
	}
	if err := plane.Stop(); err != nil {
		t.Error(err)
	}
	if err := plane.StartEtcd(t.Context()); err == nil {
		t.Error("a process was started on a plane that has been stopped")
	}
}
