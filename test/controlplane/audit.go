package controlplane

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditArguments writes the audit policy and returns the flags that enable it.
func (p *Plane) auditArguments() ([]string, error) {
	if p.options.AuditPolicy == "" {
		return nil, nil
	}
	policy, err := p.folder.write([]byte(p.options.AuditPolicy), "audit-policy.yaml")
	if err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + p.auditLog(),
		// Each event is in the file before the request is answered, so a test that has the response finds the event.
		"--audit-log-mode=blocking-strict",
	}, nil
}

func (p *Plane) auditLog() string { return p.folder.file("logs", "audit.log") }

// AuditEvents returns the events recorded so far, oldest first. The plane must have been started with an audit policy.
func (p *Plane) AuditEvents() ([]auditv1.Event, error) {
	if p.options.AuditPolicy == "" {
		return nil, errors.New("the control plane was started without an audit policy")
	}
	file, err := os.Open(p.auditLog())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	var events []auditv1.Event
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		// What follows the last line end is still being written.
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var event auditv1.Event
		if err := json.Unmarshal([]byte(strings.TrimSpace(line)), &event); err != nil {
			return nil, fmt.Errorf("decoding an audit event: %w", err)
		}
		events = append(events, event)
	}
}
