package platform

import (
	"fmt"
	"os"
	"path/filepath"
)

// managerLog is the file in the plane's folder to which managers log, in addition to manager.Process.Logs: processes that share the platform read it
// there.
func (p *Platform) managerLog() string {
	return filepath.Join(p.Plane.Dir(), "logs", "stencil-manager.log")
}

// ManagerLogs returns what every stencil-manager of the platform has logged.
func (p *Platform) ManagerLogs() (string, error) {
	content, err := os.ReadFile(p.managerLog())
	if err != nil {
		return "", fmt.Errorf("reading the log of stencil-manager: %w", err)
	}
	return string(content), nil
}

// logFile opens that file for one more process.
func (p *Platform) logFile() (*os.File, error) {
	file, err := os.OpenFile(p.managerLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of stencil-manager: %w", err)
	}
	return file, nil
}

// APIServerURL is the https URL, without a path, of stencil-apiserver.
func (p *Platform) APIServerURL() string {
	if p.APIServer != nil {
		return p.APIServer.WebhookURL()
	}
	return p.sharedAPIServerURL
}
