package internal

import (
	"os"
	"strconv"
	"time"
)

// shorter returns a duration of an assertion that waits until something is so, or what a variable of the environment allows, whichever is less. How
// long something must stay so is never shortened.
func shorter(kind AsyncAssertionType, wanted time.Duration, variable string) time.Duration {
	seconds, err := strconv.ParseFloat(os.Getenv(variable), 64)
	if err != nil || kind == AsyncAssertionTypeConsistently {
		return wanted
	}
	return min(wanted, time.Duration(seconds*float64(time.Second)))
}
