package debian

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheLockFiles(t *testing.T) {
	for _, set := range append(slices.Clone(Defaulters), Toolchain) {
		t.Run(set.File, func(t *testing.T) {
			lock, err := set.Lock()
			if err != nil {
				t.Fatal(err)
			}
			if text := lock.Marshal(); !bytes.Equal(text, set.text) || lock.Distribution != set.distribution || lock.Architecture != set.Architecture {
				t.Errorf("it is not what is written: \n%s", text)
			}
			found := map[string]bool{}
			for _, p := range lock.Packages {
				found[p.Name] = true
			}
			for _, each := range append(slices.Clone(set.wanted), "libc6") {
				if !found[each] {
					t.Errorf("%s is missing", each)
				}
			}
			for _, each := range set.leftOut {
				if found[each] {
					t.Errorf("%s is left out", each)
				}
			}
			if set.only && len(found) != len(set.wanted) {
				t.Errorf("%d packages, want %d", len(found), len(set.wanted))
			}
		})
	}
}

func TestPackageURLs(t *testing.T) {
	p := Package{Name: "libgcc-s1", Version: "1:7.2+dfsg-7~deb12u1", Architecture: "amd64", Distribution: "debian-12"}
	if got, want := p.URL(), "pkg:deb/debian/libgcc-s1@1%3A7.2%2Bdfsg-7~deb12u1?arch=amd64&distro=debian-12"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLockFilesThatAreRejected(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	const snapshot = "distribution debian-12\nsnapshot 20261126T000000Z\n"
	line := func(replace ...string) string {
		return strings.NewReplacer(replace...).Replace("zlib1g 1:1.2 amd64 100 " + sum + " debian/pool/main/z/zlib1g.deb\n")
	}
	if _, err := Parse([]byte(snapshot + line())); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                {"", "0 packages"},
		"no snapshot":            {line(), `the snapshot "" and the distribution ""`},
		"no distribution":        {"snapshot 20261126T000000Z\n" + line(), `the snapshot "20261126T000000Z" and the distribution ""`},
		"another distribution":   {"distribution ubuntu\n", "or distribution and a name such as debian-12"},
		"another time":           {"snapshot yesterday\n", "line 1 of the lock file: want snapshot and a time"},
		"a field too few":        {snapshot + line(" amd64", ""), "line 3 of the lock file: 5 fields"},
		"another architecture":   {snapshot + line("amd64", "riscv64"), `architecture "riscv64"`},
		"two architectures":      {snapshot + line() + line("amd64", "arm64", "zlib1g ", "zlib2g "), `architecture "arm64": packages before are for amd64`},
		"a size that is no size": {snapshot + line(" 100 ", " 1e9 "), `size "1e9"`},
		"a large package":        {snapshot + line(" 100 ", " 67108865 "), "up to 67108864"},
		"a short checksum":       {snapshot + line(sum, sum[2:]), "is no SHA-256"},
		"a path to the outside":  {snapshot + line("main/z/", "../../../"), "debian/pool/… or debian-security/pool/…"},
		"another host":           {snapshot + line("debian/pool", "http://example.com/pool"), "debian/pool/… or debian-security/pool/…"},
		"a package twice":        {snapshot + line() + line(), "zlib1g is after zlib1g"},
		"no order":               {snapshot + line() + line("zlib1g ", "libc6 "), "libc6 is after zlib1g"},
		"a name with a slash":    {snapshot + line("zlib1g ", "z/lib "), `"z/lib" is no name`},
		"a version with a slash": {snapshot + line("1:1.2", "1/2"), `"1/2" is no version`},
		"many packages":          {snapshot + many(line), "at most 512 are supported"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func many(line func(...string) string) string {
	var text strings.Builder
	for i := range maxPackages + 1 {
		text.WriteString(line("zlib1g ", "z"+string(rune('a'+i/26/26))+string(rune('a'+i/26%26))+string(rune('a'+i%26))+" "))
	}
	return text.String()
}

func TestWhatAptPrintsIsLocked(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.FixedZone("", 3600))
	lock, err := Defaulters[0].lockOf("'https://deb.debian.org/debian/pool/main/z/zlib/zlib1g_1.2%2bx_amd64.deb' zlib1g_1%3a1.2+x_amd64.deb 86684 SHA256:"+sum+"\n"+
		"'https://deb.debian.org/debian/pool/main/a/adduser/adduser_3_all.deb' adduser_3_all.deb 5 SHA256:"+sum+"\n"+
		"'http://mirror.example.com/x/debian-security/pool/updates/main/o/libssl3_3_amd64.deb' libssl3_3_amd64.deb 7 SHA256:"+sum+"\n", at)
	if err != nil {
		t.Fatal(err)
	}
	want := header + "distribution debian-12\nsnapshot 20261126T110000Z\nlibssl3 3 amd64 7 " + sum + " debian-security/pool/updates/main/o/libssl3_3_amd64.deb\n" +
		"zlib1g 1:1.2+x amd64 86684 " + sum + " debian/pool/main/z/zlib/zlib1g_1.2%2bx_amd64.deb\n"
	if got := string(lock.Marshal()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := Defaulters[0].lockOf("'https://deb.debian.org/debian/pool/z.deb' z_1_all.deb 5 MD5Sum:00\n", at); err == nil || !strings.Contains(err.Error(), "apt-get printed") {
		t.Errorf("a line without SHA-256: error %v", err)
	}
}
