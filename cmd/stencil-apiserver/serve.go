package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/request/union"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/apiserver"
	"github.com/vmstencil/stencil/apiserver/clientcas"
	"github.com/vmstencil/stencil/apiserver/frontproxy"
	"github.com/vmstencil/stencil/apiserver/servingcert"
	approvalcache "github.com/vmstencil/stencil/cache/approvals"
	instancetypecache "github.com/vmstencil/stencil/cache/instancetypes"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/objects"
)

// maximumStreams is how many requests one connection carries at a time: the API server sends
// those of all clients over few connections.
const maximumStreams = 1000

// serve runs the server until ctx ends and requests in flight are answered.
func serve(ctx context.Context, o *options, config *rest.Config, logger logr.Logger) error {
	if err := o.completeUser(ctx, config); err != nil {
		return err
	}
	registry := legacyregistry.Registerer()
	if err := currentBuild().Register(registry); err != nil {
		return err
	}
	templates, err := templatecache.New(templatecache.Options{Config: config, Logger: logger.WithName("templatecache"), Registerer: registry})
	if err != nil {
		return err
	}
	approvals, err := approvalcache.New(approvalcache.Options{
		Config: config, Logger: logger.WithName("approvalcache"), Registerer: registry, ExcludedNamespaces: []string{o.certificates.Namespace},
	})
	if err != nil {
		return err
	}
	// The dependencies of the server run until its last request is answered.
	needed, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, needed := errgroup.WithContext(needed)
	source, err := addCertificates(needed, group, o, config, logger.WithName("certificates"))
	if err != nil {
		return err
	}
	if err := certificates.RegisterExpiry(registry, source); err != nil {
		return err
	}
	sizes, err := instancetypecache.New(instancetypecache.Options{
		Config: config, Logger: logger.WithName("instancetypecache"), Registerer: registry, WithoutRevisions: true,
	})
	if err != nil {
		return err
	}
	defaults, checks, err := addDefaults(needed, group, o, config, sizes, logger)
	if err != nil {
		return err
	}
	checks = append(checks, synced("templates", templates), synced("approvals", approvals), healthz.NamedCheck("certificate", source.Ready))
	server, err := newServer(o, config, source, checks, apiserver.Options{
		Templates: templates, Approvals: approvals, Sizes: sizes, Defaults: defaults, ObjectResources: objects.Resources(o.objectResources),
	})
	if err != nil {
		return err
	}
	if o.pprofBindAddress != "" {
		group.Go(func() error { return serveProfiles(needed, o.pprofBindAddress) })
	}
	group.Go(func() error { return sizes.Start(needed) })
	group.Go(func() error { return templates.Start(needed) })
	group.Go(func() error { return approvals.Start(needed) })
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	// The server ends when a dependency fails.
	defer context.AfterFunc(needed, cancel)()
	err = server.PrepareRun().RunWithContext(serving)
	stop()
	if waited := group.Wait(); waited != nil && !errors.Is(waited, context.Canceled) {
		err = errors.Join(err, waited)
	}
	return err
}

// completeUser requests the name of the server's user from the API server if it is not given.
func (o *options) completeUser(ctx context.Context, config *rest.Config) error {
	if o.user != "" {
		return nil
	}
	client, err := authentication.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client of the API server: %w", err)
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("requesting the name of the server's user: %w", err)
	}
	o.user = review.Status.UserInfo.Username
	return nil
}

// looksUpAuthorities reports whether the authorities of clients come from the cluster only, and not from files.
func (o *options) looksUpAuthorities() bool {
	files := o.authentication
	return !files.SkipInClusterLookup && files.ClientCert.ClientCA == "" && files.RequestHeader.ClientCAFile == ""
}

// newServer builds the server. It completes the options of the API.
func newServer(o *options, config *rest.Config, source certificates.Source, ready []healthz.HealthChecker, api apiserver.Options) (*genericapiserver.GenericAPIServer, error) {
	scheme, codecs, err := apiserver.Codecs()
	if err != nil {
		return nil, err
	}
	settings := genericapiserver.NewConfig(codecs)
	namer := openapinamer.NewDefinitionNamer(scheme)
	settings.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(apiserver.Definitions, namer)
	settings.OpenAPIConfig.Info.Title = "Stencil"
	settings.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(apiserver.Definitions, namer)
	settings.OpenAPIV3Config.Info.Title = "Stencil"
	settings.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	settings.EnableProfiling = false
	settings.MaxRequestsInFlight, settings.MaxMutatingRequestsInFlight = o.maxRequests, o.maxMutatingRequests
	settings.RequestTimeout = o.requestTimeout
	settings.ShutdownDelayDuration = o.shutdownDelay
	settings.BuildHandlerChainFunc = func(handler http.Handler, settings *genericapiserver.Config) http.Handler {
		handler = genericapiserver.DefaultBuildHandlerChain(handler, settings)
		return apiserver.WithClosedConnections(apiserver.WithSecurityHeaders(handler), settings.ShutdownInitiatedNotify())
	}
	// No code in this process calls the server.
	settings.LoopbackClientConfig = &rest.Config{}

	certificate, err := servingcert.New(source)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.bindAddress)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	settings.ExternalAddress = listener.Addr().String()
	settings.SecureServing = &genericapiserver.SecureServingInfo{
		Listener:                     listener,
		Cert:                         certificate,
		HTTP2MaxStreamsPerConnection: maximumStreams,
		DisableHTTP2:                 o.disableHTTP2,
		MinTLSVersion:                o.tls.MinVersion,
		CipherSuites:                 o.tls.CipherSuites,
	}
	if err := o.authentication.ApplyTo(&settings.Authentication, settings.SecureServing, settings.OpenAPIConfig); err != nil {
		return nil, fmt.Errorf("setting up authentication: %w", err)
	}
	if proxies := settings.Authentication.RequestHeaderConfig; proxies != nil {
		settings.Authentication.Authenticator = union.New(frontproxy.New(proxies, clock.RealClock{}), settings.Authentication.Authenticator)
	}
	if err := o.authorization.ApplyTo(&settings.Authorization); err != nil {
		return nil, fmt.Errorf("setting up authorization: %w", err)
	}
	if err := o.audit.ApplyTo(settings); err != nil {
		return nil, fmt.Errorf("setting up audit: %w", err)
	}
	settings.AddReadyzChecks(ready...)
	if settings.Authentication.RequestHeaderConfig != nil && o.looksUpAuthorities() {
		client, err := core.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("making the client of the API server: %w", err)
		}
		settings.AddReadyzChecks(clientcas.New(listener.Addr(), func(ctx context.Context) (*corev1.ConfigMap, error) {
			return client.ConfigMaps(clientcas.Namespace).Get(ctx, clientcas.ConfigMap, metav1.GetOptions{})
		}))
	}
	server, err := settings.Complete(nil).New("stencil-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("making the server: %w", err)
	}
	delegate, err := apiserver.NewDelegate(config, delegation.Server(o.user))
	if err != nil {
		return nil, err
	}
	api.Creator, api.Authorizer = delegate, settings.Authorization.Authorizer
	if err := apiserver.Install(server, api); err != nil {
		return nil, err
	}
	return server, nil
}
