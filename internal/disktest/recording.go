package disktest

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/internal/testfile"
)

var update = flag.Bool("update", false, "record again what qemu-img, which must be installed, makes")

// recording describes the output of qemu-img that is recorded in a file of testdata. The name of the file is derived from input and command.
type recording struct {
	name, version string
	size          int64
	// output and input are digests.
	output, input, command string
}

// index is the file in testdata that lists all recordings, one in a line.
const (
	index      = "images.txt"
	indexTitle = "# File, version of qemu-img, bytes of its output, their SHA-256, digest of the input, and command. Package disktest reads and writes this file.\n"
)

// folder of the tested package. Some tests change the working directory.
var folder, _ = os.Getwd()

// Convert returns the path of an image that qemu-img made of a raw one. options are more arguments of qemu-img convert, without spaces.
func Convert(t testing.TB, raw, format string, options ...string) string {
	t.Helper()
	return convert(t, Live, raw, format, options)
}

// Recorded returns the path of the recorded image, also if Live is set: for tests that depend on its size and offsets.
func Recorded(t testing.TB, raw, format string, options ...string) string {
	t.Helper()
	return convert(t, false, raw, format, options)
}

func convert(t testing.TB, live bool, raw, format string, options []string) string {
	t.Helper()
	if format == "raw" {
		return raw
	}
	output := "disk." + format
	arguments := slices.Concat([]string{"convert", "-f", "raw", "-O", format}, options, []string{filepath.Base(raw), output})
	return made(t, live, raw, output, strings.Join(arguments, " "))
}

// Made returns the path of a file that commands of qemu-img made. They name it and the input, which is in the same folder, without the folder.
func Made(t testing.TB, input, output string, commands ...string) string {
	t.Helper()
	return made(t, Live, input, output, commands...)
}

func made(t testing.TB, live bool, input, output string, commands ...string) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, output)
	check(t, os.Symlink(input, filepath.Join(folder, filepath.Base(input))))
	if live || *update {
		for _, command := range commands {
			qemu(t, folder, strings.Fields(command)...)
		}
	}
	if live {
		return path
	}
	known, digest := content(t, input)
	r := recording{input: digest, command: "qemu-img " + strings.Join(commands, " && qemu-img ")}
	r.name = sum([]byte(r.input + r.command))[:12] + ".zst"
	if *update {
		r.record(t, testfile.Read(t, path), known)
		check(t, os.Remove(path))
	}
	r.replay(t, path, known)
	return path
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sum(b []byte) string {
	digest := sha256.Sum256(b)
	return hex.EncodeToString(digest[:])
}

// content returns the different blocks of a disk, and a digest of its size and of the blocks that are not zero.
func content(t testing.TB, path string) (known []byte, digest string) {
	t.Helper()
	_, size := Open(t, path)
	hash, seen := sha256.New(), map[string]bool{}
	fmt.Fprintln(hash, size)
	for offset, block := range blocks(t, path) {
		fmt.Fprintln(hash, offset)
		_, _ = hash.Write(block)
		if !seen[string(block)] {
			seen[string(block)] = true
			known = append(known, block...)
		}
	}
	return known, hex.EncodeToString(hash.Sum(nil))
}

// readIndex returns the recordings by name.
func readIndex(t testing.TB) map[string]recording {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "testdata", index))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	list := map[string]recording{}
	for line := range strings.Lines(strings.TrimPrefix(string(text), indexTitle)) {
		var r recording
		_, err := fmt.Sscan(line, &r.name, &r.version, &r.size, &r.output, &r.input)
		check(t, err)
		_, r.command, _ = strings.Cut(strings.TrimSpace(line), r.input+" ")
		list[r.name] = r
	}
	return list
}

// A recording is a sequence of runs of sectors, compressed by zstd. A run has the number of its sectors and its source: zeros, the sectors that follow,
// or sectors of the input from a number on.
const (
	zeros = iota
	follow
	ofInput

	sector = 512
)

// record writes a recording and its line in the index. known are blocks of the input.
func (r recording) record(t testing.TB, content, known []byte) {
	t.Helper()
	r.output, r.size = sum(content), int64(len(content))
	r.version = strings.Fields(qemu(t, ".", "--version"))[2]
	numbers := map[string]uint64{string(make([]byte, sector)): zeros}
	for at := 0; at < len(known); at += sector {
		if _, found := numbers[string(known[at:at+sector])]; !found {
			numbers[string(known[at:at+sector])] = ofInput + uint64(at/sector)
		}
	}
	source := func(content []byte) uint64 {
		if number, found := numbers[string(content[:sector])]; found {
			return number
		}
		return follow
	}
	content = append(content, make([]byte, -len(content)&(sector-1))...)
	var runs []byte
	for start := 0; start < len(content); {
		from, end := source(content[start:]), start+sector
		for ; end < min(len(content), start+int(MiB)); end += sector {
			if from < ofInput && source(content[end:]) != from {
				break
			}
			at := int(from-ofInput)*sector + end - start
			if from >= ofInput && (at >= len(known) || string(known[at:at+sector]) != string(content[end:end+sector])) {
				break
			}
		}
		runs = binary.AppendUvarint(binary.AppendUvarint(runs, uint64(end-start)/sector), from)
		if from == follow {
			runs = append(runs, content[start:end]...)
		}
		start = end
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	check(t, err)
	check(t, os.MkdirAll(filepath.Join(folder, "testdata"), 0o755))
	check(t, os.WriteFile(filepath.Join(folder, "testdata", r.name), encoder.EncodeAll(runs, nil), 0o644))
	all := readIndex(t)
	all[r.name] = r
	text := indexTitle
	for _, r := range slices.SortedFunc(maps.Values(all), func(a, b recording) int {
		return cmp.Or(cmp.Compare(a.command, b.command), cmp.Compare(a.name, b.name))
	}) {
		text += fmt.Sprintln(r.name, r.version, r.size, r.output, r.input, r.command)
	}
	check(t, os.WriteFile(filepath.Join(folder, "testdata", index), []byte(text), 0o644))
}

// replay writes the recorded output to a new file.
func (r recording) replay(t testing.TB, path string, known []byte) {
	t.Helper()
	want, found := readIndex(t)[r.name]
	if !found {
		t.Fatalf("testdata has no output of %q with an input of the digest %s: record it by go test -update, which needs qemu-img (docs/testing.md, Generated files)", r.command, r.input)
	}
	compressed, _ := Open(t, filepath.Join(folder, "testdata", r.name))
	decoder, err := zstd.NewReader(compressed, zstd.WithDecoderConcurrency(1))
	check(t, err)
	defer decoder.Close()
	file, err := os.Create(path)
	check(t, err)
	defer file.Close()
	hash, runs, size := sha256.New(), bufio.NewReader(decoder), int64(0)
	for size < want.size {
		sectors, err := binary.ReadUvarint(runs)
		check(t, err)
		from, err := binary.ReadUvarint(runs)
		check(t, err)
		run := make([]byte, sectors*sector)
		switch {
		case from == follow:
			_, err = io.ReadFull(runs, run)
			check(t, err)
		case from >= ofInput:
			copy(run, known[(from-ofInput)*sector:])
		}
		run = run[:min(int64(len(run)), want.size-size)]
		_, _ = hash.Write(run)
		check(t, disk.WriteNonzero(file, run, size))
		size += int64(len(run))
	}
	check(t, file.Truncate(size))
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.output {
		t.Fatalf("testdata/%s has the digest %s instead of %s", r.name, got, want.output)
	}
}
