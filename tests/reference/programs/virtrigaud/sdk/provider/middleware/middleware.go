// Package middleware has what upstream's providers configure beside the server; the stand-in logs through gRPC alone.
package middleware

import "log/slog"

// Config is all of it.
type Config struct {
	Logging  *LoggingConfig
	Recovery *RecoveryConfig
	Auth     *AuthConfig
}

// LoggingConfig names a logger of calls.
type LoggingConfig struct {
	Enabled bool
	Logger  *slog.Logger
}

// RecoveryConfig names a logger of panics.
type RecoveryConfig struct {
	Enabled bool
	Logger  *slog.Logger
}

// AuthConfig names the clients that may call; an empty list admits each with a certificate of the authority.
type AuthConfig struct{ AllowedSANs []string }
