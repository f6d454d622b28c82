package main

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// TestMain is the program where a test starts it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("STENCIL_TEST_MOVER") != "" {
		main()
	}
	os.Exit(m.Run())
}

const templateJSON = `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"web","namespace":"golden"},"spec":{"virtualMachine":VM}}`

const vmJSON = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"web"},"spec":{"runStrategy":"Always",
"dataVolumeTemplates":[{"metadata":{"name":"web-root"},"spec":{"source":{"pvc":{"name":"fedora","namespace":"golden"}},"storage":{}}}],
"template":{"spec":{"domain":{"devices":{"disks":[{"disk":{"bus":"virtio"},"name":"root"}]},"memory":{"guest":"1Gi"}},"volumes":[{"dataVolume":{"name":"web-root"},"name":"root"}]}}}}`

// process is a mover.
type process struct {
	t       *testing.T
	root    string
	command *exec.Cmd
	output  bytes.Buffer
	url     string
	client  *http.Client
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// certificate writes a certificate for the name of movers, and returns a client that trusts it.
func certificate(t *testing.T, root string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: transfer.ServerName}, DNSNames: []string{transfer.ServerName}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	write(t, root+transfer.TaskFolder+"/"+transfer.CertificateFile, public)
	write(t, root+transfer.TaskFolder+"/"+transfer.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: transfer.ServerName, MinVersion: tls.VersionTLS12}}}
}

// start starts a mover on mounts below a folder.
func start(t *testing.T, root string, task *transfer.Task, flags ...string) *process {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	write(t, root+transfer.TaskFolder+"/"+transfer.TaskFile, text)
	write(t, root+transfer.TaskFolder+"/"+transfer.TokenFile, []byte("manager\n"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	p := &process{t: t, root: root, url: "https://" + address, client: certificate(t, root)}
	t.Cleanup(p.client.CloseIdleConnections)
	p.command = exec.Command(os.Args[0], append([]string{"--listen", address, "--root", root}, flags...)...)
	p.command.Env = append(os.Environ(), "STENCIL_TEST_MOVER=1")
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill(); _ = p.command.Wait() })
	return p
}

// request sends a request and returns the answer and its body.
func (p *process) request(method, path, token string, header ...string) (*http.Response, []byte) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		response, err := p.client.Do(request)
		if err == nil {
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil {
				p.t.Fatal(err)
			}
			return response, body
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%v\n%s", err, p.output.String())
		}
	}
}

// ended polls the state until the end.
func (p *process) ended() transfer.State {
	p.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, body := p.request(http.MethodGet, transfer.StatePath, "manager")
		var state transfer.State
		if err := json.Unmarshal(body, &state); err != nil {
			p.t.Fatalf("%v: %s", err, body)
		}
		if state.Phase != transfer.Running {
			return state
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("it still runs: %s", body)
		}
	}
}

// exit waits for the end of the process and returns its exit code and the greatest size of its memory in bytes.
func (p *process) exit() (code int, memory int64) {
	p.t.Helper()
	timer := time.AfterFunc(time.Minute, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	_ = p.command.Wait()
	return p.command.ProcessState.ExitCode(), p.command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

func (p *process) acknowledge() {
	p.t.Helper()
	if response, body := p.request(http.MethodPost, transfer.AcknowledgePath, "manager"); response.StatusCode != http.StatusNoContent {
		p.t.Fatalf("%s: %s", response.Status, body)
	}
}

func exportTask(format v1beta1.ExportFormat) *transfer.Task {
	return &transfer.Task{Stage: transfer.Export, Disks: []transfer.Disk{{Name: "root", Volume: "root"}}, Package: &transfer.Package{
		File: "web.pkg", Format: format, Template: []byte(strings.Replace(templateJSON, "VM", vmJSON, 1)), VM: []byte(vmJSON), DownloadToken: "download",
	}}
}

// exportMounts has a disk of a size, of which so many bytes are random; the rest are holes.
func exportMounts(t *testing.T, size, data int64) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, transfer.DisksFolder, "root", transfer.DiskFile)
	write(t, path, nil)
	write(t, root+transfer.ResultFolder+"/.keep", nil)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	random, buffer := mathrand.NewChaCha8([32]byte{1}), make([]byte, 1<<20)
	// In pieces over the whole disk.
	for at, left := int64(0), data; left > 0; at, left = at+size/(data>>20), left-1<<20 {
		_, _ = random.Read(buffer[:512<<10])
		if _, err := file.WriteAt(buffer, at/4096*4096); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestAPackageIsServed(t *testing.T) {
	root := exportMounts(t, 64<<20, 4<<20)
	p := start(t, root, exportTask(v1beta1.ExportOVA))
	state := p.ended()
	if state.Phase != transfer.Succeeded {
		t.Fatalf("%+v", state.Failure)
	}
	const path = transfer.PackagePath + "web.pkg"
	response, whole := p.request(http.MethodGet, path, "download")
	if sum := sha256.Sum256(whole); response.StatusCode != http.StatusOK || "sha256:"+hex.EncodeToString(sum[:]) != state.Digest || int64(len(whole)) != state.Size {
		t.Errorf("%s with %d bytes; the state is %+v", response.Status, len(whole), state)
	}
	etag := `"` + state.Digest + `"`
	files := map[string]int{}
	for archive := tar.NewReader(bytes.NewReader(whole)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = int(header.Size)
		want, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		response, got := p.request(http.MethodGet, transfer.PackagePath+header.Name, "download")
		if response.StatusCode != http.StatusOK || !bytes.Equal(got, want) || response.Header.Get("ETag") != `"`+state.Digest+"/"+header.Name+`"` {
			t.Errorf("%s: %s with %d bytes, want %d; ETag %s", header.Name, response.Status, len(got), len(want), response.Header.Get("ETag"))
		}
	}
	disk := transfer.PackagePath + "web-root.vmdk"
	for name, tc := range map[string]struct {
		method, path, token string
		header              []string
		code, length        int
	}{
		"a range":                               {"GET", path, "download", []string{"Range", "bytes=10-19", "If-Range", etag}, 206, 10},
		"a range of another package":            {"GET", path, "download", []string{"Range", "bytes=10-19", "If-Range", `"other"`}, 200, len(whole)},
		"what the client has":                   {"GET", path, "download", []string{"If-None-Match", etag}, 304, 0},
		"through the API server":                {"GET", path, "", []string{transfer.TokenHeader, "download", "Range", "bytes=10-19"}, 206, 10},
		"another token through the API server":  {"GET", path, "", []string{transfer.TokenHeader, "manager"}, 401, -1},
		"no token through the API server":       {"GET", path, "", []string{transfer.TokenHeader, ""}, 401, -1},
		"the state through the API server":      {"GET", transfer.StatePath, "", []string{transfer.TokenHeader, "manager"}, 401, -1},
		"without a token":                       {"GET", path, "", nil, 401, -1},
		"the manager's token":                   {"GET", path, "manager", nil, 401, -1},
		"a range of a disk":                     {"GET", disk, "download", []string{"Range", "bytes=5000-"}, 206, files["web-root.vmdk"] - 5000},
		"a disk without a token":                {"GET", disk, "", nil, 401, -1},
		"a disk through the API server":         {"GET", disk, "", []string{transfer.TokenHeader, "download"}, 200, files["web-root.vmdk"]},
		"a disk in another folder":              {"GET", path + "/web-root.vmdk", "download", nil, 404, -1},
		"another file":                          {"GET", transfer.PackagePath + "result.json", "download", nil, 404, -1},
		"a path that leads elsewhere":           {"GET", transfer.PackagePath + "..%2f..%2ftask%2ftoken", "download", nil, 404, -1},
		"another path":                          {"GET", "/", "manager", nil, 404, -1},
		"the state without a token":             {"GET", transfer.StatePath, "", nil, 401, -1},
		"the state with the user's token":       {"GET", transfer.StatePath, "download", nil, 401, -1},
		"acknowledgement with the user's token": {"POST", transfer.AcknowledgePath, "download", nil, 401, -1},
		"acknowledgement by GET":                {"GET", transfer.AcknowledgePath, "manager", nil, 405, -1},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := p.request(tc.method, tc.path, tc.token, tc.header...)
			if response.StatusCode != tc.code || tc.length >= 0 && len(body) != tc.length {
				t.Errorf("%s with %d bytes, want %d with %d", response.Status, len(body), tc.code, tc.length)
			}
		})
	}
	p.acknowledge()
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.output.String())
	}
}

func TestAnExportThatIsKilledIsRepeated(t *testing.T) {
	root := exportMounts(t, 1<<30, 200<<20)
	task := exportTask(v1beta1.ExportOVA)
	p := start(t, root, task)
	partial := root + transfer.ResultFolder + "/web.pkg.partial"
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(partial); err == nil && info.Size() > 10<<20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it writes nothing")
		}
	}
	if response, _ := p.request(http.MethodGet, transfer.PackagePath+"web.pkg", "download"); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("%s before the package is ready", response.Status)
	}
	if response, _ := p.request(http.MethodPost, transfer.AcknowledgePath, "manager"); response.StatusCode != http.StatusConflict {
		t.Errorf("%s to an acknowledgement before the end", response.Status)
	}
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.exit()

	p = start(t, root, task)
	first := p.ended()
	if first.Phase != transfer.Succeeded {
		t.Fatalf("%+v", first.Failure)
	}
	begun := time.Now()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.exit(); code != 1 || time.Since(begun) > 10*time.Second {
		t.Errorf("exit code %d after %s", code, time.Since(begun))
	}

	// Without the disk, only the package that exists can be served.
	if err := os.RemoveAll(root + transfer.DisksFolder); err != nil {
		t.Fatal(err)
	}
	p = start(t, root, task)
	again := p.ended()
	if first.Seal == nil || again.Seal == nil || first.Seal.Count != 1 || again.Seal.Count != 1 {
		t.Errorf("the disk is reported as %+v, and without it as %+v", first.Seal, again.Seal)
	}
	first.Seal, again.Seal = nil, nil
	if fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("the state is %+v, and was %+v", again, first)
	}
}

func TestAFailureIsTheReasonOfTheTermination(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/dev/termination-log", nil)
	p := start(t, root, &transfer.Task{Stage: transfer.Inspect, Source: &v1beta1.ImportSource{HTTP: &v1beta1.ImportSourceHTTP{URL: "http://127.0.0.1:1/a.ova"}}}, "--acknowledge-timeout=100ms")
	if code, _ := p.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	const want = "SourceDenied: http://127.0.0.1:1/a.ova: 127.0.0.1: the address is not public: allow its network in the chart's value transfers.allowedNetworks"
	if got, err := os.ReadFile(root + "/dev/termination-log"); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestAnUploadIsReported sends a package by HTTP/2, of which the first request stops in the middle. The manager comes later than a failure would be reported.
func TestAnUploadIsReported(t *testing.T) {
	root, content := t.TempDir(), []byte(strings.Repeat("package ", 1<<17))
	if err := os.MkdirAll(root+transfer.ResultFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, root, &transfer.Task{Stage: transfer.Receive, Upload: &transfer.Upload{Size: int64(len(content)), Token: "upload"}, Limits: transfer.Limits{StallSeconds: 60}}, "--acknowledge-timeout=1ms")
	p.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	send := func(offset string, body io.Reader) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, p.url+transfer.UploadPath, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer upload")
		request.Header.Set("Content-Type", transfer.UploadType)
		request.Header.Set(transfer.UploadOffset, offset)
		response, err := p.client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return response, err
	}
	received := func() string {
		response, _ := p.request(http.MethodGet, transfer.UploadPath, "upload")
		return response.Header.Get(transfer.UploadOffset)
	}
	for deadline := time.Now().Add(time.Minute); received() != "0"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not ready")
		}
	}
	stalled, more := io.Pipe()
	defer more.Close()
	interrupted := make(chan error, 1)
	go func() {
		response, err := send("0", stalled)
		if err == nil && response.StatusCode == http.StatusNoContent {
			err = errors.New("the stalled request has succeeded")
		} else {
			err = nil
		}
		interrupted <- err
	}()
	if _, err := more.Write(content[:1000]); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); received() != "1000"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing arrives")
		}
	}
	response, err := send("1000", bytes.NewReader(content[1000:]))
	if err != nil || response.StatusCode != http.StatusNoContent || response.ProtoMajor != 2 {
		t.Fatalf("%+v, %v", response, err)
	}
	if err := <-interrupted; err != nil {
		t.Error(err)
	}
	if state := p.ended(); state.Phase != transfer.Succeeded || state.Received != int64(len(content)) {
		t.Errorf("%+v", state)
	}
	if got, err := os.ReadFile(root + transfer.ResultFolder + "/" + transfer.UploadFile); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the package has other bytes: %v", err)
	}
	// Later than that.
	time.Sleep(50 * time.Millisecond)
	p.acknowledge()
	if code, memory := p.exit(); code != 0 || memory > mostMemory {
		t.Errorf("exit code %d, %d MiB: %s", code, memory>>20, p.output.String())
	}
}

// succeedsWithin performs a task, and checks the memory that the mover has used.
func succeedsWithin(t *testing.T, root string, task *transfer.Task) {
	t.Helper()
	p := start(t, root, task)
	if state := p.ended(); state.Phase != transfer.Succeeded {
		t.Fatalf("%+v", state.Failure)
	}
	p.acknowledge()
	_, memory := p.exit()
	t.Logf("%s used %d MiB", task.Stage, memory>>20)
	if memory > mostMemory {
		t.Errorf("%s used %d MiB", task.Stage, memory>>20)
	}
}

// TestMemoryOfTheBestCompression exports a disk of 1 GiB with 48 MiB of data. Its packages are imported like others.
func TestMemoryOfTheBestCompression(t *testing.T) {
	for _, format := range []v1beta1.ExportFormat{v1beta1.ExportOVA, v1beta1.ExportOCI} {
		t.Run(string(format), func(t *testing.T) {
			task := exportTask(format)
			task.Package.Compression = v1beta1.ExportCompressionBest
			succeedsWithin(t, exportMounts(t, 1<<30, 48<<20), task)
		})
	}
}

// TestMemory moves a disk of 3 GiB with 256 MiB of data.
func TestMemory(t *testing.T) {
	for _, format := range []v1beta1.ExportFormat{v1beta1.ExportOVA, v1beta1.ExportOCI} {
		t.Run(string(format), func(t *testing.T) {
			root := exportMounts(t, 3<<30, 256<<20)
			succeedsWithin(t, root, exportTask(format))

			in := t.TempDir()
			task := &transfer.Task{Stage: transfer.Inspect, AllowedNetworks: []string{"127.0.0.0/8"}, Conversion: transfer.Conversion{Namespace: "imported"}}
			if format == v1beta1.ExportOVA {
				server := httptest.NewServer(http.FileServer(http.Dir(root + transfer.ResultFolder)))
				defer server.Close()
				task.Source = &v1beta1.ImportSource{HTTP: &v1beta1.ImportSourceHTTP{URL: server.URL + "/web.pkg"}}
			} else {
				if err := os.Rename(root+transfer.ResultFolder, in+transfer.SourceFolder); err != nil {
					if err = os.MkdirAll(filepath.Dir(in+transfer.SourceFolder), 0o755); err == nil {
						err = os.Rename(root+transfer.ResultFolder, in+transfer.SourceFolder)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				task.Source = &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Path: "web.pkg"}}
			}
			p := start(t, in, task)
			state := p.ended()
			if state.Phase != transfer.Succeeded {
				t.Fatalf("%+v", state.Failure)
			}
			p.acknowledge()
			p.exit()
			task.Stage, task.Description = transfer.Import, state.Plan.Description
			for _, d := range state.Plan.Disks {
				task.Disks = append(task.Disks, transfer.Disk{Name: d.Name, File: d.File, Size: d.Size})
			}
			if err := os.MkdirAll(in+transfer.DisksFolder+"/fedora", 0o755); err != nil {
				t.Fatal(err)
			}
			succeedsWithin(t, in, task)
			imported := in + transfer.DisksFolder + "/fedora/" + transfer.DiskFile
			if from, to := digestFile(t, filepath.Join(root, transfer.DisksFolder, "root", transfer.DiskFile)), digestFile(t, imported); from != to {
				t.Errorf("the disk has another content")
			}
			var is syscall.Stat_t
			if err := syscall.Stat(imported, &is); err != nil || is.Blocks*512 > 300<<20 {
				t.Errorf("the disk occupies %d bytes, %v", is.Blocks*512, err)
			}
		})
	}
}

func digestFile(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
