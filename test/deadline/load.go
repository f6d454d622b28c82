package deadline

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// HostLoad reads the load of this host from Linux, see proc_loadavg(5). On other systems it is unknown.
func HostLoad() Load {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return Load{}
	}
	return Load{Runnable: runnable(string(text)), Cores: runtime.NumCPU()}
}

// runnable reads the fourth field of /proc/loadavg, such as 7/221: tasks that are runnable, and all. It returns 0 for any other text.
func runnable(loadavg string) int {
	fields := strings.Fields(loadavg)
	if len(fields) < 4 {
		return 0
	}
	number, _, found := strings.Cut(fields[3], "/")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 0 {
		return 0
	}
	return n
}
