module github.com/vmstencil/stencil/hack/fetch

go 1.26.0
