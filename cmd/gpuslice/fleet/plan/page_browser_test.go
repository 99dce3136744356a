package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/browser"
)

// crowded is a snapshot of 24 nodes with eight whole GPUs each, of which pods that need a part hold all, while 40 others wait.
func crowded(t *testing.T) (path string) {
	t.Helper()
	f := inventory.New(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	for i, product := range []string{"NVIDIA-L4", "NVIDIA-A100-SXM4-80GB"} {
		memory := []api.MiB{23034, 81920}[i]
		f.Pools = append(f.Pools, inventory.Pool{Name: product + "-whole", Product: product, DeviceMemory: memory, Slice: memory,
			Resource: "nvidia.com/gpu", Strategy: "exclusive", Replicas: 1, Share: 1})
	}
	for i := range 24 {
		pool := &f.Pools[i/16]
		name := fmt.Sprintf("gpu-%02d", i)
		f.Nodes = append(f.Nodes, inventory.Node{Name: name, Labels: map[string]string{"nvidia.com/gpu.product": pool.Product},
			GPUs:        inventory.GPUs{Product: pool.Product, Count: 8, Memory: pool.DeviceMemory},
			Allocatable: inventory.Resources{"cpu": 128000, "memory": 1 << 40, "pods": 110, "nvidia.com/gpu": 8},
			Offers:      []inventory.Offer{{Pool: pool.Name, Units: 8}}})
		for d := range 8 {
			team := []string{"vision", "language", "batch"}[(i+d)%3]
			s := inventory.Slice{Container: "main", Pool: pool.Name, Resource: "nvidia.com/gpu", Count: 1,
				Memory: pool.DeviceMemory / api.MiB(3+(i+d)%4), Strategy: "time-slicing"}
			if d%2 == 0 {
				used := int64(s.Memory) << 19
				s.Usage = []inventory.Usage{{Device: fmt.Sprintf("GPU-%d-%d", i, d), UsedBytes: used, PeakBytes: used * 3 / 2}}
			}
			f.Pods = append(f.Pods, inventory.Pod{Namespace: team, Name: fmt.Sprintf("train-%d-%d", i, d), Node: name, Phase: corev1.PodRunning,
				Requests: inventory.Resources{"nvidia.com/gpu": 1, "cpu": 4000}, Slices: []inventory.Slice{s}})
		}
	}
	for i := range 40 {
		f.Pods = append(f.Pods, inventory.Pod{Namespace: "batch", Name: fmt.Sprintf("sweep-%d", i), Phase: corev1.PodPending,
			Requests: inventory.Resources{"nvidia.com/gpu": 1, "cpu": 4000},
			Slices:   []inventory.Slice{{Container: "main", Resource: "nvidia.com/gpu", Count: 1, Memory: 6000, Strategy: "time-slicing"}},
			Waiting:  "0/24 nodes are available: 24 Insufficient nvidia.com/gpu."})
	}
	path = filepath.Join(t.TempDir(), "fleet.json.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := inventory.Write(file, f); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPlanInBrowser looks at the page of a plan as whoever decides on it does: what it saves, which nodes change and how, and which pods
// wait.
func TestPlanInBrowser(t *testing.T) {
	b := browser.Open(t)
	page := filepath.Join(t.TempDir(), "plan.html")
	d := planOf(t, "--from", crowded(t), "--page", page)
	if d.Waiting.Before != 40 || d.Waiting.After != 0 || !d.Applied {
		t.Fatalf("the plan shows too little: %+v", d.Waiting)
	}
	b.Show(page)
	b.Picture("plan-light.png")
	b.Want(`[...document.querySelectorAll("#changes th")].map((th) => th.textContent).join()`, "What,today,planned,Difference")
	b.Want(`[...document.querySelectorAll("#changes tbody tr")[2].children].map((td) => td.textContent).join()`, "Pods that wait,40,0,-40")
	b.Want(`document.querySelectorAll("#waiting tbody tr").length`, 40)
	b.Want(`document.querySelector("#count").textContent`, "Shown: 24 nodes of 24")

	changed := 0
	for _, n := range d.Nodes {
		if n.Changed {
			changed += len(n.Names)
		}
	}
	choose := func(id, value string) {
		t.Helper()
		b.Run(
			fmt.Sprintf(`(() => { const s = document.querySelector("#%s"); s.value = %q; s.dispatchEvent(new Event("change")); })()`, id, value))
	}
	choose("state", "other")
	b.Want(`document.querySelector("#count").textContent`, fmt.Sprintf("Shown: %d nodes of 24", changed))
	b.Want(`document.querySelectorAll(".gpus.other").length === document.querySelectorAll(".node").length && document.querySelectorAll(".node .differs").length > 0`, true)
	b.Run(`document.querySelector("#nodes").scrollIntoView({behavior: "instant"})`)
	b.Picture("plan-differs.png")
	choose("state", "")

	b.Run(`document.querySelectorAll("#views input")[0].focus()`) // the keyboard goes from one view to the other
	b.Press("ArrowRight", "", 39)
	b.Want(`document.querySelectorAll("#views input")[1].checked && document.querySelector("#waiting").hidden`, true)
	b.Press("/", "/", 191)
	b.Call("Input.insertText", map[string]any{"text": "batch sweep-7"})
	b.Want(`document.querySelectorAll(".cell.hit").length`, 1)
	b.Run(`document.querySelector(".node summary").focus()`)
	b.Press("Enter", "\r", 13)
	b.Want(`[...document.querySelectorAll("details[open] tbody tr")].some((tr) => tr.textContent.includes("batch/sweep-7") && tr.textContent.includes("time-slicing"))`, true)
	b.Colors(browser.Dark)
	b.Picture("plan-dark.png")
}

// TestPlanAccessible runs axe-core over the page of a plan in both color schemes.
func TestPlanAccessible(t *testing.T) {
	accessibility, b := browser.Accessibility(t), browser.Open(t)
	b.AllowScripts()
	page := filepath.Join(t.TempDir(), "plan.html")
	planOf(t, "--from", crowded(t), "--page", page)
	for _, scheme := range []string{browser.Light, browser.Dark} {
		b.Colors(scheme)
		b.Show(page)
		for view := range 2 {
			b.Run(fmt.Sprintf(`document.querySelectorAll("#views input")[%d].click(); document.querySelector("details").open = true`, view))
			b.Want(`document.querySelectorAll("details table").length`, 1)
			b.Check(accessibility)
		}
		b.Picture("plan-axe-" + scheme + ".png")
	}
}
