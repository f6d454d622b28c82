package controlplane

import (
	"strings"
	"testing"
)

func TestTheToolsAnswerWithTheVersionTheyArePinnedTo(t *testing.T) {
	plane := shared.Plane(t)
	version := kubectl(t, plane, nil, "", "version", "-o", "json")
	if strings.Count(version.Stdout, `"gitVersion": "v1.37.0"`) != 2 {
		t.Errorf("want v1.37.0 of client and server, got %s%s", version.Stdout, version.Stderr)
	}
	helm, err := plane.Helm(t.Context(), "list", "--all-namespaces", "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	if helm.Code != 0 || strings.TrimSpace(helm.Stdout) != "[]" {
		t.Errorf("want no release, got %d: %s%s", helm.Code, helm.Stdout, helm.Stderr)
	}
}

func TestOptions(t *testing.T) {
	plane := StartFor(t, Options{
		ControllerManager: true,
		AuditPolicy: `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
			{"level": "Request", "resources": [{"group": "", "resources": ["configmaps"]}], "namespaces": ["audited"]},
			{"level": "None"}]}`,
		APIServerArgs: []string{"--event-ttl=5m"},
	})
	if made := kubectl(t, plane, nil, "", "create", "namespace", "audited"); made.Code != 0 {
		t.Fatal(made.Stderr)
	}
	if made := kubectl(t, plane, nil, "", "create", "configmap", "watched", "-n", "audited", "--from-literal=a=b"); made.Code != 0 {
		t.Fatal(made.Stderr)
	}

	t.Run("the audit log has the request", func(t *testing.T) {
		events, err := plane.AuditEvents()
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if event.Verb == "create" && event.ObjectRef.Name == "watched" && event.User.Username == plane.Admin().Name {
				return
			}
		}
		t.Errorf("not among %d events", len(events))
	})
	t.Run("the controller manager fills a namespace and clears it away", func(t *testing.T) {
		if got := kubectl(t, plane, nil, "", "wait", "serviceaccount/default", "-n", "audited", "--for=create", "--timeout=30s"); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
		if got := kubectl(t, plane, nil, "", "delete", "namespace", "audited", "--timeout=60s"); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
	})
}
