package powers

import (
	"fmt"

	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	permission "github.com/vmstencil/stencil/internal/authorization"
)

// As returns a configuration for an account of Stencil's. The user of the given configuration impersonates the account, or acts itself if the account is empty.
// The clients have no rate limit: the API server limits requests.
func As(config *rest.Config, account string) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	if account != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: account} //nolint:forbidigo // The one place.
	}
	return config
}

// Checker returns a checker of permissions at the moment of the call, by requests of the user of the configuration.
func Checker(config *rest.Config) (*permission.Checker, error) {
	reviews, err := authorizationv1client.NewForConfig(As(config, ""))
	if err != nil {
		return nil, fmt.Errorf("making the client of permissions: %w", err)
	}
	return permission.New(permission.Options{Client: reviews, Fresh: true})
}
