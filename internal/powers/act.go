package powers

import "k8s.io/client-go/rest"

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
