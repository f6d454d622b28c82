package powers

import (
	"context"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/vmstencil/stencil/api/template"
	permission "github.com/vmstencil/stencil/internal/authorization"
)

// WrittenBy returns the text of the annotation that records who wrote the specification of an object: its generation, username and groups, separated by
// spaces. The webhook writers writes it. The policy rendered-for lets every user write their own name only.
func WrittenBy(user authenticationv1.UserInfo, generation int64) string {
	return strconv.FormatInt(generation, 10) + " " + namesOf(user)
}

// Writer returns the user who wrote the specification of an object, if that is recorded.
func Writer(annotations map[string]string, generation int64) (authenticationv1.UserInfo, bool) {
	parts := strings.Split(annotations[contract.AnnotationWrittenBy], " ")
	if len(parts) < 2 || parts[1] == "" || parts[0] != strconv.FormatInt(generation, 10) {
		return authenticationv1.UserInfo{}, false
	}
	return named(parts[1:]), true
}

// Actions checks permissions at the moment of the call; a permission.Checker that is Fresh implements it.
type Actions interface {
	May(ctx context.Context, requester authenticationv1.UserInfo, action permission.Action) (bool, error)
}

// created is the generation of an object whose specification has not been changed.
const created = 1

// Lacks returns the first of the actions that the user who created an object may not do now, as text; empty if there is none. The object orders something that Stencil
// does later with an account of its own: a VirtualMachineTemplateRequest, an import, an export.
func Lacks(ctx context.Context, permissions Actions, object metav1.Object, actions ...permission.Action) (string, error) {
	user, recorded := Writer(object.GetAnnotations(), created)
	if !recorded {
		return "who created it is not recorded", nil
	}
	for _, action := range actions {
		may, err := permissions.May(ctx, user, action)
		if err != nil {
			return "", err
		}
		if !may {
			return "the user who created it may not " + action.String(), nil
		}
	}
	return "", nil
}
