#!/bin/sh
# The hook of the agent that freezes; the agent writes down when it is called.
exit 0
