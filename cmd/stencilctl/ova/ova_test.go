package ova_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	command "github.com/vmstencil/stencil/cmd/stencilctl/ova"
	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/vmdk"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/ova"
)

const capacity = 8 << 20

// descriptor is one of a VM with a disk. Its arguments are attributes of the file, the format and the capacity.
const descriptor = `<?xml version="1.0"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData">
  <References><File ovf:id="file1" ovf:href="web-disk1.vmdk"%s/></References>
  <DiskSection><Info>Disks</Info><Disk ovf:diskId="disk1" ovf:fileRef="file1" ovf:format="%s" ovf:capacity="%d"/></DiskSection>
  <NetworkSection><Info>Networks</Info><Network ovf:name="VM Network"/></NetworkSection>
  <VirtualSystem ovf:id="web"><Info>A server</Info>
    <VirtualHardwareSection><Info>Hardware</Info>
      <Item><rasd:InstanceID>1</rasd:InstanceID><rasd:ElementName>CPU</rasd:ElementName><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>2</rasd:VirtualQuantity></Item>
      <Item><rasd:InstanceID>2</rasd:InstanceID><rasd:ElementName>Memory</rasd:ElementName><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>1024</rasd:VirtualQuantity><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits></Item>
      <Item><rasd:InstanceID>3</rasd:InstanceID><rasd:ElementName>Disk 1</rasd:ElementName><rasd:ResourceType>17</rasd:ResourceType><rasd:HostResource>ovf:/disk/disk1</rasd:HostResource></Item>
      <Item><rasd:InstanceID>4</rasd:InstanceID><rasd:ElementName>NIC 1</rasd:ElementName><rasd:ResourceType>10</rasd:ResourceType><rasd:ResourceSubType>E1000</rasd:ResourceSubType><rasd:Connection>VM Network</rasd:Connection></Item>
    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
`

// content is what the disk has: data at its begin and its end, and zeros between them.
func content() []byte {
	raw := make([]byte, capacity)
	copy(raw, "first sector")
	copy(raw[capacity-512:], "last sector")
	return raw
}

// image is the disk as VMDK.
func image(t *testing.T) []byte {
	t.Helper()
	source, err := disk.OpenRaw(bytes.NewReader(content()), capacity)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := vmdk.NewEncoder(source, vmdk.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if _, err := encoder.Write(t.Context(), &written); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

// pack writes an OVA with a manifest, and returns its path.
func pack(t *testing.T, attributes, format string, size int64, stored []byte) string {
	t.Helper()
	envelope, err := ovf.Decode(strings.NewReader(fmt.Sprintf(descriptor, attributes, format, size)))
	if err != nil {
		t.Fatal(err)
	}
	envelope.Files[0].Size = int64(len(stored))
	path := filepath.Join(t.TempDir(), "web.ova")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := ova.NewWriter(file, envelope, ova.WriterOptions{Name: "web"})
	for _, step := range []func() error{
		func() error { return err },
		func() error { return writer.Add(bytes.NewReader(stored)) },
		func() error { return writer.Close() },
		file.Close,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// web returns the path of a good OVA.
func web(t *testing.T) string {
	t.Helper()
	return pack(t, "", ovf.FormatVMDKStream, capacity, image(t))
}

// run runs a command of the group and returns its exit code, what it prints and its messages, with the error.
func run(ctx context.Context, arguments ...string) (code int, out, messages string) {
	var written, errors bytes.Buffer
	group := command.NewCommand(cli.Streams{In: strings.NewReader(""), Out: &written, Err: &errors})
	group.SilenceErrors, group.SilenceUsage = true, true
	group.SetArgs(arguments)
	err := group.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(&errors, err)
	}
	return cli.ExitCode(err), written.String(), errors.String()
}

func TestInspectShowsThePlan(t *testing.T) {
	path := web(t)
	code, out, messages := run(t.Context(), "inspect", path, "-n", "golden", "--name", "server", "--disk-bus", "virtio")
	for _, want := range []string{
		"OVF 1, 1 virtual system, 1 file, not signed\n",
		"virtual system web becomes VirtualMachineTemplate server\n",
		"VOLUME   FILE             FORMAT   STORED",
		"disk0    web-disk1.vmdk   vmdk",
		"server-disk0",
		"web-disk1.vmdk, 8Mi, at virtio",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if code != cli.ExitOK || messages != "" {
		t.Errorf("exit code %d, %s", code, messages)
	}
	code, out, messages = run(t.Context(), "inspect", path, "-n", "golden", "-o", "json")
	if code != cli.ExitOK || !strings.Contains(out, `"claim": "web-disk0"`) || !strings.Contains(out, `"kind": "VirtualMachineTemplate"`) {
		t.Errorf("exit code %d, %s%s", code, out, messages)
	}
	if code, out, messages = run(t.Context(), "inspect", path, "--descriptor"); code != cli.ExitOK || !strings.HasPrefix(out, "<?xml") {
		t.Errorf("exit code %d, %s%s", code, out, messages)
	}
}

func TestAnInstanceTypeHasTheSizes(t *testing.T) {
	code, out, messages := run(t.Context(), "inspect", web(t), "-n", "golden", "--instancetype", "u1.medium")
	for _, want := range []string{"in the package; VirtualMachines have those of the instance type u1.medium\n", "in the package; VirtualMachines have that of the instance type u1.medium\n", "instance type u1.medium, as requested; VirtualMachines cannot be created in a cluster without it\n"} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q is not in\n%s%s", code, want, out, messages)
		}
	}
	code, out, messages = run(t.Context(), "inspect", web(t), "-n", "golden", "--instancetype", "u1.medium", "-o", "json")
	if code != cli.ExitOK || !strings.Contains(out, `"instancetype": {`) || strings.Contains(out, `"cores"`) || strings.Contains(out, `"guest"`) {
		t.Errorf("exit code %d, %s%s", code, out, messages)
	}
}

// TestCompressionsOfOVAs packs a disk of zeros and text in each compression.
func TestCompressionsOfOVAs(t *testing.T) {
	folder := convertedFolder(t)
	raw := filepath.Join(folder, "web-disk0.raw")
	disk, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Fields("admission reconcile condition binding backing file template volume disk layer digest manifest envelope descriptor grain frame")
	for i, random := 0, uint32(1); i < len(disk)/2; random = random*1664525 + 1013904223 {
		i += copy(disk[i:len(disk)/2], text[random>>28]+" ")
	}
	write(t, raw, string(disk))
	sizes := map[string]int64{}
	for _, compression := range []string{"", "Fast", "Best", "None"} {
		packed, again := filepath.Join(t.TempDir(), "web.ova"), filepath.Join(t.TempDir(), "again")
		arguments := []string{"convert", folder, "--output-file", packed, "-p", "NAME=web-1"}
		if compression != "" {
			arguments = append(arguments, "--compression", compression)
		}
		if code, _, messages := run(t.Context(), arguments...); code != cli.ExitOK {
			t.Fatalf("exit code %d, %s", code, messages)
		}
		info, err := os.Stat(packed)
		if err != nil {
			t.Fatal(err)
		}
		sizes[compression] = info.Size()
		if code, _, messages := run(t.Context(), "convert", packed, "--output-folder", again, "-n", "golden", "--verification", "Require"); code != cli.ExitOK {
			t.Fatalf("exit code %d, %s", code, messages)
		}
		if got, err := os.ReadFile(filepath.Join(again, "web-disk0.raw")); err != nil || !bytes.Equal(got, disk) {
			t.Errorf("%s: the disk has other content, or %v", compression, err)
		}
	}
	if sizes[""] != sizes["Fast"] || sizes["Best"] >= sizes["Fast"] || sizes["Fast"] >= sizes["None"] {
		t.Errorf("sizes %v", sizes)
	}
}

func TestConvertWritesTemplatesAndRawDisks(t *testing.T) {
	zipped := func(content []byte) []byte {
		var written bytes.Buffer
		writer := gzip.NewWriter(&written)
		if _, err := writer.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		return written.Bytes()
	}
	for what, path := range map[string]string{
		"VMDK":            web(t),
		"compressed VMDK": pack(t, ` ovf:compression="gzip"`, ovf.FormatVMDKStream, capacity, zipped(image(t))),
	} {
		t.Run(what, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "web")
			code, out, messages := run(t.Context(), "convert", path, "--output-folder", folder, "-n", "golden")
			if code != cli.ExitOK {
				t.Fatalf("exit code %d, %s", code, messages)
			}
			template, raw := filepath.Join(folder, "web.yaml"), filepath.Join(folder, "web-disk0.raw")
			if out != template+"\n"+raw+"\n" {
				t.Errorf("it prints\n%s", out)
			}
			if !strings.Contains(messages, "the digests of 3 members are those of the manifest\n") || !strings.Contains(messages, "becomes VirtualMachineTemplate web") {
				t.Errorf("messages\n%s", messages)
			}
			if got, err := os.ReadFile(raw); err != nil || !bytes.Equal(got, content()) {
				t.Errorf("the disk has other content, or %v", err)
			}
			if text, err := os.ReadFile(template); err != nil || !strings.Contains(string(text), "kind: VirtualMachineTemplate\n") || !strings.Contains(string(text), "web-disk0") {
				t.Errorf("%v, template\n%s", err, text)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
				t.Errorf("%v, the folder has %v", err, entries)
			}
		})
	}
}

// TestTheContentOfADiskCounts has descriptors that say something else than the content of the disk, which is a VMDK. All three commands say so.
func TestTheContentOfADiskCounts(t *testing.T) {
	vmdk, want := image(t), content()
	for name, tc := range map[string]struct {
		attributes, format string
		size               int64
		stored             []byte
		warning            string
	}{
		"no format":                        {"", "", capacity, vmdk, ""},
		"the format of VMware Workstation": {"", "http://www.vmware.com/specifications/vmdk.html#sparse", capacity, vmdk, ""},
		"an unknown format":                {"", "http://example.com/format", capacity, vmdk, "file web-disk1.vmdk: it is vmdk by its content, and the descriptor says otherwise"},
		"another format":                   {"", "http://www.gnome.org/~markmc/qcow-image-format.html", capacity, vmdk, "file web-disk1.vmdk: it is vmdk by its content, and the descriptor says otherwise"},
		"a smaller disk":                   {"", ovf.FormatVMDKStream, capacity / 2, vmdk, "file web-disk1.vmdk: the disk has 8388608 bytes, and 4194304 according to the descriptor: it gets the larger size"},
		"compressed without saying so":     {"", ovf.FormatVMDKStream, capacity, packed(t, vmdk), "file web-disk1.vmdk: it is compressed with gzip, and the descriptor does not say so"},
	} {
		t.Run(name, func(t *testing.T) {
			path, folder := pack(t, tc.attributes, tc.format, tc.size, tc.stored), filepath.Join(t.TempDir(), "out")
			for _, arguments := range [][]string{{"inspect", path}, {"validate", path}, {"convert", path, "--output-folder", folder}} {
				code, out, messages := run(t.Context(), arguments...)
				if said := strings.Contains(out+messages, "warning: "); code != cli.ExitOK || said != (tc.warning != "") || !strings.Contains(out+messages, tc.warning) {
					t.Errorf("%s: exit code %d\n%s%s", arguments[0], code, out, messages)
				}
			}
			got, err := os.ReadFile(filepath.Join(folder, "web-disk0.raw"))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("the disk has %d bytes, want %d (%v)", len(got), len(want), err)
			}
			template, err := os.ReadFile(filepath.Join(folder, "web.yaml"))
			if err != nil || !strings.Contains(string(template), "storage: 8Mi") {
				t.Errorf("%v\n%s", err, template)
			}
		})
	}
	unreadable := pack(t, "", ovf.FormatVMDKStream, capacity, []byte("no image"))
	for _, command := range []string{"inspect", "validate"} {
		const want = "warning: file web-disk1.vmdk: it cannot be converted: vmdk"
		if code, out, messages := run(t.Context(), command, unreadable); code != cli.ExitOK || !strings.Contains(out+messages, want) {
			t.Errorf("%s: exit code %d\n%s%s", command, code, out, messages)
		}
	}
}

// packed compresses with gzip.
func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhatIsWrongIsReported has everything that can be wrong with the files and the flags. Nothing may be left.
func TestWhatIsWrongIsReported(t *testing.T) {
	good := web(t)
	changed := changed(t, good)
	folder := filepath.Join(t.TempDir(), "out")
	convert := func(path string, more ...string) []string {
		return append([]string{"convert", path, "--output-folder", folder}, more...)
	}
	lying := image(t)
	key, certificate := signer(t, 2048)
	weakKey, weakCertificate := signer(t, 1024)
	exists := filepath.Join(t.TempDir(), "exists.ova")
	write(t, exists, "something")
	signed := filepath.Join(filepath.Dir(folder), "signed.ova")
	text := filepath.Join(t.TempDir(), "text.ova")
	write(t, text, "no archive")
	bare := withoutManifest(t, good)
	for what, each := range map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"no file":                           {[]string{"inspect", "none.ova"}, cli.ExitUsage, "open none.ova: no such file or directory"},
		"no archive":                        {[]string{"inspect", text}, cli.ExitUsage, text + ": OVA: is truncated"},
		"a bus":                             {[]string{"inspect", good, "--disk-bus", "ide"}, cli.ExitUsage, `--disk-bus: "ide" is none of sata, scsi, virtio`},
		"a delivery":                        {[]string{"inspect", good, "--delivery", "Mail"}, cli.ExitUsage, `--delivery: "Mail" is none of Environment, CloudInit, None`},
		"a network":                         {[]string{"inspect", good, "--network", "LAN=pod"}, cli.ExitUsage, "LAN"},
		"a configuration":                   {[]string{"inspect", good, "--deployment-option", "huge"}, cli.ExitUsage, "huge"},
		"an instance type":                  {[]string{"inspect", good, "--instancetype", "Large One"}, cli.ExitUsage, `the instance type "Large One" is not the name of an object`},
		"convert, a compression of nothing": {convert(good, "--compression", "Fast"), cli.ExitUsage, "--compression needs --output-file: disks in a folder are not compressed"},
		"convert, an unknown compression":   {[]string{"convert", filepath.Dir(good), "--output-file", signed, "--compression", "Strong"}, cli.ExitUsage, "must be one of Fast, Best, None"},
		"validate, changed":                 {[]string{"validate", changed}, cli.ExitFindings, `member "web-disk1.vmdk": has the SHA256 digest`},
		"validate, no manifest":             {[]string{"validate", bare}, cli.ExitFindings, "contains no manifest"},
		"validate, not signed":              {[]string{"validate", good, "--ca", certificate}, cli.ExitFindings, "not signed"},
		"validate, no certificate":          {[]string{"validate", good, "--ca", text}, cli.ExitUsage, text + " has no certificate in PEM"},
		"convert, changed":                  {convert(changed), cli.ExitUsage, `member "web-disk1.vmdk": has the SHA256 digest`},
		"convert, no manifest":              {convert(bare, "--verification", "Require"), cli.ExitUsage, "contains no manifest"},
		"convert, not signed":               {convert(good, "--ca", certificate), cli.ExitUsage, "not signed"},
		"convert, signed and skip":          {convert(good, "--ca", certificate, "--verification", "Skip"), cli.ExitUsage, "--ca needs the digests: --verification must not be Skip"},
		"convert, no VMDK":                  {convert(pack(t, "", ovf.FormatVMDKStream, capacity, []byte("no image"))), cli.ExitUsage, "web-disk1.vmdk: vmdk"},
		"convert, a cut VMDK":               {convert(pack(t, "", ovf.FormatVMDKStream, capacity, lying[:len(lying)/2])), cli.ExitUsage, "web-disk1.vmdk: vmdk"},
		"convert, an unknown format":        {convert(pack(t, "", "http://example.com/format", capacity, []byte("no image"))), cli.ExitUsage, `web-disk1.vmdk: the format "http://example.com/format" is not supported: VMDK, VHD, VHDX, qcow2, raw and ISO are`},
		"convert, a folder":                 {[]string{"convert", good, "--output-folder", filepath.Dir(good)}, cli.ExitUsage, "file exists"},
		"convert, no gzip":                  {convert(pack(t, ` ovf:compression="gzip"`, ovf.FormatVMDKStream, capacity, lying)), cli.ExitUsage, "gzip: invalid header"},
		"sign, the output exists":           {[]string{"sign", good, "--key", key, "--cert", certificate, "--output-file", exists}, cli.ExitUsage, exists + " exists"},
		"sign, another key":                 {[]string{"sign", good, "--key", weakKey, "--cert", certificate, "--output-file", signed}, cli.ExitUsage, "private key does not match public key"},
		"sign, a weak key":                  {[]string{"sign", good, "--key", weakKey, "--cert", weakCertificate, "--output-file", signed}, cli.ExitUsage, weakKey + " has no RSA key of at least 2048 bits"},
		"sign, changed":                     {[]string{"sign", changed, "--key", key, "--cert", certificate, "--output-file", signed}, cli.ExitUsage, `member "web-disk1.vmdk": has the SHA256 digest`},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, messages := run(t.Context(), each.arguments...)
			if code != each.code || !strings.Contains(messages, each.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s", code, each.code, each.want, messages)
			}
			if entries, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(entries) > 0 {
				t.Errorf("%v, left: %v", err, entries)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, messages := run(ctx, convert(good)...); code != cli.ExitInternal || !strings.Contains(messages, "context canceled") {
		t.Errorf("an interrupted command: exit code %d, %s", code, messages)
	}
	if _, err := os.Lstat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder of an interrupted command is left: %v", err)
	}
}

func TestASignedOVAIsValid(t *testing.T) {
	path := web(t)
	key, certificate := signer(t, 2048)
	_, other := signer(t, 2048)
	signed := filepath.Join(t.TempDir(), "signed.ova")
	if code, out, messages := run(t.Context(), "sign", path, "--key", key, "--cert", certificate, "--output-file", signed); code != cli.ExitOK || out != signed+": signed by \"CN=vendor\"\n" {
		t.Fatalf("exit code %d, %s%s", code, out, messages)
	}
	if code, out, messages := run(t.Context(), "validate", signed, "--ca", certificate); code != cli.ExitOK || !strings.HasSuffix(out, "signed by \"CN=vendor\"\n") {
		t.Errorf("exit code %d, %s%s", code, out, messages)
	}
	if code, out, messages := run(t.Context(), "validate", signed, "--ca", other); code != cli.ExitFindings || !strings.Contains(messages, "not trusted") {
		t.Errorf("with another authority: exit code %d, %s%s", code, out, messages)
	}
	if code, out, messages := run(t.Context(), "inspect", signed); code != cli.ExitOK || !strings.Contains(out, `signed by "CN=vendor"`) {
		t.Errorf("exit code %d, %s%s", code, out, messages)
	}
	if code, _, messages := run(t.Context(), "convert", signed, "--output-folder", filepath.Join(t.TempDir(), "web"), "--ca", certificate); code != cli.ExitOK {
		t.Errorf("exit code %d, %s", code, messages)
	}
	if entries, err := os.ReadDir(filepath.Dir(signed)); err != nil || len(entries) != 1 {
		t.Errorf("%v, left beside the output: %v", err, entries)
	}
}

// TestATemplateAndItsDisksBecomeAnOVA packs what an OVA was converted to, and unpacks it again.
func TestATemplateAndItsDisksBecomeAnOVA(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "web")
	if code, _, messages := run(t.Context(), "convert", web(t), "--output-folder", folder, "-n", "golden"); code != cli.ExitOK {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	var sums []string
	for range 2 {
		packed := filepath.Join(t.TempDir(), "web.ova")
		code, out, messages := run(t.Context(), "convert", folder, "--output-file", packed, "-p", "NAME=web-1")
		if code != cli.ExitOK || out != packed+"\n" {
			t.Fatalf("exit code %d, %s%s", code, out, messages)
		}
		if code, _, messages := run(t.Context(), "validate", packed); code != cli.ExitOK {
			t.Errorf("exit code %d, %s", code, messages)
		}
		if code, out, messages := run(t.Context(), "inspect", packed, "-n", "golden"); code != cli.ExitOK || !strings.Contains(out, "it is the template that the package carries\n") {
			t.Errorf("exit code %d, %s%s", code, out, messages)
		}
		again := filepath.Join(t.TempDir(), "again")
		if code, _, messages := run(t.Context(), "convert", packed, "--output-folder", again, "-n", "golden", "--verification", "Require"); code != cli.ExitOK {
			t.Fatalf("exit code %d, %s", code, messages)
		}
		for _, name := range []string{"web.yaml", "web-disk0.raw"} {
			before, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if after, err := os.ReadFile(filepath.Join(again, name)); err != nil || !bytes.Equal(before, after) {
				t.Errorf("%s has changed, or %v:\n%.4000s", name, err, after)
			}
		}
		raw, err := os.ReadFile(packed)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(raw)))
		if entries, err := os.ReadDir(filepath.Dir(packed)); err != nil || len(entries) != 1 {
			t.Errorf("%v, left beside the OVA: %v", err, entries)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("the same folder becomes OVAs with the checksums %v", sums)
	}

	out := filepath.Join(t.TempDir(), "out.ova")
	lacking := t.TempDir()
	if text, err := os.ReadFile(filepath.Join(folder, "web.yaml")); err != nil {
		t.Fatal(err)
	} else {
		write(t, filepath.Join(lacking, "web.yaml"), string(text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, each := range map[string]struct {
		ctx       context.Context
		arguments []string
		code      int
		want      string
	}{
		"an empty folder":        {t.Context(), []string{"convert", t.TempDir(), "--output-file", out}, cli.ExitUsage, "has 0 manifests; want one file NAME.yaml with a VirtualMachineTemplate"},
		"no disk":                {t.Context(), []string{"convert", lacking, "--output-file", out, "-p", "NAME=a"}, cli.ExitUsage, "the disk of volume disk0: open "},
		"another parameter":      {t.Context(), []string{"convert", folder, "--output-file", out, "-p", "NAEM=a"}, cli.ExitUsage, "NAEM"},
		"a folder for a folder":  {t.Context(), []string{"convert", folder, "--output-folder", out}, cli.ExitUsage, "a folder needs --output-file, and an OVA --output-folder"},
		"no output":              {t.Context(), []string{"convert", folder}, cli.ExitUsage, "output-folder"},
		"an interrupted command": {ctx, []string{"convert", folder, "--output-file", out, "-p", "NAME=a"}, cli.ExitInternal, "context canceled"},
	} {
		t.Run(what, func(t *testing.T) {
			if code, _, messages := run(each.ctx, each.arguments...); code != each.code || !strings.Contains(messages, each.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s", code, each.code, each.want, messages)
			}
			if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) > 0 {
				t.Errorf("%v, left: %v", err, entries)
			}
		})
	}
}

// changed returns the path of a copy of an OVA in which a byte of the disk is another one.
func changed(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte("createType"))
	if at < 0 {
		t.Fatal("the archive has no VMDK")
	}
	raw[at] ^= 1
	copied := filepath.Join(t.TempDir(), "changed.ova")
	write(t, copied, string(raw))
	return copied
}

// withoutManifest returns the path of a copy of an OVA without its manifest.
func withoutManifest(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var copied bytes.Buffer
	from, to := tar.NewReader(raw), tar.NewWriter(&copied)
	for {
		header, err := from.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(header.Name, ".mf") {
			continue
		}
		if err := to.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare.ova")
	write(t, bare, copied.String())
	return bare
}

// signer writes a key of so many bits and its certificate, which is its own authority, and returns their paths.
func signer(t *testing.T, bits int) (key, certificate string) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	issued := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vendor"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, &issued, &issued, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	key, certificate = filepath.Join(folder, "key.pem"), filepath.Join(folder, "certificate.pem")
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})))
	write(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return key, certificate
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
