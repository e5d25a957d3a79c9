#!/bin/sh
# Keeps a processor busy for ten minutes.
end=$(($(date +%s) + 600))
while [ "$(date +%s)" -lt "$end" ]; do
    count=0
    while [ $count -lt 100000 ]; do count=$((count + 1)); done
done
