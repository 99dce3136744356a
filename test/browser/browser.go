// Package browser looks at the pages that gpuslice writes as a user does, in a Chromium.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/child"
)

// Browser is a Chromium without a window, which a test drives by the DevTools protocol over a pipe.
type Browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
	loads   int // pages that were loaded
}

// Open starts a browser. Without one the test is skipped.
func Open(t *testing.T) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed (Debian: apt-get install chromium): the page is not tried in a browser")
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "page")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
		"--user-data-dir="+profile, "--window-size=1280,900", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	ended, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &Browser{t: t, to: ourOut, from: bufio.NewReaderSize(ourIn, 1<<20)}
	t.Cleanup(func() {
		b.session = ""
		_, _ = b.try("Browser.close", nil)
		_ = ourOut.Close()
		<-ended
		_ = os.RemoveAll(profile) // its helpers may still write
	})
	target := b.Call("Target.createTarget", map[string]any{"url": "about:blank"})
	b.session = b.Call("Target.attachToTarget", map[string]any{"targetId": target["targetId"], "flatten": true})["sessionId"].(string)
	b.Call("Page.enable", nil)
	b.Call("Network.enable", nil)
	return b
}

// Call calls a method of the protocol.
func (b *Browser) Call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	result, err := b.try(method, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *Browser) try(method string, params map[string]any) (map[string]any, error) {
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return nil, err
	}
	for {
		if answer, err := b.read(); err != nil || answer.ID == b.last && answer.Error != nil {
			return nil, fmt.Errorf("%s: %v: %w", method, answer.Error, err)
		} else if answer.ID == b.last {
			return answer.Result, nil
		}
	}
}

// answer is a message of the browser: of a call, or an event.
type answer struct {
	ID     int
	Method string
	Result map[string]any
	Error  any
}

func (b *Browser) read() (a answer, err error) {
	text, err := b.from.ReadBytes(0)
	if err == nil {
		err = json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &a)
	}
	if a.Method == "Page.loadEventFired" {
		b.loads++
	}
	return a, err
}

// Run is the value of an expression in the page.
func (b *Browser) Run(expression string) any {
	b.t.Helper()
	out := b.Call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if failed, ok := out["exceptionDetails"]; ok {
		b.t.Fatalf("%.300s: %v", expression, failed)
	}
	return out["result"].(map[string]any)["value"]
}

// Want fails the test unless an expression is a value, perhaps after a moment.
func (b *Browser) Want(expression string, value any) {
	b.t.Helper()
	wait := fmt.Sprintf(`new Promise((done) => { const until = Date.now() + 30000; (function look() { const v = (%s);
		if (String(v) === %q || Date.now() > until) done(String(v)); else requestAnimationFrame(look); })(); })`, expression, fmt.Sprint(value))
	if got := b.Run(wait); got != fmt.Sprint(value) {
		b.t.Errorf("%s is %v, want %v", expression, got, value)
	}
}

// Press presses a key as a keyboard does.
func (b *Browser) Press(key, text string, code int) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "windowsVirtualKeyCode": code}
		if text != "" && kind == "keyDown" {
			params["text"] = text
		}
		b.Call("Input.dispatchKeyEvent", params)
	}
}

// Show opens a page that sets data-drawn once it is drawn, and returns how long that took.
func (b *Browser) Show(path string) (ready time.Duration) {
	b.t.Helper()
	before := b.loads
	b.Call("Page.navigate", map[string]any{"url": "file://" + path})
	for b.loads == before {
		if _, err := b.read(); err != nil {
			b.t.Fatal(err)
		}
	}
	b.Want(`document.documentElement.dataset.drawn`, "true")
	drawn := b.Run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))`).(float64)
	return time.Duration(drawn * float64(time.Millisecond))
}

// Picture keeps a screenshot in the folder PAGE_PICTURES, of the format that its name ends with.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	folder := os.Getenv("PAGE_PICTURES")
	if folder == "" {
		return
	}
	text := b.Call("Page.captureScreenshot",
		map[string]any{"format": strings.TrimPrefix(filepath.Ext(name), "."), "quality": 70})["data"].(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Colors sets the color scheme that the user prefers.
func (b *Browser) Colors(scheme string) {
	b.t.Helper()
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// Color schemes.
const (
	Light = "light"
	Dark  = "dark"
)

// axe is the version of axe-core that pages are checked with.
const axe = "axe-core@4.14.1"

// Accessibility is axe-core, which npm fetches. Without npm the test is skipped.
func Accessibility(t *testing.T) (code string) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("no npm is installed: axe-core is not run")
	}
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, axe)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm cannot fetch %s, which is not run: %v: %.300s", axe, err, out)
	}
	text, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Check runs axe-core, which AllowScripts lets the page do, over the page.
func (b *Browser) Check(accessibility string) {
	b.t.Helper()
	b.Run(accessibility + "; undefined")
	found := b.Run(`axe.run().then((r) => (window.passes = r.passes.length, r.violations.map((v) => v.id + ": " + v.nodes.length + " x " + v.nodes[0].html + " " + v.nodes[0].failureSummary).join("\n")))`).(string)
	if found != "" {
		b.t.Error(found)
	}
	if passed := b.Run(`window.passes`).(float64); passed < 15 {
		b.t.Errorf("only %g rules passed", passed)
	}
}

// AllowScripts has pages run scripts beside their own.
func (b *Browser) AllowScripts() { b.Call("Page.setBypassCSP", map[string]any{"enabled": true}) }
