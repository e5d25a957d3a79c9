#!/bin/sh
# The scripts of the tests are written for bash, and need nothing of it.
exec /bin/sh "$@"
