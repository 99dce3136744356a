// Package nodetest has the tests of the test cluster's node. They run in a box, as root.
package nodetest
