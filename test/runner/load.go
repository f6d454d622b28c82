package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// load measures how much processor time other programs used during a run.
type load struct {
	began time.Time
	// busy and own are processor time in seconds: of the whole host, and of this process with its children.
	busy, own float64
	// slower is how many times slower this machine is than the one that the budgets are for; 1 if it is not.
	slower float64
}

// clockTicks is the unit of /proc/stat, 1/100 s on every architecture of Linux that Go supports.
const clockTicks = 100

func startLoad(calibration float64) load {
	l := load{began: time.Now(), slower: 1}
	if calibration > 0 {
		l.slower = max(1, calibrate()/calibration)
	}
	l.busy, l.own = busyTime(), ownTime()
	return l
}

// stretch is the factor by which budgets grow: 1 on a quiet host that is as fast as the one they are for, 2 on one that is half as fast, or when
// other processes took half of it.
func (l load) stretch() float64 {
	capacity := time.Since(l.began).Seconds() * float64(runtime.NumCPU())
	return l.slower * stretch(busyTime()-l.busy-(ownTime()-l.own), capacity)
}

// calibrate returns how many seconds of processor time a fixed amount of work takes on one core: digests, and objects as JSON, which allocate. It
// takes no time that other processes use.
func calibrate() float64 {
	began := ownTime()
	block := make([]byte, 1<<16)
	object := map[string]any{}
	for i := range 200 {
		object[strconv.Itoa(i)] = []string{"a", "b", "c"}
	}
	for range 400 {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
		text, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(text, &object)
		}
		if err != nil {
			return 0
		}
	}
	return ownTime() - began
}

// mostStretch bounds the factor: on a host that other processes use up, a budget has no meaning.
const mostStretch = 6

// stretch is 1/(1-share), where share is the part of the capacity that other processes used, all in seconds of processor time.
func stretch(others, capacity float64) float64 {
	if capacity <= 0 || others <= 0 {
		return 1
	}
	left := 1 - others/capacity
	if left*mostStretch <= 1 {
		return mostStretch
	}
	return 1 / left
}

// busyTime is the processor time that the host has spent on any work, in seconds, including time stolen by a hypervisor; 0 where the kernel does not
// report it.
func busyTime() float64 {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	busy, err := parseBusy(content)
	if err != nil {
		return 0
	}
	return busy
}

// parseBusy adds up the first line of /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. Guest time is
// part of user time.
func parseBusy(stat []byte) (float64, error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("the first line of /proc/stat is %q", line)
	}
	var ticks float64
	for i, field := range fields[1:9] {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("reading /proc/stat: %w", err)
		}
		if idle := i == 3 || i == 4; !idle {
			ticks += value
		}
	}
	return ticks / clockTicks, nil
}

// ownTime is the processor time of this process and of all its descendants that have ended, in seconds.
func ownTime() float64 {
	var total float64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			return 0
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	}
	return total
}
