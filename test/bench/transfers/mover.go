package transfers

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vmstencil/stencil/transfer"
)

const (
	// token of the manager.
	token = "manager"
	// pollInterval is how often the state is read: it bounds the error of a measured time. Each time costs the mover and the benchmark what they work
	// with, so that it is not shorter.
	pollInterval = 5 * time.Millisecond
	// limit bounds a transfer.
	limit = 5 * time.Minute
)

// mounts are the folders of a mover, with a certificate for its server.
type mounts struct {
	root   string
	client *http.Client
}

func newMounts(root string) (*mounts, error) {
	m := &mounts{root: root}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: transfer.ServerName}, DNSNames: []string{transfer.ServerName},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(public)
	m.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: transfer.ServerName, MinVersion: tls.VersionTLS12}}}
	for name, content := range map[string][]byte{
		transfer.CertificateFile: public, transfer.KeyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), transfer.TokenFile: []byte(token),
	} {
		if err := m.write(filepath.Join(transfer.TaskFolder, name), content); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// path of a mount below the root.
func (m *mounts) path(parts ...string) string {
	return filepath.Join(append([]string{m.root}, parts...)...)
}

func (m *mounts) write(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(m.path(name), content, 0o600)
}

// used is what a mover has used.
type used struct {
	// elapsed is from the start of the process until its state is that it has succeeded, in nanoseconds.
	elapsed float64
	// memory is the greatest resident size of the process in bytes.
	memory int64
}

// work has a mover work on a task until it has succeeded, and acknowledges it.
func (m *mounts) work(ctx context.Context, binary string, task *transfer.Task) (state transfer.State, took used, err error) {
	text, err := json.Marshal(task)
	if err != nil {
		return state, took, err
	}
	if err := m.write(filepath.Join(transfer.TaskFolder, transfer.TaskFile), text); err != nil {
		return state, took, err
	}
	address, err := free(ctx)
	if err != nil {
		return state, took, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var output bytes.Buffer
	command := exec.CommandContext(ctx, binary, "--listen", address, "--root", m.root)
	command.Stdout, command.Stderr = &output, &output
	start := time.Now()
	if err := command.Start(); err != nil {
		return state, took, fmt.Errorf("starting the mover: %w", err)
	}
	state, err = m.ended(ctx, address)
	took.elapsed = float64(time.Since(start))
	if err != nil {
		cancel()
		return state, took, errors.Join(fmt.Errorf("%s: %w", task.Stage, err), command.Wait(), errors.New(output.String()))
	}
	if _, err := m.request(ctx, http.MethodPost, address, transfer.AcknowledgePath); err != nil {
		cancel()
		return state, took, errors.Join(err, command.Wait())
	}
	if err := command.Wait(); err != nil {
		return state, took, fmt.Errorf("the mover: %w\n%s", err, output.String())
	}
	if usage, is := command.ProcessState.SysUsage().(*syscall.Rusage); is {
		took.memory = usage.Maxrss << 10
	}
	return state, took, nil
}

// free returns a free address on loopback.
func free(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// ended reads the state until the mover has succeeded.
func (m *mounts) ended(ctx context.Context, address string) (state transfer.State, err error) {
	for {
		body, err := m.request(ctx, http.MethodGet, address, transfer.StatePath)
		// A mover that is starting does not listen.
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return state, err
		}
		if err == nil {
			if err := json.Unmarshal(body, &state); err != nil {
				return state, err
			}
			switch state.Phase {
			case transfer.Succeeded:
				return state, nil
			case transfer.Failed:
				return state, fmt.Errorf("the mover failed: %s: %s", state.Failure.Reason, state.Failure.Message)
			}
		}
		select {
		case <-ctx.Done():
			return state, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}

func (m *mounts) request(ctx context.Context, method, address, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := m.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return body, err
}
