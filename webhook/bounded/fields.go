package bounded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Fields are those fields of a kind that are decoded. What a pod holds beside them takes most of the time and memory of decoding it.
type Fields struct {
	prefix string
	parts  map[protowire.Number]*Fields // nil: all
}

// FieldsOf are the named fields of T, with all that is below them. Names are those in JSON, and the keys are the paths of the structs
// that have them: "spec.containers". It panics for a field that T does not have.
func FieldsOf[T runtime.Object](names map[string][]string) *Fields {
	out := &Fields{parts: map[protowire.Number]*Fields{}}
	for path, in := range names {
		for _, name := range in {
			out.add(reflect.TypeFor[T](), append(strings.Split(path, "."), name))
		}
	}
	return out
}

// add adds the field at a path.
func (f *Fields) add(of reflect.Type, path []string) {
	if len(path) == 0 {
		f.parts = nil
		return
	}
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	for field := range of.Fields() {
		tag := strings.Split(field.Tag.Get("protobuf"), ",") // bytes,1,opt,name=metadata
		if !slices.Contains(tag, "name="+path[0]) {
			continue
		}
		n, err := strconv.ParseInt(tag[1], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("%s.%s: %v", of, field.Name, err))
		}
		part, ok := f.parts[protowire.Number(n)]
		if !ok {
			part = &Fields{parts: map[protowire.Number]*Fields{}}
			f.parts[protowire.Number(n)] = part
		}
		part.add(field.Type, path[1:])
		return
	}
	panic(fmt.Sprintf("%s has no field %s", of, path[0]))
}

// Only has the objects decoded with these fields alone, through a client whose transport is Limit and which takes Kubernetes' binary
// form.
func (s Source) Only(f *Fields) Source {
	list, watched := s.list, s.watch
	s.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return list(context.WithValue(ctx, fieldsKey{}, f), o)
	}
	s.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return watched(context.WithValue(ctx, fieldsKey{}, f), o)
	}
	return s
}

// fieldsKey is the key of the Fields in a context.
type fieldsKey struct{}

// binaryForm is the content type of Kubernetes' binary form.
const binaryForm = runtime.ContentTypeProtobuf

// fieldsIn are those to which the objects of an answer are cut; nil: they are left whole.
func fieldsIn(r *http.Request, response *http.Response) *Fields {
	f, _ := r.Context().Value(fieldsKey{}).(*Fields)
	if !strings.HasPrefix(response.Header.Get("Content-Type"), binaryForm) {
		return nil
	}
	return f
}

// whole is a field with all that is below it.
var whole = &Fields{}

// enveloped is an object as it is sent: the field raw of a runtime.Unknown, behind a prefix.
func (f *Fields) enveloped() *Fields {
	return &Fields{prefix: "k8s\x00", parts: map[protowire.Number]*Fields{1: whole, 2: f, 3: whole, 4: whole}}
}

// ofList are those of a list of objects.
func (f *Fields) ofList() *Fields {
	return (&Fields{parts: map[protowire.Number]*Fields{1: whole, 2: f}}).enveloped()
}

// ofEvent are those of a metav1.WatchEvent with an object.
func (f *Fields) ofEvent() *Fields {
	object := &Fields{parts: map[protowire.Number]*Fields{1: f.enveloped()}}
	return &Fields{parts: map[protowire.Number]*Fields{1: whole, 2: object}}
}

var errNotRead = errors.New("the message is in another form")

// cut appends a message to out, with the fields alone.
func (f *Fields) cut(out, message []byte) ([]byte, error) {
	if f.parts == nil {
		return append(out, message...), nil
	}
	message, ok := bytes.CutPrefix(message, []byte(f.prefix))
	if !ok {
		return nil, errNotRead
	}
	out = append(out, f.prefix...)
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		n := protowire.ConsumeFieldValue(number, kind, message[max(tag, 0):])
		if tag < 0 || n < 0 {
			return nil, errNotRead
		}
		field := message[:tag+n]
		message = message[tag+n:]
		part := f.parts[number]
		switch {
		case part == nil:
		case part.parts == nil || kind != protowire.BytesType:
			out = append(out, field...)
		default:
			content, _ := protowire.ConsumeBytes(field[tag:])
			out = append(out, field[:tag]...)
			begin := len(out)
			var err error
			if out, err = part.cut(out, content); err != nil {
				return nil, err
			}
			out = slices.Insert(out, begin, protowire.AppendVarint(nil, uint64(len(out)-begin))...)
		}
	}
	return out, nil
}

// cutOr is the message with the fields alone, or as it is if it cannot be read so: whoever decodes it says why.
func (f *Fields) cutOr(message []byte) []byte {
	out, err := f.cut(make([]byte, 0, len(message)/2), message)
	if err != nil {
		return message
	}
	return out
}

// maxEvent is how many bytes an event may have: client-go takes no more either.
const maxEvent = 16 << 20

// cutWatch is the body of a watch, with the fields of its objects alone.
type cutWatch struct {
	io.ReadCloser // the body, events with their lengths before them
	fields        *Fields
	frame, out    []byte
	left          []byte // of out, to be read
}

func (f *Fields) watched(body io.ReadCloser) io.ReadCloser {
	return &cutWatch{ReadCloser: body, fields: f.ofEvent()}
}

// Read implements io.Reader.
func (w *cutWatch) Read(p []byte) (int, error) {
	if len(w.left) == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.left)
	w.left = w.left[n:]
	return n, nil
}

// next reads an event.
func (w *cutWatch) next() error {
	var length [4]byte
	if _, err := io.ReadFull(w.ReadCloser, length[:]); err != nil {
		return err // io.EOF, where the watch ends in order
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n > maxEvent {
		return fmt.Errorf("read watch: an event has %d bytes, at most %d are read", n, maxEvent)
	}
	w.frame = slices.Grow(w.frame[:0], n)[:n]
	if _, err := io.ReadFull(w.ReadCloser, w.frame); err != nil {
		return err // which client-go compares
	}
	out, err := w.fields.cut(append(w.out[:0], length[:]...), w.frame)
	if err != nil || isError(w.frame) { // the object of an error is a Status
		out = append(append(w.out[:0], length[:]...), w.frame...)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)-len(length)))
	w.out, w.left = out, out
	return nil
}

// isError reports whether an event is an error.
func isError(event []byte) bool {
	_, _, tag := protowire.ConsumeTag(event)
	if tag < 0 {
		return false
	}
	kind, _ := protowire.ConsumeBytes(event[tag:])
	return string(kind) == string(watch.Error)
}
