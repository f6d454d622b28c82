package services

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestNetwork(t *testing.T) {
	folder, err := os.MkdirTemp("", "net")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "s")
	n, err := Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	n.kube = fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-api"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "empty"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.8"}},
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	behind := strings.TrimPrefix(server.URL, "http://")
	n.Route("kubevirt", "virt-api", behind)
	n.Endpoint("198.51.100.1", behind)

	for address, want := range map[string]string{
		"10.96.0.7:443":     "hello",
		behind:              "hello",
		"198.51.100.1:8443": "hello",
		"10.96.0.8:443":     "the Service kubevirt/empty has no endpoints",
		"10.96.0.9:443":     "no Service has the address 10.96.0.9",
	} {
		got, err := through(socket, address)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
}

// through requests / from an address through the proxy, and returns the body of the server's response or of the proxy's.
func through(socket, address string) (string, error) {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	reader := bufio.NewReader(connection)
	for range 2 {
		response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
		if err != nil {
			return "", err
		}
		if response.StatusCode != http.StatusOK {
			body := make([]byte, response.ContentLength)
			_, err := io.ReadFull(reader, body)
			return string(body), err
		}
		if response.ContentLength > 0 {
			body := make([]byte, response.ContentLength)
			_, err := io.ReadFull(reader, body)
			return string(body), err
		}
		fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", address)
	}
	return "", fmt.Errorf("no body")
}
