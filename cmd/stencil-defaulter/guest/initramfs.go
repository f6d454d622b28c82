package guest

import (
	"bytes"
	"fmt"
)

// archive is an initramfs in the format newc (the kernel's Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	bytes.Buffer
	entries int
}

// Modes of entries.
const (
	folderMode     = 0o040755
	executableMode = 0o100755
	consoleMode    = 0o020600
)

// add adds an entry. The device is that of a character device, major and minor.
func (a *archive) add(name string, mode int, content []byte, device [2]int) {
	a.entries++
	fmt.Fprintf(a, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.entries, mode, 0, 0, 1, 0, len(content), 0, 0, device[0], device[1], len(name)+1, 0, name)
	a.pad()
	a.Write(content)
	a.pad()
}

func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}

// initramfs returns one whose first program is init, a script for busybox.
func initramfs(busybox, init []byte) []byte {
	var a archive
	a.add("bin", folderMode, nil, [2]int{})
	a.add("dev", folderMode, nil, [2]int{})
	a.add("dev/console", consoleMode, nil, [2]int{5, 1})
	a.add("bin/busybox", executableMode, busybox, [2]int{})
	a.add("bin/sh", executableMode, busybox, [2]int{})
	a.add("init", executableMode, init, [2]int{})
	a.add("TRAILER!!!", 0, nil, [2]int{})
	return a.Bytes()
}
