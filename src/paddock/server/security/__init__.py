"""Authentication, authorization, flow control and the audit log."""
