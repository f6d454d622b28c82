package machine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Others measures the share of the host that processes other than this one and its children use.
type Others struct {
	begin     time.Time
	busy, own time.Duration
}

// WatchOthers begins a measurement. It needs Linux.
func WatchOthers() (*Others, error) {
	busy, own, err := usage()
	return &Others{begin: time.Now(), busy: busy, own: own}, err
}

// Share returns the part of all processor time since the beginning that other processes used, from 0 to 1. Processes that this one has started count
// as its own once they have ended and were waited for, so call it after that.
func (o *Others) Share() (float64, error) {
	busy, own, err := usage()
	if err != nil {
		return 0, err
	}
	elapsed := time.Since(o.begin) * time.Duration(runtime.NumCPU())
	return max(0, float64((busy-o.busy)-(own-o.own))/float64(elapsed)), nil
}

// usage returns the processor time of the whole host, and that of this process and its ended children.
func usage() (busy, own time.Duration, err error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("reading the processor time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	if busy, err = parseBusy(line); err != nil {
		return 0, 0, err
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0, 0, fmt.Errorf("reading the processor time of this process: %w", err)
		}
		own += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return busy, own, nil
}

// parseBusy reads the first line of /proc/stat (proc_stat(5)): cpu user nice system idle iowait irq softirq steal …
func parseBusy(line string) (time.Duration, error) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("%q does not tell the processor time of the machine", line)
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		number, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of the machine: %w", err)
		}
		ticks += number
	}
	return time.Duration(ticks) * tick, nil
}
