// Package limits holds what containers and pods count for against the limits of policies.
package limits
