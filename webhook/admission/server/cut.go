package server

// cutObjects takes the objects under review out of an AdmissionReview: null takes their place in left. They are most of
// it, and whoever reviews them reads and checks them. For a text that is no JSON, left or an object is none either.
func cutObjects(body []byte) (left, object, old []byte) {
	const inReview, inRequest = 1, 2
	var key []byte // the last string outside of values
	depth, copied, request := 0, 0, false
	for at := 0; at < len(body); {
		end := at + 1
		switch c := body[at]; {
		case c == '"':
			end = stringEnd(body, at)
			if depth <= inRequest {
				key = body[at:end]
			}
		case c == '{' && depth == inRequest && request && (string(key) == `"object"` || string(key) == `"oldObject"`):
			end = valueEnd(body, at)
			if string(key) == `"object"` {
				object = body[at:end:end]
			} else {
				old = body[at:end:end]
			}
			left = append(append(left, body[copied:at]...), "null"...)
			copied = end
		case c == '{' || c == '[':
			if depth == inReview {
				request = c == '{' && string(key) == `"request"`
			}
			depth++
		case c == '}' || c == ']':
			depth--
		}
		at = end
	}
	return append(left, body[copied:]...), object, old
}

// stringEnd is the index after the string that begins at the index.
func stringEnd(text []byte, at int) int {
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return min(at+1, len(text))
}

// valueEnd is the index after the object or list that begins at the index.
func valueEnd(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			at = stringEnd(text, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if at++; depth == 0 {
			return at
		}
	}
	return len(text)
}
