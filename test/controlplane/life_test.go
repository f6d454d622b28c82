package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestTwoPlanesRunAtOnceAndAreApart(t *testing.T) {
	planes := make([]*Plane, 2)
	failures := make(chan error)
	for i := range planes {
		go func() {
			var err error
			planes[i], err = Start(t.Context(), Options{})
			failures <- err
		}()
	}
	for range planes {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		return
	}
	for _, plane := range planes {
		t.Cleanup(func() {
			if err := plane.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if made := kubectl(t, planes[0], nil, "", "create", "namespace", "only-in-the-first"); made.Code != 0 {
		t.Fatal(made.Stderr)
	}
	if got := kubectl(t, planes[1], nil, "", "get", "namespace", "only-in-the-first"); got.Code == 0 {
		t.Error("a namespace of one plane is seen in the other")
	}
	if got := kubectl(t, planes[1], planes[0].Admin(), "", "get", "namespaces"); got.Code != 0 {
		t.Error("a kubeconfig of the first plane must lead to the first plane, whichever plane runs kubectl:", got.Stderr)
	}
}

func TestAPlaneStartsAlthoughEveryPortIsLostOnce(t *testing.T) {
	// It accepts connections, as every listener does, and never answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var mutex sync.Mutex
	attempts := map[int]int{}
	plane, err := Start(t.Context(), Options{KubeVirt: true, ports: func(ctx context.Context, n int) ([]int, error) {
		ports, err := freePorts(ctx, n)
		mutex.Lock()
		defer mutex.Unlock()
		// Each component gets the port that is taken on its first attempt.
		if attempts[n]++; attempts[n]%2 == 1 && err == nil {
			ports[0] = silent.Addr().(*net.TCPAddr).Port
		}
		return ports, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Stop(); err != nil {
		t.Error(err)
	}
	// kube-apiserver and virt-controller need one port, virt-api two.
	if want := map[int]int{1: 4, 2: 2}; !maps.Equal(attempts, want) {
		t.Errorf("want two attempts of each component, by number of ports %v, got %v", want, attempts)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	plane, err := Start(t.Context(), Options{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(plane.processes) != 3 {
		t.Fatalf("want etcd, kube-apiserver and kube-controller-manager, got %d processes", len(plane.processes))
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, process := range plane.processes {
		if running(process.command.Process.Pid) {
			t.Errorf("%s still runs", process.name)
		}
	}
	if _, err := os.Stat(plane.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := plane.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
}

func TestAFolderThatWasNamedStaysWithItsLogs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("a-path-longer-than-a-socket-may-have/", 4))
	plane, err := Start(t.Context(), Options{Dir: folder})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{"etcd.log", "kube-apiserver.log"} {
		if _, err := os.Stat(filepath.Join(folder, "logs", log)); err != nil {
			t.Error(err)
		}
	}
	if _, err := Start(t.Context(), Options{Dir: folder}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("want a refusal of the folder that is in use, got %v", err)
	}
}

func TestAFailedStartSaysWhyAndLeavesNothingBehind(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	_, err := Start(t.Context(), Options{APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{"kube-apiserver ended before it was ready", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestNothingOutlivesAKilledOwner runs this test binary again as the owner of a plane and kills it.
func TestNothingOutlivesAKilledOwner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux can promise this")
		return
	}
	t.Setenv("TMPDIR", t.TempDir())
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), abandonVariable+"=1")
	owner.Stderr = os.Stderr
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the owner said nothing: %v", err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The error of a killed process is expected.
	_ = owner.Wait()

	fields := strings.Fields(line)
	folder, pids := fields[0], fields[1:]
	if len(pids) != 2 {
		t.Fatalf("want the process numbers of etcd and kube-apiserver, got %q", line)
	}
	for _, pid := range pids {
		number, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "process "+pid+" has ended", func() error {
			if running(number) {
				return errors.New("it runs")
			}
			return nil
		})
	}
	if _, err := os.Stat(folder); err != nil {
		t.Fatalf("a killed owner cannot have removed its folder: %v", err)
	}
	removeOrphans(os.TempDir())
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the orphaned folder is still there: %v", err)
	}
}

// abandon starts a plane, prints its folder and its processes' numbers, and waits to be killed.
func abandon() error {
	plane, err := Start(context.Background(), Options{})
	if err != nil {
		return err
	}
	fmt.Print(plane.Dir())
	for _, process := range plane.processes {
		fmt.Print(" ", process.command.Process.Pid)
	}
	fmt.Println()
	select {}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}
