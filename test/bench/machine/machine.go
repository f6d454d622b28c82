package machine

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Class returns a phrase such as "2026-01-31, 2 cores of an AMD EPYC (family 25), 16 GiB, linux/amd64, go1.26.0". What the system does not report is
// left out.
func Class(now time.Time) string {
	parts := []string{now.UTC().Format(time.DateOnly), cores()}
	if memory := value("/proc/meminfo", "MemTotal"); memory != "" {
		if kib, err := strconv.ParseFloat(strings.TrimSuffix(memory, " kB"), 64); err == nil {
			// MemTotal excludes the memory that the kernel reserves: round up to the memory of the host.
			parts = append(parts, fmt.Sprintf("%.0f GiB", kib/(1<<20)+0.5))
		}
	}
	return strings.Join(append(parts, runtime.GOOS+"/"+runtime.GOARCH, runtime.Version()), ", ")
}

func cores() string {
	phrase := fmt.Sprintf("%d cores", runtime.NumCPU())
	if model := value("/proc/cpuinfo", "model name"); model != "" {
		phrase += " of an " + model
		if family := value("/proc/cpuinfo", "cpu family"); family != "" {
			phrase += " (family " + family + ")"
		}
	}
	return phrase
}

// Memory is what a process occupies, in bytes.
type Memory struct {
	// Resident is its resident set now, Peak the largest one so far.
	Resident, Peak int64
	// Own is the part of Resident that is not read from a file, File the part that is: mostly the program, which processes that run it
	// share.
	Own, File int64
}

// MemoryOf reads the memory of a process of this host. It needs Linux.
func MemoryOf(pid int) (Memory, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	var memory Memory
	for key, into := range map[string]*int64{"VmRSS": &memory.Resident, "VmHWM": &memory.Peak, "RssAnon": &memory.Own, "RssFile": &memory.File} {
		number, err := kibibytes(path, key)
		if err != nil {
			return Memory{}, err
		}
		*into = number
	}
	// They are read one after the other, and Linux updates the peak when memory is returned: a process that grows now has not reported its peak.
	memory.Peak = max(memory.Peak, memory.Resident)
	return memory, nil
}

func kibibytes(path, key string) (int64, error) {
	number, err := strconv.ParseInt(strings.TrimSuffix(value(path, key), " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s from %s: %w", key, path, err)
	}
	return number << 10, nil
}

// value returns what follows the first "key:" in a file of lines, or nothing.
func value(path, key string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, content, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(content)
		}
	}
	return ""
}
