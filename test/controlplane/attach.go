package controlplane

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
)

// Attachment holds what another process needs to use a running plane: its addresses, and the keys that sign its users. It is for processes of one
// test run only.
type Attachment struct {
	Dir, Host         string
	KubeVirt          bool
	ControllerManager bool
	CDI               bool
	// Clients signs client certificates, Servers serving certificates.
	Clients, Servers SigningKey
	// Tools are paths of tools by name.
	Tools map[string]string
}

// SigningKey is the certificate and the key of an authority, in PEM.
type SigningKey struct{ Certificate, Key []byte }

// Attachment describes the running plane for [Attach].
func (p *Plane) Attachment() (*Attachment, error) {
	clients, err := p.clients.export()
	if err != nil {
		return nil, err
	}
	servers, err := p.servers.export()
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return &Attachment{
		Dir: p.folder.path, Host: p.host,
		KubeVirt: p.options.KubeVirt, ControllerManager: p.options.ControllerManager, CDI: p.options.CDI,
		Clients: *clients, Servers: *servers, Tools: maps.Clone(p.tools),
	}, nil
}

// Attach returns a plane that another process started. Stop leaves it running; methods that stop or start its processes return
// an error.
func Attach(a *Attachment, log io.Writer) (*Plane, error) {
	clients, err := importAuthority(a.Clients)
	if err != nil {
		return nil, err
	}
	servers, err := importAuthority(a.Servers)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = io.Discard
	}
	plane := &Plane{
		options: Options{KubeVirt: a.KubeVirt, ControllerManager: a.ControllerManager, CDI: a.CDI},
		folder:  &folder{path: a.Dir}, log: log, ports: freePorts, tools: maps.Clone(a.Tools),
		clients: clients, servers: servers, host: a.Host,
		components: map[component]bool{kubeVirt: a.KubeVirt, virtualizationCRDs: a.KubeVirt, controllerManager: a.ControllerManager, cdi: a.CDI},
		stopped:    true,
	}
	if plane.admin, err = plane.User("stencil-admin", "system:masters"); err != nil {
		return nil, err
	}
	return plane, nil
}

func (a *authority) export() (*SigningKey, error) {
	key, ok := a.key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("exporting an authority: its key is a %T", a.key)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &SigningKey{Certificate: a.pem, Key: encoded}, nil
}

func importAuthority(from SigningKey) (*authority, error) {
	certificate, _ := pem.Decode(from.Certificate)
	key, _ := pem.Decode(from.Key)
	if certificate == nil || key == nil {
		return nil, errors.New("reading an authority of a shared plane: no PEM")
	}
	parsed, err := x509.ParseCertificate(certificate.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading an authority of a shared plane: %w", err)
	}
	private, err := x509.ParseECPrivateKey(key.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the key of an authority of a shared plane: %w", err)
	}
	return &authority{certificate: parsed, key: private, pem: from.Certificate}, nil
}
