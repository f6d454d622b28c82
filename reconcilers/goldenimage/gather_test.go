package goldenimage

import "testing"

func TestProgress(t *testing.T) {
	condition := func(kind, status, reason, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
	}
	const conflicting = `Pending and [prime-1] : Error saving claim: Operation cannot be fulfilled on persistentvolumeclaims "prime-1": the object has been modified; please apply your changes to the latest version and try again`
	for text, tc := range map[string]struct {
		status           map[string]any
		percent, problem string
	}{
		"a percentage":      {map[string]any{"progress": "42.0%"}, "42.0%", ""},
		"a phase":           {map[string]any{"progress": "N/A", "phase": "ImportScheduled"}, "ImportScheduled", ""},
		"it runs":           {map[string]any{"conditions": []any{condition("Running", "True", "Pod is running", "")}}, "", ""},
		"it waits":          {map[string]any{"conditions": []any{condition("Bound", "False", "Pending", "PVC fedora Pending")}}, "", ""},
		"the importer ends": {map[string]any{"conditions": []any{condition("Running", "False", "Error", "404 Not Found")}}, "", "404 Not Found"},
		"there is no space": {map[string]any{"conditions": []any{condition("Bound", "False", "ErrExceededQuota", "exceeded quota")}}, "", "exceeded quota"},
		"the importer counts more than the claim, in any order": {map[string]any{"conditions": []any{
			condition("Running", "False", "Error", "404 Not Found"), condition("Bound", "False", "Pending", "an Error"),
		}}, "", "404 Not Found"},
		"CDI tries a conflict again": {map[string]any{"conditions": []any{condition("Bound", "False", "Pending", conflicting)}}, "", ""},
	} {
		t.Run(text, func(t *testing.T) {
			percent, problem := progress(map[string]any{"status": tc.status})
			if percent != tc.percent || problem != tc.problem {
				t.Errorf("got %q and %q, want %q and %q", percent, problem, tc.percent, tc.problem)
			}
		})
	}
}
