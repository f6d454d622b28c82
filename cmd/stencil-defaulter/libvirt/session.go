package libvirt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	binding "libvirt.org/go/libvirt"

	"github.com/vmstencil/stencil/defaulting/launcher"
)

// Install describes the packages to install on a host without libvirt.
const Install = "libvirt and QEMU are needed (Debian: apt-get install --no-install-recommends libvirt0 libvirt-daemon-driver-qemu qemu-system-x86 qemu-system-arm)"

// Session is an opened driver.
type Session struct {
	connection *binding.Connect
	number     atomic.Uint64
	// validate makes libvirt validate every domain against its schema, for tests.
	validate bool
}

// Open opens the driver with a folder for its state. The folder cache below it is retained
// between two sessions; everything else is deleted.
func Open(root string, validate bool) (*Session, error) {
	if os.Geteuid() == 0 {
		return nil, errors.New("opening libvirt: the user must not be root")
	}
	if err := wipe(root); err != nil {
		return nil, err
	}
	if err := show(root); err != nil {
		return nil, err
	}
	// The driver requires an event loop to open. No event needs to be handled.
	if err := binding.EventRegisterDefaultImpl(); err != nil {
		return nil, fmt.Errorf("registering libvirt's event loop: %w; %s", err, Install)
	}
	connection, err := binding.NewConnect("qemu:///embed?root=" + root)
	if err != nil {
		return nil, fmt.Errorf("opening libvirt: %w; %s", err, Install)
	}
	return &Session{connection: connection, validate: validate}, nil
}

// wipe deletes the state of an earlier session, except for the cached capabilities of QEMU.
func wipe(root string) error {
	for _, folder := range []string{"etc", "lib", "run", "log", programs} {
		if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
			return fmt.Errorf("removing what an earlier libvirt left: %w", err)
		}
	}
	return nil
}

// programs is the folder, below the state folder, with the programs that libvirt finds.
const programs = "bin"

// show restricts libvirt to the QEMU binaries of the supported architectures. Before libvirt
// returns the version of one, it queries the capabilities of each that it finds, which takes a
// third of a second, and a Debian package has up to thirty.
func show(root string) error {
	folder := filepath.Join(root, programs)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of libvirt's programs: %w", err)
	}
	// The last is the name of QEMU where it supports one architecture only.
	for _, program := range []string{"qemu-system-x86_64", "qemu-system-aarch64", "qemu-kvm"} {
		found, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if err := os.Symlink(found, filepath.Join(folder, program)); err != nil {
			return fmt.Errorf("showing %s to libvirt: %w", program, err)
		}
	}
	if err := os.Setenv("PATH", folder); err != nil {
		return fmt.Errorf("showing QEMU to libvirt: %w", err)
	}
	return nil
}

// Close closes the driver.
func (s *Session) Close() error {
	if _, err := s.connection.Close(); err != nil {
		return fmt.Errorf("closing libvirt: %w", err)
	}
	return nil
}

// Define defines a domain with a unique name and UUID, returns libvirt's description, and
// undefines it.
func (s *Session) Define(_ context.Context, xml string) (string, error) {
	named, err := s.name(xml)
	if err != nil {
		return "", err
	}
	flags := binding.DOMAIN_DEFINE_VALIDATE
	if !s.validate {
		flags = 0
	}
	defined, err := s.connection.DomainDefineXMLFlags(named, flags)
	if err != nil {
		return "", refusal("defining the domain", err)
	}
	defer func() { _ = defined.Free() }()
	described, err := defined.GetXMLDesc(binding.DOMAIN_XML_INACTIVE)
	if undefineErr := defined.UndefineFlags(binding.DOMAIN_UNDEFINE_KEEP_NVRAM); undefineErr != nil {
		err = errors.Join(err, fmt.Errorf("forgetting the domain: %w", undefineErr))
	}
	if err != nil {
		return "", fmt.Errorf("describing the domain: %w", err)
	}
	return described, nil
}

// name adds the next name and UUID to a domain. Two domains that are defined concurrently must
// not share either.
func (s *Session) name(xml string) (string, error) {
	end := strings.IndexByte(xml, '>')
	if !strings.HasPrefix(xml, "<domain") || end < 0 {
		return "", errors.New("naming the domain: it does not begin with <domain>")
	}
	number := s.number.Add(1)
	return fmt.Sprintf("%s<name>d%d</name><uuid>00000000-0000-4000-8000-%012x</uuid>%s", xml[:end+1], number, number, xml[end+1:]), nil
}

// refusal distinguishes a rejection of the domain from a failure of libvirt.
func refusal(doing string, err error) error {
	var failure binding.Error
	if errors.As(err, &failure) {
		switch failure.Code {
		case binding.ERR_XML_ERROR, binding.ERR_XML_DETAIL, binding.ERR_CONFIG_UNSUPPORTED, binding.ERR_INVALID_ARG,
			binding.ERR_XML_INVALID_SCHEMA, binding.ERR_NO_SUPPORT, binding.ERR_INTERNAL_ERROR, binding.ERR_ARGUMENT_UNSUPPORTED:
			return &launcher.RejectedError{Message: failure.Message}
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// version formats a version as libvirt encodes it: a million for each major, a thousand for
// each minor.
func version(number uint32) string {
	return strings.Join([]string{
		strconv.Itoa(int(number / 1_000_000)), strconv.Itoa(int(number / 1000 % 1000)), strconv.Itoa(int(number % 1000)),
	}, ".")
}
