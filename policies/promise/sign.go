package promise

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// signedAs separates these signatures from any other use of the same key.
const signedAs = "gpuslice.dev/promise\n"

// The signature is the last field of the annotation's text, so that it signs all before it: a build that does not know
// every field can still tell who signed it.
const (
	signatureBegin = `,"sig":"`
	signatureEnd   = `"}`
	maxSignature   = len(signatureBegin) + 43 + len(signatureEnd) - len("}")
)

// minKey is the least length of a key, in bytes.
const minKey = 32

// Keys sign Promises and select the trusted ones. The zero Keys sign nothing and trust nothing.
type Keys struct{ keys [][]byte }

// NewKeys returns Keys that sign with the first key and trust signatures of any of them. Keys of less than 32 bytes are
// left out.
func NewKeys(keys ...[]byte) Keys {
	var out Keys
	for _, k := range keys {
		if len(k) >= minKey {
			out.keys = append(out.keys, k)
		}
	}
	return out
}

// Signs reports whether there is a key to sign with.
func (k Keys) Signs() bool { return len(k.keys) > 0 }

// Equal reports whether both are the same keys in the same order.
func (k Keys) Equal(other Keys) bool { return slices.EqualFunc(k.keys, other.keys, bytes.Equal) }

// Sign binds the Promise to its namespace and its words. Nobody may change the Promise after that: Encode
// returns the text that was signed.
func (k Keys) Sign(p *Promise) {
	p.Signature, p.signed = "", ""
	if len(k.keys) > 0 {
		words := p.Encode()
		p.Signature = signature(k.keys[0], words)
		p.signed = sign(words, p.Signature)
	}
}

// sign is the annotation's text of signed words.
func sign(words, signature string) string {
	return strings.TrimSuffix(words, "}") + signatureBegin + signature + signatureEnd
}

// Resign returns the annotation's text signed with the newest key, where one of the older keys signed it.
func (k Keys) Resign(text string) (string, bool) {
	if len(k.keys) < 2 {
		return text, false
	}
	words, found := k.signer(text)
	if found <= 0 {
		return text, false
	}
	return sign(words, signature(k.keys[0], words)), true
}

// PromiseOf returns the Promise that gpuslice gave to this pod's namespace and recorded on the pod, or nil. A Promise
// of a newer version of the rules is read as far as this build knows it: see Newer. It does not say that the pod is
// still as promised.
func (k Keys) PromiseOf(pod *corev1.Pod) *Promise {
	text := pod.Annotations[api.AnnotationPromise]
	if _, found := k.signer(text); found < 0 {
		return nil
	}
	return promiseOn(pod, true)
}

// ClaimedPromise returns the Promise on the pod whether or not it is trusted, or nil: for tools without keys, which
// show it and let nothing rest on it.
func ClaimedPromise(pod *corev1.Pod) *Promise { return promiseOn(pod, false) }

// promiseOn returns the Promise on the pod, of a newer version too if newer is true; nil: it is not the pod's own, or charges
// for nothing.
func promiseOn(pod *corev1.Pod, newer bool) *Promise {
	p, err := decodeAny(pod.Annotations[api.AnnotationPromise], newer)
	if err != nil || p.Namespace != pod.Namespace || !p.Charge.Sound() || p.Charge.Slices+p.Charge.GPUs == 0 {
		return nil
	}
	return p
}

// Newer reports whether a later build's rules made the Promise, which this build cannot apply.
func (p *Promise) Newer() bool { return p.Version > Version }

// Unsigned is the annotation's text without its signature: two builds that do not share a key must agree on it.
func Unsigned(text string) string {
	words, _ := cutSignature(text)
	return words
}

// signer returns the signed text and the index of the key that signed it, or -1.
func (k Keys) signer(text string) (words string, found int) {
	if len(text) > MaxText {
		return "", -1
	}
	words, sig := cutSignature(text)
	for i, key := range k.keys {
		if sig != "" && hmac.Equal([]byte(sig), []byte(signature(key, words))) {
			return words, i
		}
	}
	return words, -1
}

func cutSignature(text string) (words, sig string) {
	i := strings.LastIndex(text, signatureBegin)
	if i < 0 || !strings.HasSuffix(text, signatureEnd) {
		return text, ""
	}
	return text[:i] + "}", text[i+len(signatureBegin) : len(text)-len(signatureEnd)]
}

func signature(key []byte, words string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signedAs))
	mac.Write([]byte(words))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
