// Package unitcount counts units of extended resources, as ResourceQuotas do, within bounds.
package unitcount
