package mover

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

func TestAnExportedOVAIsImported(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	s := newSite(t, pkg)
	inspect := fromHTTP(transfer.Inspect, s.URL+"/web.ova")
	state := succeed(t, mounts(t, nil), inspect)
	if s.served.Load() > 200<<10 {
		t.Errorf("the inspection has read %d of %d bytes in %d requests", s.served.Load(), len(pkg), s.requests)
	}
	if plan := state.Plan; plan.Format != "OVA" || plan.Size != int64(len(pkg)) || plan.Verified != "SHA-256" || plan.Revision != `"one"` || strings.Contains(string(plan.Template), "team") {
		t.Errorf("plan %+v of template %s", plan, plan.Template)
	}
	task := toImport(inspect, state.Plan)
	task.Checksum = digestOf(pkg)
	f := volumes(t, task)
	s.served.Store(0)
	state = succeed(t, f, task)
	isImported(t, f, task)
	// The package once, and before it the first byte and the first block, which show what it is.
	if s.served.Load() > int64(len(pkg))+1+32<<10 {
		t.Errorf("the import has read %d bytes, and the package has %d", s.served.Load(), len(pkg))
	}
	for _, d := range state.Disks {
		if d.Done != d.Total || d.Done == 0 || d.Digest == "" {
			t.Errorf("progress %+v", d)
		}
	}
}

func TestImportsContinueAfterCuts(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	for name, tc := range map[string]struct {
		change func(*site)
		served int
	}{
		"with ranges, what was received is not sent again": {func(s *site) { s.cut = 1 << 20 }, len(pkg) + 1},
		"without ETag":                    {func(s *site) { s.cut, s.etag = 1<<20, "" }, len(pkg) + 1},
		"a server that sends nothing":     {func(s *site) { s.cut, s.cuts, s.stall = 3<<20, 1, true }, len(pkg) + 1},
		"a server without ranges":         {func(s *site) { s.cut, s.cuts, s.noRanges = 3<<20, 2, true }, 2*len(pkg) + 6<<20},
		"a server that answers 503 first": {func(s *site) { s.instead = failing(2) }, len(pkg) + 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pkg)
			inspect := fromHTTP(transfer.Inspect, s.URL)
			task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
			task.Revision, task.Limits.StallSeconds = "", 1
			f := volumes(t, task)
			s.mutex.Lock()
			s.served.Store(0)
			tc.change(s)
			s.mutex.Unlock()
			succeed(t, f, task)
			isImported(t, f, task)
			s.mutex.Lock()
			defer s.mutex.Unlock()
			// What was on the way when a connection was cut may be sent again.
			if s.served.Load() < int64(len(pkg)) || s.served.Load() > int64(tc.served)+1<<20 {
				t.Errorf("%d bytes were sent, want %d", s.served.Load(), tc.served)
			}
		})
	}
}

// failing answers the first requests with 503.
func failing(left int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if left--; left < 0 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
}

// member is a file of an archive.
type member struct {
	tar.Header
	content []byte
}

// members reads an archive.
func members(t testing.TB, pkg []byte) (all []member) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(pkg)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		content, readErr := io.ReadAll(r)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		all = append(all, member{*header, content})
	}
}

// repack changes the members of an archive.
func repack(t testing.TB, pkg []byte, change func([]member) []member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, each := range change(members(t, pkg)) {
		each.Size = int64(len(each.content))
		_, err := w.Write(nil)
		if err = errors.Join(err, w.WriteHeader(&each.Header)); err == nil {
			_, err = w.Write(each.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func withoutManifest(all []member) []member {
	return slices.DeleteFunc(all, func(m member) bool { return strings.HasSuffix(m.Name, ".mf") })
}

func descriptorLast(all []member) []member { return append(all[1:], all[0]) }

// damage changes a byte of the CD, which no format protects.
func damage(pkg []byte) []byte {
	pkg = bytes.Clone(pkg)
	pkg[bytes.Index(pkg, toolsDisk()[100<<10:101<<10])] ^= 1
	return pkg
}

func TestTheDescriptorMayComeLast(t *testing.T) {
	pkg := repack(t, packageOf(t, v1beta1.ExportOVA), descriptorLast)
	s := newSite(t, pkg)
	inspect := fromHTTP(transfer.Inspect, s.URL)
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	f := volumes(t, task)
	succeed(t, f, task)
	isImported(t, f, task)

	s.noRanges = true
	fails(t, f, task, transfer.Failure{Reason: transfer.ReasonUnsupported, Message: "the file of the disk fedora.44 comes before the descriptor, and the server does not support ranges"})
}

func TestFailedImports(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	zero := "sha256:" + strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		pkg    []byte
		change func(*site, *transfer.Task)
		want   transfer.Failure
	}{
		"another checksum": {pkg, func(_ *site, task *transfer.Task) { task.Checksum = zero },
			transfer.Failure{Reason: transfer.ReasonChecksumMismatch, Message: "the package has the digest " + digestOf(pkg) + ", and " + zero + " is requested"}},
		"a member that is not that of the manifest": {damage(pkg), nil,
			transfer.Failure{Reason: transfer.ReasonManifestMismatch, Message: `disk tools: OVA, member "web-tools.iso": has the SHA256 digest ` + digestOf(damagedCD())[7:] + ", and " + digestOf(toolsDisk())[7:] + " according to the manifest; it was changed or damaged"}},
		"no manifest, though it is required": {repack(t, pkg, withoutManifest), func(_ *site, task *transfer.Task) { task.Verification = v1beta1.ImportVerificationRequire },
			transfer.Failure{Reason: transfer.ReasonManifestMissing, Message: "OVA: contains no manifest, so its content cannot be verified; create the OVA with a manifest, or import it without verification"}},
		"another ETag than at the inspection": {pkg, func(s *site, _ *transfer.Task) { s.etag = `"two"` },
			transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: "the source has changed since it was inspected: create the import again"}},
		"another descriptor than at the inspection": {pkg, func(_ *site, task *transfer.Task) { task.Description = zero },
			transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: "the descriptor of the package has changed since it was inspected: create the import again"}},
		"another content after a cut": {pkg, func(s *site, _ *transfer.Task) {
			s.cut, s.cuts = 1<<20, 1
			left := 1
			s.instead = func(http.ResponseWriter, *http.Request) bool {
				if left--; left < 0 {
					s.etag = `"two"`
				}
				return false
			}
		}, transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: "URL: the file has changed while it was read; start again"}},
		"a server without ranges that is always cut": {pkg, func(s *site, _ *transfer.Task) { s.cut, s.noRanges = 1<<20, true },
			transfer.Failure{Reason: transfer.ReasonUnreachableSource, Retry: true, Message: "URL: the connection was cut: unexpected EOF"}},
		"a volume that is too small": {pkg, func(_ *site, task *transfer.Task) { task.Disks[1].Size += 2 << 20 },
			transfer.Failure{Reason: transfer.ReasonVolumeTooSmall, Message: "the volume of the disk tools has 1355776 bytes, and the disk has 2404352"}},
		"a disk that is larger than that of the task": {pkg, func(_ *site, task *transfer.Task) { task.Disks[0].Size = 1 << 20 },
			transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: "the disk fedora.44 has 25165824 bytes, and 1048576 according to the descriptor"}},
		"too many disks": {pkg, func(_ *site, task *transfer.Task) { task.Limits.Disks = 1 },
			transfer.Failure{Reason: transfer.ReasonLimitExceeded, Message: "the package has 2 disks, and at most 1 are allowed"}},
		"too many bytes": {pkg, func(_ *site, task *transfer.Task) { task.Limits.Bytes = 1 << 20 },
			transfer.Failure{Reason: transfer.ReasonLimitExceeded, Message: "the disks of the package have 25473024 bytes, and at most 1048576 are allowed"}},
		"a file that is missing": {pkg, func(_ *site, task *transfer.Task) { task.Disks[0].File = "other.vmdk" },
			transfer.Failure{Reason: transfer.ReasonSourceChanged, Message: `the package has no file "other.vmdk" for the disk fedora.44`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, tc.pkg)
			inspect := fromHTTP(transfer.Inspect, s.URL+"/web.ova?signature=secret")
			task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
			f := volumes(t, task)
			s.mutex.Lock()
			if tc.change != nil {
				tc.change(s, task)
			}
			s.mutex.Unlock()
			tc.want.Message = strings.Replace(tc.want.Message, "URL", s.URL+"/web.ova", 1)
			fails(t, f, task, tc.want)
		})
	}
}

func damagedCD() []byte {
	cd := toolsDisk()
	cd[100<<10] ^= 1
	return cd
}

func TestWithoutVerificationDigestsAreNotCompared(t *testing.T) {
	s := newSite(t, damage(packageOf(t, v1beta1.ExportOVA)))
	inspect := fromHTTP(transfer.Inspect, s.URL)
	inspect.Verification = v1beta1.ImportVerificationSkip
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	succeed(t, volumes(t, task), task)
}

func TestFailedInspections(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	answer := func(code int) func(*site, *transfer.Task) {
		return func(s *site, _ *transfer.Task) {
			s.instead = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
		}
	}
	redirect := func(to func(*site) string) func(*site, *transfer.Task) {
		return func(s *site, task *transfer.Task) {
			task.AllowedNetworks = []string{"127.0.0.1/32"}
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, to(s), http.StatusFound)
				return true
			}
		}
	}
	named := func(header tar.Header) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			return repack(t, pkg, func(all []member) []member { return append([]member{{Header: header}}, all...) })
		}
	}
	for name, tc := range map[string]struct {
		pkg    func(t *testing.T) []byte
		change func(*site, *transfer.Task)
		want   transfer.Failure
	}{
		"an address that is not allowed": {nil, func(_ *site, task *transfer.Task) { task.AllowedNetworks = nil },
			transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "URL: 127.0.0.1: the address is not public: allow its network in the chart's value transfers.allowedNetworks"}},
		"a redirect to an address that is not allowed": {nil, redirect(func(s *site) string { return strings.Replace(s.URL, "127.0.0.1", "127.0.0.2", 1) + "/?a=secret" }),
			transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "OTHER: 127.0.0.2: the address is not public: allow its network in the chart's value transfers.allowedNetworks"}},
		"a redirect to a file": {nil, redirect(func(*site) string { return "file:///etc/passwd" }),
			transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: `URL redirects to an address of the scheme "file"`}},
		"redirects without an end": {nil, redirect(func(s *site) string { return s.URL + "/web.ova" }),
			transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "URL redirects more than 10 times"}},
		"no such file": {nil, answer(404),
			transfer.Failure{Reason: transfer.ReasonUnreachableSource, Message: "URL: the server answers 404 Not Found"}},
		"other credentials": {nil, answer(401),
			transfer.Failure{Reason: transfer.ReasonSourceDenied, Message: "URL: the server answers 401 Unauthorized: check the credentials of the source"}},
		"a server that fails": {nil, answer(500),
			transfer.Failure{Reason: transfer.ReasonUnreachableSource, Retry: true, Message: "URL: the server answers 500 Internal Server Error"}},
		"a web page": {func(*testing.T) []byte { return []byte(strings.Repeat("<html>", 400)) }, nil,
			transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: "OVA: cannot be read: archive/tar: invalid tar header"}},
		"an empty archive": {func(*testing.T) []byte { return make([]byte, 1024) }, nil,
			transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: "OVA: contains no OVF descriptor, a member that ends in .ovf; it may be truncated"}},
		"a name that leads elsewhere": {named(tar.Header{Name: "../../etc/cron.d/a", Mode: 0o644}), nil,
			transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: `OVA, member "../../etc/cron.d/a": has a name that is not accepted: an OVA has no folders, and names of at most 255 bytes without control characters; pack it again without the folder`}},
		"a symbolic link": {named(tar.Header{Name: "a", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}), nil,
			transfer.Failure{Reason: transfer.ReasonNotAPackage, Message: `OVA, member "a": is a symbolic link; an OVA contains regular files only`}},
		"too many disks": {nil, func(_ *site, task *transfer.Task) { task.Limits.Disks = 1 },
			transfer.Failure{Reason: transfer.ReasonLimitExceeded, Message: "the package has 2 disks, and at most 1 are allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			content := pkg
			if tc.pkg != nil {
				content = tc.pkg(t)
			}
			s := newSite(t, content)
			task := fromHTTP(transfer.Inspect, s.URL+"/web.ova?signature=secret")
			if tc.change != nil {
				tc.change(s, task)
			}
			tc.want.Message = strings.NewReplacer("URL", s.URL+"/web.ova", "OTHER", strings.Replace(s.URL, "127.0.0.1", "127.0.0.2", 1)+"/").Replace(tc.want.Message)
			fails(t, mounts(t, nil), task, tc.want)
		})
	}
}

func TestCredentialsAreSentToTheNamedHostOnly(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	for name, tc := range map[string]struct {
		keys map[string][]byte
		want string
	}{
		"a password": {map[string][]byte{"username": []byte("u"), "password": []byte("p\n")}, "Basic dTpw"},
		"a token":    {map[string][]byte{"token": []byte("t")}, "Bearer t"},
	} {
		t.Run(name, func(t *testing.T) {
			f := mounts(t, nil)
			for key, value := range tc.keys {
				write(t, f.path(transfer.CredentialsFolder, key), value)
			}
			other := newSite(t, pkg)
			other.instead = func(_ http.ResponseWriter, r *http.Request) bool {
				if got := r.Header.Get("Authorization") + r.Header.Get("Referer"); got != "" {
					t.Errorf("another host gets %q", got)
				}
				return false
			}
			s := newSite(t, pkg)
			s.user = tc.want
			succeed(t, f, fromHTTP(transfer.Inspect, s.URL))
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				if got := r.Header.Get("Authorization"); got != tc.want {
					t.Errorf("the host gets %q", got)
				}
				http.Redirect(w, r, other.URL, http.StatusFound)
				return true
			}
			succeed(t, f, fromHTTP(transfer.Inspect, s.URL))
		})
	}
}

func TestAFileOfAVolumeIsImported(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	inspect := fromHTTP(transfer.Inspect, "")
	inspect.Source = &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Path: "images/web.ova"}}
	task := toImport(inspect, succeed(t, mounts(t, map[string][]byte{transfer.SourceFolder + "/images/web.ova": pkg}), inspect).Plan)
	f := volumes(t, task)
	write(t, f.path(transfer.SourceFolder, "images/web.ova"), pkg)
	succeed(t, f, task)
	isImported(t, f, task)

	write(t, f.path("secret"), pkg)
	if err := os.Symlink(f.path("secret"), f.path(transfer.SourceFolder, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]transfer.Failure{
		"../../../../secret": {Reason: transfer.ReasonUnreachableSource, Message: `the volume has no file "../../../../secret": path escapes from parent`},
		"link":               {Reason: transfer.ReasonUnreachableSource, Message: `the volume has no file "link": path escapes from parent`},
		"images":             {Reason: transfer.ReasonNotAPackage, Message: `"images" in the volume is no regular file`},
		"none":               {Reason: transfer.ReasonUnreachableSource, Message: `the volume has no file "none": no such file or directory`},
	} {
		inspect.Source = &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Path: path}}
		fails(t, f, inspect, want)
	}
}
