package powers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func TestAGrantIsReadAsItWasWritten(t *testing.T) {
	for want, grant := range map[string]Grant{
		"u1 s1 ada system:authenticated": {Template: "u1", Sources: "s1", User: authenticationv1.UserInfo{Username: "ada", Groups: []string{"system:authenticated"}}},
		// A name cannot be read as a name and a group.
		"u1 s1 ada%20system:masters %2520 x": {Template: "u1", Sources: "s1", User: authenticationv1.UserInfo{Username: "ada system:masters", Groups: []string{"%20", "x"}}},
		"u1 s1 ada":                          {Template: "u1", Sources: "s1", User: authenticationv1.UserInfo{Username: "ada"}},
	} {
		if got := grant.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		got, is := ParseGrant(want)
		if diff := cmp.Diff(grant, got); diff != "" || !is {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
	for _, text := range []string{"", "u1", "u1 s1", "u1 s1 ", " s1 ada", "u1  ada"} {
		if got, is := ParseGrant(text); is {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
