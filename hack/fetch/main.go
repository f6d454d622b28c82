// Command fetch downloads published binaries that a lock file names by version and SHA-256: hack/tool calls it if STENCIL_BINARIES is download.
//
//	fetch -lock hack/binaries.lock -into FOLDER NAME...
//
// It prints a line NAME PATH for each name that it has, and the reason on standard error for each archive that it does not get. A name that the lock file
// does not have is left out. STENCIL_MIRROR is the address of a folder that has all archives.
package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	lock := flag.String("lock", "hack/binaries.lock", "the lock file")
	into := flag.String("into", "", "the folder for binaries")
	flag.Parse()
	f := fetcher{folder: *into, mirror: os.Getenv("STENCIL_MIRROR"), platform: runtime.GOOS + "-" + runtime.GOARCH, connect: 3 * time.Second, stall: 10 * time.Second, progress: os.Stderr}
	if info, err := os.Stderr.Stat(); err == nil {
		f.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	if err := f.run(context.Background(), *lock, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

// archive is one line of the lock file.
type archive struct {
	name, digest, folder string
	binaries             []string
}

// readLock reads the archives of a platform, such as linux-amd64.
func readLock(file, platform string) ([]archive, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var archives []archive
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if digest, err := hex.DecodeString(fields[min(1, len(fields)-1)]); len(fields) < 4 || err != nil || len(digest) != sha256.Size {
			return nil, fmt.Errorf("%s:%d: a line is an archive, its SHA-256, the address of its folder and names of binaries", file, number)
		}
		if strings.HasSuffix(fields[0], "-"+platform+".tar.gz") {
			archives = append(archives, archive{fields[0], fields[1], strings.TrimSuffix(fields[2], "/"), fields[3:]})
		}
	}
	return archives, nil
}

// fetcher downloads archives.
type fetcher struct {
	// folder is where binaries are stored, below a folder for each digest.
	folder, mirror, platform string
	// connect bounds the time until an answer starts, and stall each wait for more of it.
	connect, stall time.Duration
	progress       io.Writer
	// terminal has progress as one line that changes.
	terminal bool
}

func (f fetcher) run(ctx context.Context, lock string, names []string, out io.Writer) error {
	archives, err := readLock(lock, f.platform)
	if err != nil {
		return err
	}
	for _, each := range archives {
		wanted := slices.DeleteFunc(slices.Clone(each.binaries), func(name string) bool { return !slices.Contains(names, name) })
		if len(wanted) == 0 {
			continue
		}
		if err := f.provide(ctx, each); err != nil {
			fmt.Fprintf(f.progress, "%s: %v\n", each.name, err)
			continue
		}
		for _, name := range wanted {
			fmt.Fprintln(out, name, filepath.Join(f.stored(each), name))
		}
	}
	return nil
}

func (f fetcher) stored(a archive) string { return filepath.Join(f.folder, "published-"+a.digest[:16]) }

// provide downloads an archive and unpacks its binaries, unless they are there. The folder appears whole.
func (f fetcher) provide(ctx context.Context, a archive) error {
	if _, err := os.Stat(f.stored(a)); err == nil {
		return nil
	}
	if err := os.MkdirAll(f.folder, 0o755); err != nil {
		return err
	}
	own, err := os.MkdirTemp(f.folder, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	packed := filepath.Join(own, "archive")
	if err := f.download(ctx, a, packed); err != nil {
		return err
	}
	unpacked := filepath.Join(own, "binaries")
	if err := errors.Join(os.Mkdir(unpacked, 0o755), unpack(packed, unpacked, a.binaries)); err != nil {
		return err
	}
	if err := os.Rename(unpacked, f.stored(a)); err != nil {
		if _, missing := os.Stat(f.stored(a)); missing != nil {
			return err
		}
	}
	return nil
}

// download writes an archive to a file if it has the digest of the lock file.
func (f fetcher) download(ctx context.Context, a archive, to string) error {
	folder := a.folder
	if f.mirror != "" {
		folder = strings.TrimSuffix(f.mirror, "/")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watch := time.AfterFunc(f.connect, func() { stop(fmt.Errorf("no answer from %s within %s", folder, f.connect)) })
	defer watch.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, folder+"/"+a.name, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: f.connect}).DialContext}}
	answer, err := client.Do(request)
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	hash := sha256.New()
	shown := &progress{to: f.progress, terminal: f.terminal, name: a.name, all: answer.ContentLength, began: time.Now()}
	_, err = io.Copy(io.MultiWriter(file, hash, shown), &watched{answer.Body, func() {
		watch.Reset(f.stall)
	}})
	shown.end()
	if err := errors.Join(err, file.Close()); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("no more of it came from %s for %s", folder, f.stall)
		}
		return fmt.Errorf("downloading it from %s: %w", folder, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != a.digest {
		return fmt.Errorf("the archive from %s has SHA-256 %s, want %s", folder, got, a.digest)
	}
	return nil
}

// watched calls alive before each read.
type watched struct {
	io.Reader
	alive func()
}

func (w *watched) Read(p []byte) (int, error) {
	w.alive()
	return w.Reader.Read(p)
}

// progress shows how much of a download is there: one line that changes on a terminal, a line every ten seconds elsewhere.
type progress struct {
	to          io.Writer
	terminal    bool
	name        string
	here, all   int64
	began, last time.Time
}

func (p *progress) Write(part []byte) (int, error) {
	p.here += int64(len(part))
	every := 10 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	if p.last.IsZero() {
		p.last = p.began
	}
	if now := time.Now(); now.Sub(p.last) >= every {
		p.last = now
		p.show()
	}
	return len(part), nil
}

func (p *progress) show() {
	text := fmt.Sprintf("%s: %d MiB", p.name, p.here>>20)
	if p.all > 0 {
		left := time.Duration(float64(time.Since(p.began)) * float64(p.all-p.here) / float64(p.here))
		text = fmt.Sprintf("%s: %d of %d MiB, %s left", p.name, p.here>>20, p.all>>20, left.Round(time.Second))
	}
	if p.terminal {
		fmt.Fprintf(p.to, "\r\033[K%s", text)
	} else {
		fmt.Fprintln(p.to, text)
	}
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.to, "\r\033[K")
	}
}

// mostBinary bounds the size of a binary, in bytes: the largest has 100 MB.
const mostBinary = 1 << 30

// unpack writes the files of an archive with these last names into a folder.
func unpack(packed, folder string, names []string) error {
	file, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer file.Close()
	expanded, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpacking it: %w", err)
	}
	left := slices.Clone(names)
	entries := tar.NewReader(expanded)
	for len(left) > 0 {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no %s", strings.Join(left, ", "))
		}
		if err != nil {
			return fmt.Errorf("unpacking it: %w", err)
		}
		at := slices.Index(left, path.Base(entry.Name))
		if entry.Typeflag != tar.TypeReg || at < 0 {
			continue
		}
		if entry.Size > mostBinary {
			return fmt.Errorf("%s has %d bytes, more than %d", entry.Name, entry.Size, mostBinary)
		}
		binary, err := os.OpenFile(filepath.Join(folder, left[at]), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(binary, entries)
		if err := errors.Join(err, binary.Close()); err != nil {
			return fmt.Errorf("unpacking %s: %w", entry.Name, err)
		}
		left = slices.Delete(left, at, at+1)
	}
	return nil
}
