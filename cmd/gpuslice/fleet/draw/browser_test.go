package draw

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/test/browser"
)

// openPage writes the page of fleets and opens it.
func openPage(t *testing.T, b *browser.Browser, fleets ...*inventory.Fleet) (path string, ready time.Duration) {
	t.Helper()
	var views []*view
	for i, f := range fleets {
		views = append(views, viewOf([]string{"before", "after"}[i], f))
	}
	path = filepath.Join(t.TempDir(), "fleet.html")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(file, views); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path, b.Show(path)
}

// TestInBrowser walks through the page as a user does.
func TestInBrowser(t *testing.T) {
	b := browser.Open(t)
	openPage(t, b, generated(1, 120), generated(2, 60))
	b.Picture("light.png")
	b.Want(`document.querySelectorAll("#waiting tbody tr").length`, 6)
	b.Want(`document.querySelector("#count").textContent`, "Shown: 120 nodes of 120")
	if drawn := b.Run(`document.querySelectorAll(".node").length`).(float64); drawn == 0 || drawn > 80 {
		t.Errorf("%g nodes are drawn before anybody scrolls", drawn)
	}

	b.Press("/", "/", 191) // the keyboard reaches the search
	b.Want(`document.activeElement.id`, "search")
	b.Call("Input.insertText", map[string]any{"text": "team-vision serve"})
	b.Want(`document.querySelector(".cell.hit") !== null`, true)
	b.Want(`[...document.querySelectorAll(".cell.hit")].every((c) => c.title.startsWith("team-vision/serve"))`, true)
	b.Run(`document.querySelector("#nodes").scrollIntoView({behavior: "instant"})`)
	b.Picture("search.png")
	b.Run(`document.querySelector(".node summary").focus()`)
	b.Press("Enter", "\r", 13)
	b.Want(`document.querySelector("details[open] table tbody tr") !== null`, true)
	b.Picture("open.png")

	b.Run(`(() => { const s = document.querySelector("#search"); s.value = ""; s.dispatchEvent(new Event("input")); })()`)
	b.Want(`document.querySelectorAll(".cell.hit").length`, 0)
	b.Run(`(() => { const s = document.querySelector("#state"); s.value = "closed"; s.dispatchEvent(new Event("change")); })()`)
	closed := 0
	for _, n := range viewOf("before", generated(1, 120)).Nodes {
		if n.State != "" || slices.ContainsFunc(n.Devices, func(d device) bool { return d.Pool < 0 }) {
			closed++
		}
	}
	b.Want(`document.querySelector("#count").textContent`, fmt.Sprintf("Shown: %d nodes of 120", closed))
	b.Run(`(() => { const s = document.querySelector("#state"); s.value = ""; s.dispatchEvent(new Event("change")); const o = document.querySelector("#order"); o.value = "free"; o.dispatchEvent(new Event("change")); })()`)
	b.Want(`(() => { const n = [...document.querySelectorAll(".node .soft")].slice(0, 30).map((e) => Number(/([0-9.]+) free/.exec(e.textContent)[1])); return n.every((v, i) => i === 0 || v <= n[i - 1]); })()`, true)

	b.Run(`document.querySelectorAll("#views input")[1].click()`)
	b.Want(`document.querySelector("#count").textContent`, "Shown: 60 nodes of 60")
	comparison(t, b, viewOf("before", generated(1, 120)), viewOf("after", generated(2, 60)))
	b.Run(`window.scrollTo(0, document.body.scrollHeight)`)
	b.Want(`document.querySelectorAll(".chunk:last-child .node").length > 0`, true)
	b.Colors(browser.Dark)
	b.Run(`document.querySelector("#quotas").scrollIntoView({behavior: "instant"})`)
	b.Picture("dark.png")
}

// comparison looks at what the page of two views shows of both, the second of which is open.
func comparison(t *testing.T, b *browser.Browser, before, after *view) {
	t.Helper()
	b.Want(`[...document.querySelectorAll("#changes th")].map((th) => th.textContent).join()`, "What,before,after,Difference")
	b.Want(`document.querySelectorAll("#changes-bars .bar").length`, 2)
	cells := func(row int) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#changes tbody tr")[%d].children].map((td) => td.textContent).join()`, row)
	}
	difference := len(after.Waiting) - len(before.Waiting)
	b.Want(cells(2), fmt.Sprintf("Pods that wait,%d,%d,%d", len(before.Waiting), len(after.Waiting), difference))
	b.Want(cells(0), fmt.Sprintf("GPUs,%g,%g,%g", before.Sums.Devices, after.Sums.Devices, after.Sums.Devices-before.Sums.Devices))
	differ := strings.TrimPrefix(b.Run(cells(9)).(string), "Nodes divided differently,,,")
	b.Run(`(() => { const s = document.querySelector("#state"); s.value = "other"; s.dispatchEvent(new Event("change")); })()`)
	b.Want(`document.querySelector("#count").textContent`, "Shown: "+differ+" nodes of 60")
	b.Want(`document.querySelectorAll(".gpus.other").length === document.querySelectorAll(".node").length && document.querySelectorAll(".node .differs").length > 0`, true)
	b.Run(`document.querySelector("#changes").scrollIntoView({behavior: "instant"})`)
	b.Picture("compared.png")
	b.Run(`(() => { const s = document.querySelector("#state"); s.value = ""; s.dispatchEvent(new Event("change")); })()`)
}

// TestOneInBrowser: one fleet is compared with nothing.
func TestOneInBrowser(t *testing.T) {
	b := browser.Open(t)
	openPage(t, b, generated(1, 20))
	b.Want(`document.querySelector("#changes").hidden && document.querySelector("#other").hidden`, true)
	b.Want(`document.querySelectorAll(".gpus.other").length`, 0)
}

// TestPictureInBrowser draws the picture of README.md.
func TestPictureInBrowser(t *testing.T) {
	b := browser.Open(t)
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 420, "deviceScaleFactor": 1, "mobile": false})
	b.Call("Emulation.setScrollbarsHidden", map[string]any{"hidden": true})
	openPage(t, b, generated(11, 60))
	b.Run(`document.querySelector("#nodes").scrollIntoView({behavior: "instant"})`)
	b.Picture("page.webp")
	b.Picture("page.png")
}

// TestHostileInBrowser: a name is text, wherever it stands.
func TestHostileInBrowser(t *testing.T) {
	b := browser.Open(t)
	openPage(t, b, hostile())
	b.Run(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`)
	b.Want(`document.querySelectorAll("details table").length`, 3)
	b.Want(`window.owned`, "undefined")
	b.Want(`document.querySelectorAll("img").length`, 0)
	b.Want(`document.querySelector("h3").textContent.includes("<script>window.owned=1</script>")`, true)
	b.Want(`performance.getEntriesByType("resource").length`, 0)
	b.Picture("hostile.png")
}

// TestEmptyInBrowser: fleets of which little is known.
func TestEmptyInBrowser(t *testing.T) {
	b := browser.Open(t)
	openPage(t, b, inventory.New(at))
	b.Want(`document.querySelector("#count").textContent`, "No node has GPUs.")
	b.Want(`[...document.querySelectorAll("section")].filter((s) => s.hidden).length`, 4)
	bare := inventory.New(at)
	bare.Nodes = []inventory.Node{{Name: "bare"}, {Name: "counted", GPUs: inventory.GPUs{Count: 2}}}
	openPage(t, b, bare)
	b.Want(`document.querySelectorAll(".node").length`, 2)
}

// maxReady is how long a page of 5,000 nodes and 40,000 GPUs may take until it can be read, on a machine that does nothing else.
const maxReady = 2 * time.Second

// TestLargeInBrowser prints how long a page takes.
func TestLargeInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	b := browser.Open(t)
	f := generated(5, 5000)
	f.Pods = f.Pods[:50_000]
	path, ready := openPage(t, b, f)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	elements := b.Run(`document.querySelectorAll("*").length`)
	began := time.Now()
	b.Run(`(() => { const s = document.querySelector("#search"); s.value = "serve-0321"; s.dispatchEvent(new Event("input")); })()`)
	b.Want(`document.querySelector("#count").textContent.startsWith("Shown: 1 node of")`, true)
	t.Logf("5,000 nodes, %d pods, %d MiB: drawn after %s, %v elements; a search takes %s", len(f.Pods), info.Size()>>20,
		ready.Round(10*time.Millisecond), elements, time.Since(began).Round(10*time.Millisecond))
	if os.Getenv("PAGE_TIMES") != "" && ready > maxReady {
		t.Errorf("drawn after %s, at most %s", ready, maxReady)
	}
}

// TestAccessible runs axe-core over the page in both color schemes.
func TestAccessible(t *testing.T) {
	accessibility, b := browser.Accessibility(t), browser.Open(t)
	b.AllowScripts()
	for _, scheme := range []string{browser.Light, browser.Dark} {
		b.Colors(scheme)
		openPage(t, b, generated(1, 60), generated(2, 40))
		b.Run(`document.querySelector("details").open = true; document.querySelector("details").scrollIntoView({behavior: "instant"})`)
		b.Want(`document.querySelectorAll("details table").length`, 1)
		b.Picture("axe-" + scheme + ".png")
		b.Check(accessibility)
	}
}
