package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc, USER_HZ, which is a hundredth of a second on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// process holds fields of /proc/PID/stat.
type process struct {
	pid, parent int
	name        string
	cpu         time.Duration
}

// CPU returns the processor time, user and system, that has been used by this process, under the name "", and by its descendants with names that
// begin with one of the given ones, summed for each of these. A name that no descendant has is missing. It needs Linux.
func CPU(names ...string) (map[string]time.Duration, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	processes := map[int]process{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended meanwhile.
		}
		p, err := parseStat(string(content))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		processes[p.pid] = p
	}
	self := os.Getpid()
	used := map[string]time.Duration{"": processes[self].cpu}
	for _, p := range processes {
		if !descends(processes, p, self) {
			continue
		}
		for _, name := range names {
			// Binaries from the tool cache have a key after their name, and the kernel stores only the first 15 characters.
			if name != "" && strings.HasPrefix(p.name, name[:min(len(name), 15)]) {
				used[name] += p.cpu
			}
		}
	}
	return used, nil
}

// descends reports whether the process with that id is an ancestor of p.
func descends(processes map[int]process, p process, ancestor int) bool {
	for range len(processes) {
		if p.parent == ancestor {
			return true
		}
		above, known := processes[p.parent]
		if !known {
			return false
		}
		p = above
	}
	return false
}

// parseStat reads a line of /proc/PID/stat (proc_pid_stat(5)).
func parseStat(line string) (process, error) {
	// The name stands in parentheses and may itself contain some, and spaces.
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("no name in %q", line)
	}
	// After the name: state, parent, …; user and system time are fields 14 and 15 of the line.
	fields := strings.Fields(line[end+1:])
	if len(fields) < 13 {
		return process{}, fmt.Errorf("only %d fields after the name", len(fields))
	}
	numbers := make([]int, 0, 4)
	for _, text := range []string{strings.TrimSpace(line[:open]), fields[1], fields[11], fields[12]} {
		number, err := strconv.Atoi(text)
		if err != nil {
			return process{}, err
		}
		numbers = append(numbers, number)
	}
	return process{
		pid:    numbers[0],
		name:   line[open+1 : end],
		parent: numbers[1],
		cpu:    time.Duration(numbers[2]+numbers[3]) * tick,
	}, nil
}
