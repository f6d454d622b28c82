package delegation

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
)

const server = Server("system:serviceaccount:stencil-system:stencil-apiserver")

// received returns the user that an API server reads from the headers.
func received(t *testing.T, headers http.Header) authenticationv1.UserInfo {
	t.Helper()
	user := authenticationv1.UserInfo{Username: headers.Get("Impersonate-User"), Extra: map[string]authenticationv1.ExtraValue{}}
	for name, values := range headers {
		if escaped, is := strings.CutPrefix(strings.ToLower(name), "impersonate-extra-"); is {
			key, err := url.PathUnescape(escaped)
			if err != nil {
				t.Fatal(err)
			}
			user.Extra[key] = values
		}
	}
	return user
}

func TestThePersonArrivesAsTheyAre(t *testing.T) {
	for _, tc := range []struct {
		name string
		user authenticationv1.UserInfo
	}{
		{name: "a name alone", user: authenticationv1.UserInfo{Username: "ada"}},
		{name: "everything", user: authenticationv1.UserInfo{
			Username: "ada, the \"first\" é", UID: "7",
			Groups: []string{"team-a", "system:authenticated", "a,b"},
			Extra:  map[string]authenticationv1.ExtraValue{"Scopes/X": {" view ", ""}, "empty": {}},
		}},
		{name: "a person who brings our keys along", user: authenticationv1.UserInfo{
			Username: "mallory", Extra: map[string]authenticationv1.ExtraValue{KeyUser: {"ada"}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			headers, err := Headers(server, tc.user)
			if err != nil {
				t.Fatal(err)
			}
			user, delegated, err := server.RequestingUser(received(t, headers))
			if err != nil || !delegated {
				t.Fatalf("delegated %v, %v", delegated, err)
			}
			if diff := cmp.Diff(tc.user, user); diff != "" {
				t.Errorf("person (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPersonWhoCannotBePassedOnIsRefused(t *testing.T) {
	for _, user := range []authenticationv1.UserInfo{
		{Username: ""}, {Username: "ada\r\nImpersonate-User: eve"}, {Username: " ada"}, {Username: "ada", Groups: []string{"a\nb"}}, {Username: "ada", Groups: []string{""}},
	} {
		if headers, err := Headers(server, user); err == nil {
			t.Errorf("%+v became %v", user, headers)
		}
	}
}

func TestNobodyElseIsBelieved(t *testing.T) {
	forged := map[string]authenticationv1.ExtraValue{KeyUser: {"ada"}, KeyGroup: {"system:masters"}}
	for _, tc := range []struct {
		name   string
		server Server
		user   string
	}{
		{name: "another user", server: server, user: "mallory"},
		{name: "another service account of the same name", server: server, user: "system:serviceaccount:team-a:stencil-apiserver"},
		{name: "where no server is named", server: "", user: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			user := authenticationv1.UserInfo{Username: tc.user, Extra: forged}
			requesting, delegated, err := tc.server.RequestingUser(user)
			if err != nil || delegated {
				t.Fatalf("delegated %v, %v", delegated, err)
			}
			if diff := cmp.Diff(user, requesting); diff != "" {
				t.Errorf("person (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheServerItselfIsNobody(t *testing.T) {
	for _, extra := range []map[string]authenticationv1.ExtraValue{
		nil, {KeyUser: {}}, {KeyUser: {""}}, {KeyUser: {"ada", "eve"}}, {KeyGroup: {"team-a"}}, {KeyUser: {"ada"}, KeyExtra: {"no JSON"}},
	} {
		if user, _, err := server.RequestingUser(authenticationv1.UserInfo{Username: string(server), Extra: extra}); !errors.Is(err, ErrNoUser) {
			t.Errorf("%v is %+v, %v", extra, user, err)
		}
	}
}

func TestBoundValuesThatCannotBeReadAreNotShown(t *testing.T) {
	want := BoundValues{Digest: "sha256:1", Values: map[string]string{"A": "b\n"}}
	got, err := ParseBoundValues(want.String())
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "hunter2", `{"values":{"PASSWORD":"hunter2"}}`} {
		if _, err := ParseBoundValues(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPreviewsAreTheServersAlone(t *testing.T) {
	marked := map[string]authenticationv1.ExtraValue{KeyPreview: {"true"}}
	for _, tc := range []struct {
		name   string
		server Server
		user   authenticationv1.UserInfo
		want   bool
	}{
		{"the server's", server, authenticationv1.UserInfo{Username: string(server), Extra: marked}, true},
		{"one that is not marked", server, authenticationv1.UserInfo{Username: string(server)}, false},
		{"a person's with the mark", server, authenticationv1.UserInfo{Username: "mallory", Extra: marked}, false},
		{"where there is no server", "", authenticationv1.UserInfo{Extra: marked}, false},
	} {
		if got := tc.server.Previews(tc.user); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	headers := http.Header{}
	MarkPreview(headers)
	if got := headers.Get("Impersonate-Extra-Delegation.template.kubevirt.io%2Fpreview"); got != "true" {
		t.Errorf("%v", headers)
	}
}
