package child

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

const (
	// niceness is the priority of a child, 0 is the usual one and 19 the lowest. At 5 it receives about a third of the time that a thread of its parent
	// does.
	niceness = 5
	// maxStack is how large the stack of a goroutine may be.
	maxStack = 64 << 20
	// maxFiles is the number of open files. The engine reads time zones.
	maxFiles = 32
)

// restrict limits the process: its memory to what it uses now and so many bytes, files, core dumps, and its priority.
func restrict(memoryBytes int64) error {
	data, err := dataBytes()
	if err != nil {
		return err
	}
	// An allocation beyond this limit ends the process.
	memory := uint64(data + memoryBytes)
	for resource, limit := range map[int]uint64{
		syscall.RLIMIT_DATA: memory, syscall.RLIMIT_NOFILE: maxFiles, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_CORE: 0,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("setting resource limit %d: %w", resource, err)
		}
	}
	// Garbage is collected before. The runtime takes memory in pieces of 4 MiB, and counts less than the kernel.
	debug.SetMemoryLimit(mapped() + memoryBytes*9/10)
	debug.SetMaxStack(maxStack)
	// The group has all threads of this process, and nothing else.
	if err := syscall.Setpriority(syscall.PRIO_PGRP, 0, niceness); err != nil {
		return fmt.Errorf("lowering the priority: %w", err)
	}
	// If the container has no memory left, the kernel ends this process first. It may not be permitted, and is not necessary.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}

// dataBytes returns the size of the process as RLIMIT_DATA counts it.
func dataBytes() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading the size of the process: %w", err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmData:"))
	number, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
	kib, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the size of the process: %w", err)
	}
	return kib << 10, nil
}

// cpuTime returns the CPU time that the process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// attributes put a child into a process group of its own, and end it with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
