package demo

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	pictureLoop    = 18.0 // seconds until the picture begins again
	pictureColumns = 118
	lineHeight     = 17
	barWidth       = 480.0
	barGi          = 20.0 // what a bar of full width is

	// What both pods hold at first, and their slices: node/quiet.yaml and node/hog.yaml.
	quietGi, quietSlice = 12.0, 16.0
	hogGi, hogSlice     = 4.0, 8.0
)

// moment is the recording of one second: a line, and the hog's use from then on.
type moment struct {
	second float64
	text   string
	hog    float64 // GiB; -1: as before
}

var (
	storyLine = regexp.MustCompile(`^ *([0-9.]+)s  (.*)$`)
	hogUses   = regexp.MustCompile(`trainer uses ([0-9.]+)Gi of its|terminating \S+ \(pid \d+, ([0-9.]+)Gi\)`)
)

// moments returns the first story of a recording.
func moments(recording string) (out []moment) {
	story, _, _ := strings.Cut(recording, "\n=== ") // the samples follow
	for line := range strings.Lines(story) {
		m := storyLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || strings.Contains(m[2], "as an Event") { // repeats what two lines before it have
			continue
		}
		second, _ := strconv.ParseFloat(m[1], 64)
		hog := -1.0
		if use := hogUses.FindStringSubmatch(m[2]); use != nil && strings.HasPrefix(m[2], "guard") {
			hog, _ = strconv.ParseFloat(use[1]+use[2], 64)
		}
		switch {
		case strings.HasPrefix(m[2], "pod hog runs"):
			hog = hogGi
		case strings.HasPrefix(m[2], "pod hog: its process ended"):
			hog = 0
		}
		out = append(out, moment{second, m[2], hog})
	}
	return out
}

// picture draws the first story of a recording as an SVG that moves: two bars, and the lines as they were printed. Where the
// viewer prefers reduced motion, all lines stand still.
func picture(recording string) string {
	var style, lines strings.Builder
	steps, y := moments(recording), 112
	hog := "0%{width:0}"
	for i, m := range steps {
		from := 100 * m.second / pictureLoop
		fmt.Fprintf(&style, "@keyframes l%d{0%%,%.1f%%{opacity:0}%.1f%%,97%%{opacity:1}100%%{opacity:0}}#l%d{animation:l%d %gs infinite}\n",
			i, from, from+.5, i, i, pictureLoop)
		if m.hog >= 0 {
			hog += fmt.Sprintf("%.1f%%{width:%.0fpx}", from+.3*float64(i), m.hog/barGi*barWidth) // apart: of two frames at one time the last wins
		}
		fmt.Fprintf(&lines, `<g id="l%d">`, i)
		for j, part := range wrap(fmt.Sprintf("%5.1fs  %s", m.second, m.text), pictureColumns) {
			if j > 0 {
				part = "        " + part
			}
			fmt.Fprintf(&lines, `<text x="16" y="%d" xml:space="preserve">%s</text>`, y, escaped(part))
			y += lineHeight
		}
		lines.WriteString("</g>\n")
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 %d" role="img" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12">
<title>make run: pod hog goes past its slice of 8Gi and is terminated; pod quiet runs on</title>
<style>
text{fill:#d6deeb} .name{fill:#8fa6bf} #hog{fill:#ef5350} #quiet{fill:#66bb6a}
%s@keyframes hog{%s100%%{width:0}}#hog{animation:hog %gs linear infinite}
@media (prefers-reduced-motion:reduce){*{animation:none !important}}
</style>
<rect width="900" height="%d" rx="8" fill="#0d1722"/>
<text class="name" x="16" y="26">GPU memory of two pods that share a device</text>
%s%s%s</svg>
`, y, style.String(), hog, pictureLoop, y, bar("quiet", 40, quietGi, quietSlice), bar("hog", 66, 0, hogSlice), lines.String())
}

// bar draws a pod's holding, and a mark at its slice.
func bar(pod string, y int, gi, slice float64) string {
	mark := 96 + slice/barGi*barWidth
	return fmt.Sprintf(`<text class="name" x="16" y="%d">%s</text><rect x="96" y="%d" width="%g" height="16" fill="#1c2b3a"/>
<rect id="%s" x="96" y="%d" width="%.0f" height="16"/><path d="M%.0f %dv24" stroke="#ffd54f" stroke-width="2"/>
<text x="590" y="%d">slice: %gGi</text>
`, y+12, pod, y, barWidth, pod, y, gi/barGi*barWidth, mark, y-4, y+12, slice)
}

// wrap cuts text between words into lines of at most so many characters.
func wrap(text string, most int) (lines []string) {
	for len(text) > most {
		cut := strings.LastIndex(text[:most], " ")
		lines, text = append(lines, text[:cut]), text[cut+1:]
	}
	return append(lines, text)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes every write
	return b.String()
}
