// Package server serves a provider over gRPC: in plain text where the environment says so, else with mutual TLS and a list of clients.
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	providerv1 "github.com/projectbeskar/virtrigaud/proto/rpc/provider/v1"
	"github.com/projectbeskar/virtrigaud/sdk/provider/middleware"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// The files of the certificates. The folder comes from the environment, since no test writes into /etc.
var (
	ProviderTLSMountPath = os.Getenv("VIRTRIGAUD_PROVIDER_TLS")
	ProviderTLSCertFile  = filepath.Join(ProviderTLSMountPath, "tls.crt")
	ProviderTLSCAFile    = filepath.Join(ProviderTLSMountPath, "ca.crt")
)

// ErrInsecureModeOptedIn comes where there is no folder and the environment asks for plain text.
var ErrInsecureModeOptedIn = errors.New("plain text was asked for")

// TLSConfig is the server's side of mutual TLS.
type TLSConfig struct{ config *tls.Config }

// TLSResolution is what ResolveTLSAndAuth found.
type TLSResolution struct {
	TLS  *TLSConfig
	Auth *middleware.AuthConfig
}

// ResolveTLSAndAuth reads the certificates and the names of the clients that may call.
func ResolveTLSAndAuth() (*TLSResolution, error) {
	if ProviderTLSMountPath == "" {
		if os.Getenv("VIRTRIGAUD_PROVIDER_INSECURE") != "true" {
			return nil, errors.New("there are no certificates; set VIRTRIGAUD_PROVIDER_TLS to their folder")
		}
		return &TLSResolution{}, ErrInsecureModeOptedIn
	}
	pair, err := tls.LoadX509KeyPair(ProviderTLSCertFile, filepath.Join(ProviderTLSMountPath, "tls.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(ProviderTLSCAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
	var allowed []string
	if names := os.Getenv("VIRTRIGAUD_PROVIDER_ALLOWED_SANS"); names != "" {
		allowed = strings.Split(names, ",")
	}
	return &TLSResolution{TLS: &TLSConfig{config: config}, Auth: &middleware.AuthConfig{AllowedSANs: allowed}}, nil
}

// Config is how a server listens.
type Config struct {
	Port       int
	HealthPort int
	Logger     *slog.Logger
	TLS        *TLSConfig
	Middleware *middleware.Config
}

// DefaultConfig listens on the port of the environment: some of the programs have no option for it.
func DefaultConfig() *Config {
	port, err := strconv.Atoi(os.Getenv("VIRTRIGAUD_PROVIDER_PORT"))
	if err != nil {
		port = 9443
	}
	return &Config{Port: port}
}

// Server is a gRPC server with one provider.
type Server struct {
	port int
	grpc *grpc.Server
}

func admitted(allowed []string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		caller, _ := peer.FromContext(ctx)
		if len(allowed) > 0 && caller != nil {
			leaf := caller.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0]
			if !slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return slices.Contains(allowed, name) }) {
				return nil, status.Errorf(codes.PermissionDenied, "no client of the names %v may call", leaf.DNSNames)
			}
		}
		return next(ctx, request)
	}
}

// New makes a server that listens later.
func New(config *Config) (*Server, error) {
	var options []grpc.ServerOption
	if config.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config.TLS.config)))
		if config.Middleware != nil && config.Middleware.Auth != nil {
			options = append(options, grpc.UnaryInterceptor(admitted(config.Middleware.Auth.AllowedSANs)))
		}
	}
	server := &Server{port: config.Port, grpc: grpc.NewServer(options...)}
	grpc_health_v1.RegisterHealthServer(server.grpc, health.NewServer())
	return server, nil
}

// RegisterProvider adds the provider.
func (s *Server) RegisterProvider(provider any) {
	providerv1.RegisterProviderServer(s.grpc, provider.(providerv1.ProviderServer))
}

// Serve listens on loopback alone.
func (s *Server) Serve(context.Context) error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return err
	}
	return s.grpc.Serve(listener)
}
