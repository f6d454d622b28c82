package child

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// The memory of a child, in addition to what it uses without a policy, which is about 60 MiB. The policies of the library need less than 10 MiB each.
const (
	maxMemory = 256 << 20
	minMemory = 32 << 20
	// baseMemory is an upper bound of what a child uses without a policy.
	baseMemory = 80 << 20
)

// memoryFor returns the memory that a policy may use in a child of a process that uses so much of its limit. Half of the rest is for the process itself,
// which compiles the policy as well if it passes.
//
// It must never be more: where a container runs out of memory, Kubernetes ends all of its processes and not only the largest.
func memoryFor(limit, used int64) (int64, error) {
	memory := min((limit-used-baseMemory)/2, maxMemory)
	if memory < minMemory {
		return 0, fmt.Errorf("too little memory is left: %d MiB of the limit of %d MiB are used, and compiling policies needs %d MiB", used>>20, limit>>20, (baseMemory+2*minMemory)>>20)
	}
	return memory, nil
}

// limitFiles are where the memory limit of the container is: in version 2 and version 1 of control groups.
var limitFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// memoryLimit returns the memory that the process may use: the smaller one of the limit of its container and GOMEMLIMIT.
func memoryLimit(files []string) int64 {
	limit := debug.SetMemoryLimit(-1)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Without a limit it is the word max, or a very large number.
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			limit = min(limit, n)
		}
	}
	return limit
}

// available returns the memory for a policy in a child that starts now.
func available() (int64, error) {
	limit := memoryLimit(limitFiles)
	if limit == math.MaxInt64 {
		return maxMemory, nil
	}
	return memoryFor(limit, mapped())
}

// mapped returns the memory that the runtime has taken.
func mapped() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys - stats.HeapReleased)
}
