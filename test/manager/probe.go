package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// failedCheck matches the names of the failed checks in the response of /readyz, which does not contain the reasons.
var failedCheck = regexp.MustCompile(`(?m)^\[-\]([a-z0-9-]+) failed`)

// Ready requests /readyz once and returns the reasons why the process is not ready, or nil.
func (p *Process) Ready(ctx context.Context) error {
	status, body, err := get(ctx, p.HealthURL()+"/readyz?verbose")
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		return nil
	}
	var reasons []string
	for _, match := range failedCheck.FindAllStringSubmatch(body, -1) {
		_, reason, err := get(ctx, p.HealthURL()+"/readyz/"+match[1])
		if err != nil {
			return err
		}
		reasons = append(reasons, match[1]+": "+strings.TrimSpace(reason))
	}
	return fmt.Errorf("not ready: %s", strings.Join(reasons, "; "))
}

// Metrics returns the response of the metrics endpoint.
func (p *Process) Metrics(ctx context.Context) (string, error) {
	status, body, err := get(ctx, p.MetricsURL())
	if err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("scraping metrics: status %d: %s", status, body)
	}
	return body, nil
}

// get makes a request on a connection of its own: the response must not come from a process that used the port before.
func get(ctx context.Context, url string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// A kubelet's probe does not verify the certificate either.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}, Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", err
	}
	return response.StatusCode, string(content), nil
}
