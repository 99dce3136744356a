package largepods

import "testing"

func TestPod(t *testing.T) {
	t.Parallel()
	for _, s := range Shapes() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			const want = 500 << 10
			pod, entries := s.Pod("p", want)
			if size := sizeOf(pod); entries != s.Most && (size < want || size > want+want/8) {
				t.Errorf("%d entries have %d bytes", entries, size)
			}
		})
	}
}
