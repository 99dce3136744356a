// Package message cuts and joins texts for messages, so that a hostile value cannot fill one.
package message
