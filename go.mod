module github.com/vmstencil/stencil

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/go-logr/logr v1.4.3
	github.com/prometheus/client_golang v1.23.2
	k8s.io/api v0.37.0
	k8s.io/apimachinery v0.37.0
	k8s.io/client-go v0.37.0
	sigs.k8s.io/controller-runtime v0.25.2
)

replace (
	github.com/vmstencil/stencil/api => ./api
	github.com/vmstencil/stencil/template => ./template
)
