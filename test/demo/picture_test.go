package demo

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// TestPicture holds run.svg to the recording: -update draws it again.
func TestPicture(t *testing.T) {
	recorded, err := os.ReadFile(recordingFile)
	if err != nil {
		t.Fatal(err)
	}
	drawn := picture(string(recorded))
	if *update {
		if err := os.WriteFile("run.svg", []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile("run.svg"); err != nil || string(have) != drawn {
		t.Errorf("run.svg is not the picture of %s (%v): go test ./test/demo -run TestPicture -update draws it again", recordingFile, err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"terminated tenant", " heartbeats, 0 missing", "quiet"} {
		if !strings.Contains(string(recorded), want) || !strings.Contains(drawn, want) {
			t.Errorf("the picture or the recording lacks %q", want)
		}
	}
}
