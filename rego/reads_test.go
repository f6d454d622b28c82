package rego

import (
	"testing"
	"time"
)

func TestReadsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want bool
	}{
		"a rule about the object":         {`input.object.metadata.labels.owner == "x"`, false},
		"a rule about the user":           {`input.request.userInfo.username == "x"`, false},
		"the time":                        {`time.parse_rfc3339_ns(input.request.time) > 1`, true},
		"the time in brackets":            {`input["request"]["time"] == "x"`, true},
		"the time of an object":           {`time.parse_rfc3339_ns(input.object.metadata.creationTimestamp) > 1`, false},
		"the request as a whole":          {`r := input.request; r.time == "x"`, true},
		"the input as a whole":            {`walk(input, [_, "x"])`, true},
		"a computed field of the request": {`some k in ["time"]; input.request[k] == "x"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := mustCompile(t, Definition{Name: "p", Source: "package p\n\ndeny contains \"x\" if {\n\t" + tc.body + "\n}\n"})
			if got := policy.ReadsTime(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			other, err := policy.WithParameters(nil)
			if err != nil || other.ReadsTime() != tc.want {
				t.Errorf("with other parameters: %v", err)
			}
		})
	}
}

func TestReadsUser(t *testing.T) {
	for body, want := range map[string]bool{
		`input.request.userInfo.username == "x"`:          true,
		`not "admins" in input.request.userInfo.groups`:   true,
		`input.request.operation == "CREATE"`:             false,
		`object.get(input.request, "userInfo", {}) == {}`: true,
		`input.object.metadata.labels.userInfo == "x"`:    false,
		`some k in ["userInfo"]; input.request[k] == "x"`: true,
	} {
		policy := mustCompile(t, Definition{Name: "p", Source: "package p\n\ndeny contains \"x\" if {\n\t" + body + "\n}\n"})
		if got := policy.ReadsUser(); got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
}

// TestTimeZones is about a rule for the night of Zurich, where it is an hour later than in UTC, and in summer two.
func TestTimeZones(t *testing.T) {
	policy := mustCompile(t, Definition{Name: "p", Source: "package p\n\n" +
		"deny contains sprintf(\"it is %d h on %s\", [hour, time.weekday([now, zone])]) if {\n\thour := time.clock([now, zone])[0]\n\thour >= 22\n}\n\n" +
		"zone := \"Europe/Zurich\"\n\nnow := time.parse_rfc3339_ns(input.request.time)\n"})
	for at, want := range map[string]string{
		"2026-01-15T20:30:00Z": "",
		"2026-01-15T21:30:00Z": "it is 22 h on Thursday",
		"2026-07-15T20:30:00Z": "it is 22 h on Wednesday",
		"2026-07-15T22:30:00Z": "",
	} {
		d := vmDocument(t)
		var err error
		if d.Request.Time, err = time.Parse(time.RFC3339, at); err != nil {
			t.Fatal(err)
		}
		result, err := policy.Evaluate(t.Context(), mustInput(t, d))
		got := ""
		for _, finding := range result.Deny {
			got += finding.Message
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", at, got, err, want)
		}
	}
}

// TestReadsWithinADocument compares what policies read of two namespaces.
func TestReadsWithinADocument(t *testing.T) {
	for name, tc := range map[string]struct {
		body             string
		empty, different bool
	}{
		"a rule about the object":                {body: `input.object.metadata.labels.env == "x"`, empty: true},
		"a label that is equal":                  {body: `input.namespace.labels.env == "x"`},
		"a label that differs":                   {body: `input.namespace.labels.team == "x"`, different: true},
		"an annotation that neither has":         {body: `input.namespace.annotations.team == "x"`},
		"all labels":                             {body: `some key in input.namespace.labels; key == "x"`, different: true},
		"the namespace as a whole":               {body: `n := input.namespace; n.labels.env == "x"`, different: true},
		"the input as a whole":                   {body: `walk(input, [_, "x"])`, different: true},
		"a computed document":                    {body: `some k in ["namespace"]; input[k].labels.env == "x"`, different: true},
		"a label and another field of the input": {body: `input.namespace.labels.env == input.object.kind`},
	} {
		t.Run(name, func(t *testing.T) {
			policy := mustCompile(t, Definition{Name: "p", Source: "package p\n\ndeny contains \"x\" if {\n\t" + tc.body + "\n}\n"})
			var reads Reads
			reads.AddWithin(policy, "namespace")
			one, other := vmDocument(t), vmDocument(t)
			one.Object, other.Object["kind"] = nil, "x"
			one.Namespace = Namespace{Name: "a", Labels: map[string]string{"env": "prod", "team": "a"}}
			other.Namespace = Namespace{Name: "a", Labels: map[string]string{"env": "prod", "team": "b"}}
			if tc.different && len(reads.paths) > 0 && len(reads.paths[0]) == 0 {
				other.Object = nil // the whole input is compared
			}
			if reads.Empty() != tc.empty || (reads.Digest(mustInput(t, one)) != reads.Digest(mustInput(t, other))) != tc.different {
				t.Errorf("reads %q", reads.paths)
			}
		})
	}
}
