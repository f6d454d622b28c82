package debian

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ulikunitz/xz"
)

// compressed returns a tar archive.
func compressed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	to, err := xz.NewWriter(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	archive, damaged := tar.NewWriter(to), false
	for _, header := range headers {
		content := header.Uname
		header.Uname = ""
		// A size that is set is larger than that of the content, which then ends.
		damaged = header.Size > 0
		if !damaged {
			header.Size = int64(len(content))
		}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if !damaged {
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// file returns a regular file, whose content is in a field that the format of packages does not use.
func file(name string, mode int64, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Uname: content}
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
}

// ar returns an archive of members, given as names and contents.
func ar(members ...string) []byte {
	var text strings.Builder
	text.WriteString(arMagic)
	for i := 0; i < len(members); i += 2 {
		fmt.Fprintf(&text, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", members[i], 0, 0, 0, "100644", len(members[i+1]), members[i+1])
		if len(members[i+1])%2 == 1 {
			text.WriteString("\n")
		}
	}
	return []byte(text.String())
}

func deb(t *testing.T, name string, headers ...tar.Header) []byte {
	t.Helper()
	return ar("debian-binary", "2.0\n",
		"control.tar.xz", string(compressed(t, file("./control", 0o644, "Package: "+name+"\n"), file("./postinst", 0o755, "#!/bin/sh\n"))),
		"data.tar.xz", string(compressed(t, headers...)))
}

// mirror is a mirror with packages, whose paths are their names.
type mirror struct {
	*httptest.Server
	lock     *Lock
	packages map[string][]byte
	requests atomic.Int64
}

func newMirror(t *testing.T, packages map[string][]byte) (*mirror, Source) {
	t.Helper()
	m := &mirror{lock: &Lock{Snapshot: "20261126T000000Z"}, packages: map[string][]byte{}}
	for name, content := range packages {
		path := "debian/pool/main/" + name + ".deb"
		m.packages["/"+path] = content
		m.lock.Packages = append(m.lock.Packages, Package{
			Name: name, Version: "1.0", Architecture: "all", Size: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(content)), Path: path,
		})
	}
	slices.SortFunc(m.lock.Packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Add(1)
		content, ok := m.packages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(m.Close)
	return m, Source{Mirror: m.URL, Archive: m.URL + "/snapshot", Cache: filepath.Join(t.TempDir(), "cache")}
}

func TestFilesAreThoseOfThePackages(t *testing.T) {
	m, source := newMirror(t, map[string][]byte{
		"liba": deb(t, "liba",
			tar.Header{Typeflag: tar.TypeDir, Name: "./usr/lib/", Mode: 0o755}, file("./usr/lib/liba.so.1.0", 0o644, "a"), link("./usr/lib/liba.so.1", "liba.so.1.0"),
			file("./usr/share/doc/liba/copyright", 0o644, "license"), file("./usr/share/doc/liba/README", 0o644, "read"), file("./usr/share/man/man1/a.1", 0o644, "manual"),
			file("./etc/shared", 0o644, "same")),
		"tool": deb(t, "tool", file("./usr/bin/tool", 0o755, "tool"), link("./usr/share/doc/tool", "liba"), file("./etc/shared", 0o644, "same"), link("./lib64", "/usr/lib")),
	})
	for round := range 2 {
		files, err := source.Files(t.Context(), m.lock)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, each := range files {
			found = append(found, fmt.Sprintf("%s %o %s%s", each.Name, each.Mode, each.Content, each.Link))
		}
		want := []string{
			"usr/lib/liba.so.1.0 644 a", "usr/lib/liba.so.1 777 liba.so.1.0", "usr/share/doc/liba/copyright 644 license", "etc/shared 644 same",
			"var/lib/dpkg/status.d/liba 644 Package: liba\n",
			"usr/bin/tool 755 tool", "usr/share/doc/tool 777 liba", "lib64 777 /usr/lib", "var/lib/dpkg/status.d/tool 644 Package: tool\n",
		}
		if !slices.Equal(found, want) {
			t.Errorf("files %q, want %q", found, want)
		}
		if requests := m.requests.Load(); requests != 2 {
			t.Errorf("%d downloads after round %d, want 2", requests, round)
		}
	}
}

func TestPackagesThatAreNotSupported(t *testing.T) {
	for name, tc := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"a file outside of the root":       {[]tar.Header{file("./../etc/passwd", 0o644, "")}, `"./../etc/passwd" is outside of the root`},
		"an absolute path":                 {[]tar.Header{file("/etc/passwd", 0o644, "")}, `"/etc/passwd" is outside of the root`},
		"a link to the outside":            {[]tar.Header{link("./usr/x", "../../etc")}, `usr/x is a link to "../../etc", which is outside of the root`},
		"a device":                         {[]tar.Header{{Typeflag: tar.TypeBlock, Name: "./dev/sda", Mode: 0o600}}, `dev/sda has type '4'`},
		"a named pipe":                     {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "./run/x", Mode: 0o600}}, `run/x has type '6'`},
		"a hard link":                      {[]tar.Header{{Typeflag: tar.TypeLink, Name: "./x", Linkname: "./y"}}, `x has type '1'`},
		"a program that runs as root":      {[]tar.Header{file("./bin/su", 0o4755, "")}, "bin/su has mode 4755"},
		"a file that others can write":     {[]tar.Header{file("./etc/x", 0o666, "")}, "etc/x has mode 666"},
		"a file of another package":        {[]tar.Header{file("./etc/first", 0o644, "other")}, "the packages first and second have different files etc/first"},
		"another mode in another package":  {[]tar.Header{file("./etc/first", 0o755, "first")}, "the packages first and second have different files etc/first"},
		"a folder that is a file":          {[]tar.Header{file("./etc/first/x", 0o644, "")}, "the package second has the file etc/first/x, and in the package first is etc/first no folder"},
		"a folder that is a link":          {[]tar.Header{file("./lib/x", 0o644, "")}, "the package second has the file lib/x, and in the package first is lib no folder"},
		"a file below a link of its own":   {[]tar.Header{link("./opt", "/etc"), file("./opt/x", 0o644, "")}, "and in the package second is opt no folder"},
		"two different files with a name":  {[]tar.Header{file("./x", 0o644, "1"), file("./x", 0o644, "2")}, "the packages second and second have different files x"},
		"a file larger than the supported": {[]tar.Header{{Typeflag: tar.TypeReg, Name: "./large", Mode: 0o644, Size: maxFileBytes + 1}}, "large: at most 20000 files with at most 268435456 bytes are supported"},
	} {
		t.Run(name, func(t *testing.T) {
			m, source := newMirror(t, map[string][]byte{
				"first":  deb(t, "first", file("./etc/first", 0o644, "first"), link("./lib", "usr/lib")),
				"second": deb(t, "second", tc.headers...),
			})
			if _, err := source.Files(t.Context(), m.lock); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestWhatIsNoPackage(t *testing.T) {
	control := string(compressed(t, file("./control", 0o644, "Package: x\n")))
	for name, tc := range map[string]struct {
		content []byte
		want    string
	}{
		"a page of a proxy":         {[]byte("<html>"), "it is no Debian package"},
		"a header that ends":        {ar("debian-binary", "2.0\n")[:40], "a header is incomplete"},
		"a member that ends":        {ar("debian-binary", "2.0\n")[:70], "member debian-binary ends after the file"},
		"a member twice":            {ar("debian-binary", "2.0\n", "debian-binary", "2.0\n"), "two members debian-binary"},
		"another format":            {ar("debian-binary", "3.0\n"), `format "3.0\n"`},
		"no control archive":        {ar("debian-binary", "2.0\n", "control.tar.gz", ""), "reading control.tar.xz: there is none"},
		"no control file":           {ar("debian-binary", "2.0\n", "control.tar.xz", string(compressed(t))), "has no file control"},
		"another compression":       {ar("debian-binary", "2.0\n", "control.tar.xz", control, "data.tar.zst", ""), "reading data.tar.xz: there is none; other compressions than xz"},
		"what is not compressed":    {ar("debian-binary", "2.0\n", "control.tar.xz", control, "data.tar.xz", "text"), "reading data.tar.xz: "},
		"an archive that ends":      {ar("debian-binary", "2.0\n", "control.tar.xz", control[:40]), "reading control.tar.xz: "},
		"no tar archive in the xz ": {ar("debian-binary", "2.0\n", "control.tar.xz", control, "data.tar.xz", string(xzOf(t, "no archive"))), "reading data.tar.xz: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := unpack(tc.content, needed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func xzOf(t *testing.T, text string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	to, err := xz.NewWriter(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestPackagesAreUnpacked(t *testing.T) {
	m, source := newMirror(t, map[string][]byte{
		"liba": deb(t, "liba", file("./lib/liba.so.1", 0o644, "a"), file("./usr/share/doc/liba/README", 0o644, "read")),
		"libb": deb(t, "libb", file("./usr/bin/b", 0o755, "b"), link("./usr/lib/liba.so", "/lib/liba.so.1"), link("./usr/lib/b", "../bin/b")),
	})
	place := func(name string) string {
		if strings.HasPrefix(name, "usr/share/") {
			return ""
		}
		return strings.Replace(name, "usr/bin/", "bin/", 1)
	}
	folder := t.TempDir()
	if err := source.Unpack(t.Context(), m.lock, folder, place); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lib/liba.so.1": "a", "bin/b": "b", "usr/lib/liba.so": "a"} {
		if content, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(content) != want {
			t.Errorf("%s has %q, %v", name, content, err)
		}
	}
	for name, want := range map[string]string{"usr/lib/liba.so": "../../lib/liba.so.1", "usr/lib/b": "../bin/b"} {
		if to, err := os.Readlink(filepath.Join(folder, name)); err != nil || to != want {
			t.Errorf("%s is a link to %q, %v", name, to, err)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "usr/share")); !os.IsNotExist(err) {
		t.Errorf("what is left out was written: %v", err)
	}
	if info, err := os.Stat(filepath.Join(folder, "bin/b")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := source.Unpack(t.Context(), m.lock, folder, place); err == nil || !strings.Contains(err.Error(), "unpacking lib/liba.so.1 of the package liba 1.0: ") {
		t.Errorf("a file that exists: error %v", err)
	}

	m, source = newMirror(t, map[string][]byte{
		"liba": deb(t, "liba", link("./lib", "/usr/lib"), file("./usr/lib/x", 0o644, "")), "libb": deb(t, "libb", link("./out", "../"), file("./out/x", 0o644, "")),
	})
	if err := source.Unpack(t.Context(), m.lock, t.TempDir(), func(name string) string { return name }); err == nil || !strings.Contains(err.Error(), "outside of the root") {
		t.Errorf("a link to the outside: error %v", err)
	}
}

func TestAFlippedByteIsRejected(t *testing.T) {
	m, source := newMirror(t, map[string][]byte{"liba": deb(t, "liba", file("./x", 0o644, "x"))})
	p := m.lock.Packages[0]
	if _, err := source.Read(t.Context(), m.lock, p); err != nil {
		t.Fatal(err)
	}
	cached := filepath.Join(source.Cache, p.SHA256+".deb")
	content := m.packages["/"+p.Path]
	content[len(content)/2] ^= 1
	if err := os.WriteFile(cached, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), m.lock, p); err == nil || !strings.Contains(err.Error(), cached+": package liba 1.0 has ") || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("in the cache: error %v", err)
	}
	if err := os.Remove(cached); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), m.lock, p); err == nil || !strings.Contains(err.Error(), m.URL+"/"+p.Path+": package liba 1.0 has ") {
		t.Errorf("from the mirror: error %v", err)
	}
	if left, err := os.ReadDir(source.Cache); err != nil || len(left) > 0 {
		t.Errorf("the cache has %v, %v", left, err)
	}
	// All versions are in the archive.
	content[len(content)/2] ^= 1
	m.packages["/snapshot/debian/20261126T000000Z/pool/main/liba.deb"] = content
	delete(m.packages, "/"+p.Path)
	if _, err := source.Read(t.Context(), m.lock, p); err != nil {
		t.Errorf("from the archive: %v", err)
	}
}

func TestAPackageThatIsNowhere(t *testing.T) {
	m, source := newMirror(t, map[string][]byte{"liba": deb(t, "liba")})
	p := m.lock.Packages[0]
	clear(m.packages)
	if _, err := source.Read(t.Context(), m.lock, p); err == nil || strings.Count(err.Error(), "status 404 Not Found") != 2 || !strings.Contains(err.Error(), "downloading the package liba 1.0, which Debian may have replaced: update the lock file") {
		t.Errorf("error %v", err)
	}
}
