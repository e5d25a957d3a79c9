// Package errors makes the errors that upstream's providers answer with: each is a gRPC status.
package errors

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ProviderError is an error with the code that crosses the wire.
type ProviderError struct {
	code  codes.Code
	text  string
	cause error
}

func (e *ProviderError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return fmt.Sprintf("%s: %v", e.text, e.cause)
}

// Unwrap returns the cause.
func (e *ProviderError) Unwrap() error { return e.cause }

// GRPCStatus is what gRPC sends.
func (e *ProviderError) GRPCStatus() *status.Status { return status.New(e.code, e.Error()) }

// NewInvalidSpec says what is wrong with the request.
func NewInvalidSpec(format string, values ...any) *ProviderError {
	return &ProviderError{code: codes.InvalidArgument, text: fmt.Sprintf(format, values...)}
}

// NewNotFound names what is missing.
func NewNotFound(resource, id string) *ProviderError {
	return &ProviderError{code: codes.NotFound, text: fmt.Sprintf("%s %q not found", resource, id)}
}

// NewAlreadyExists names what is in the way.
func NewAlreadyExists(resource, id string) *ProviderError {
	return &ProviderError{code: codes.AlreadyExists, text: fmt.Sprintf("%s %q already exists", resource, id)}
}

// NewPermissionDenied names what is not allowed.
func NewPermissionDenied(operation string) *ProviderError {
	return &ProviderError{code: codes.PermissionDenied, text: "permission denied for " + operation}
}

// NewUnavailable names what cannot be reached.
func NewUnavailable(service string, cause error) *ProviderError {
	return &ProviderError{code: codes.Unavailable, text: service + " is unavailable", cause: cause}
}

// NewInternal is every other failure.
func NewInternal(message string, cause error) *ProviderError {
	return &ProviderError{code: codes.Internal, text: message, cause: cause}
}

// NewRateLimit asks for patience.
func NewRateLimit(after time.Duration) *ProviderError {
	return &ProviderError{code: codes.ResourceExhausted, text: fmt.Sprintf("too many requests; retry after %s", after)}
}
