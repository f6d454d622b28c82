package delegation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// The keys of userInfo.extra. The policies in policies/ and the roles of the chart
// name them too.
const (
	// KeyPrefix is the prefix of all of them.
	KeyPrefix = "delegation.template.kubevirt.io/"
	// KeyUser is the user's name.
	KeyUser = KeyPrefix + "user"
	// KeyUID is the user's UID; it is missing when there is none.
	KeyUID = KeyPrefix + "uid"
	// KeyGroup is the user's groups, one value each.
	KeyGroup = KeyPrefix + "group"
	// KeyExtra is the user's own extra as a JSON object of lists; it is missing when there is none.
	KeyExtra = KeyPrefix + "extra"
	// KeyPreview marks a dry run that returns the decisions about a VirtualMachine; see package preview.
	KeyPreview = KeyPrefix + "preview"
)

// MarkPreview marks a request as a preview, in its headers.
func MarkPreview(headers http.Header) { addExtra(headers, KeyPreview, "true") }

// Previews reports whether a request is a preview: one that the server has marked as such. It still has to be a dry run.
func (s Server) Previews(user authenticationv1.UserInfo) bool {
	return s != "" && user.Username == string(s) && len(user.Extra[KeyPreview]) > 0
}

func addExtra(headers http.Header, key, value string) {
	// The key is case-insensitive and ours is lower case; the slash in it has to be escaped.
	headers.Add(authenticationv1.ImpersonateUserExtraHeaderPrefix+url.PathEscape(key), value)
}

// Headers returns the headers of a request that the server makes on behalf of a user.
func Headers(server Server, user authenticationv1.UserInfo) (http.Header, error) {
	headers := http.Header{}
	headers.Set(authenticationv1.ImpersonateUserHeader, string(server))
	add := func(key, value string) { addExtra(headers, key, value) }
	add(KeyUser, user.Username)
	if user.UID != "" {
		add(KeyUID, user.UID)
	}
	for _, group := range user.Groups {
		add(KeyGroup, group)
	}
	if len(user.Extra) > 0 {
		// JSON, because headers preserve neither the case of keys nor white space at the ends of values.
		raw, err := json.Marshal(user.Extra)
		if err != nil {
			return nil, fmt.Errorf("encoding the extra of user %q: %w", user.Username, err)
		}
		add(KeyExtra, string(raw))
	}
	for _, values := range headers {
		for _, value := range values {
			if !representable(value) {
				return nil, errors.New("the name, the UID or a group of the user cannot be passed on: it holds a control character, or white space at an end")
			}
		}
	}
	return headers, nil
}

// representable reports whether a value arrives unchanged.
func representable(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return false
		}
	}
	return value != "" && value[0] != ' ' && value[len(value)-1] != ' '
}

// Server is the full name of the user as which stencil-apiserver makes requests. If empty, delegation is disabled.
type Server string

// ErrNoUser is the error for a request of the server that names no user.
var ErrNoUser = errors.New("the API server for templates creates VirtualMachines on behalf of a user only, and this request names none")

// RequestingUser returns the user for which a request is made: the user that the server names, when it is the server's, and otherwise the user of the
// request. An error means that the server names no user, or not in the required form, which callers must treat as a denial.
func (s Server) RequestingUser(user authenticationv1.UserInfo) (requesting authenticationv1.UserInfo, delegated bool, err error) {
	if s == "" || user.Username != string(s) {
		return user, false, nil
	}
	name, uid, extra := user.Extra[KeyUser], user.Extra[KeyUID], user.Extra[KeyExtra]
	if len(name) != 1 || name[0] == "" || len(uid) > 1 || len(extra) > 1 {
		return authenticationv1.UserInfo{}, true, ErrNoUser
	}
	requesting = authenticationv1.UserInfo{Username: name[0], Groups: user.Extra[KeyGroup]}
	if len(uid) == 1 {
		requesting.UID = uid[0]
	}
	if len(extra) == 1 {
		if err := json.Unmarshal([]byte(extra[0]), &requesting.Extra); err != nil {
			return authenticationv1.UserInfo{}, true, ErrNoUser
		}
	}
	return requesting, true, nil
}

// BoundValues are the values of a template's parameters that the server has bound; the value of the annotation AnnotationBoundValues.
type BoundValues struct {
	// Digest of the template's content for which they were bound.
	Digest string `json:"digest"`
	// Values of all parameters, by name.
	Values map[string]string `json:"values"`
}

// String is the annotation's text.
func (b BoundValues) String() string {
	raw, err := json.Marshal(b)
	if err != nil {
		panic("encoding strings as JSON: " + err.Error())
	}
	return string(raw)
}

// ParseBoundValues reads the annotation.
func ParseBoundValues(text string) (BoundValues, error) {
	var b BoundValues
	if err := json.Unmarshal([]byte(text), &b); err != nil || b.Digest == "" {
		// The text holds values that may be secret, and so may the decoder's message.
		return BoundValues{}, errors.New("the values that the API server for templates has bound cannot be read")
	}
	return b, nil
}
