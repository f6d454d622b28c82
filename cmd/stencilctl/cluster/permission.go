package cluster

import (
	"context"
	"encoding/json"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// May reports whether the user may perform an action. The error is the API server's.
func (c *Client) May(ctx context.Context, action authorizationv1.ResourceAttributes) (bool, error) {
	answer, err := c.Create(ctx, authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews"), "", map[string]any{
		"apiVersion": authorizationv1.SchemeGroupVersion.String(), "kind": "SelfSubjectAccessReview",
		"spec": authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &action},
	}, Written{})
	if err != nil {
		return false, err
	}
	var review authorizationv1.SelfSubjectAccessReview
	raw, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(raw, &review)
	}
	return review.Status.Allowed, err
}
