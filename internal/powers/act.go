package powers

import "k8s.io/client-go/rest"

// As returns the configuration of an account of Stencil's, which the user of the given one may impersonate. It is that of the user itself if the account is empty.
// Clients of it have no limit of their own: the API server has.
func As(config *rest.Config, account string) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	if account != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: account} //nolint:forbidigo // The one place.
	}
	return config
}
