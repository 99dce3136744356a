"use strict";
(() => {
  const views = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const chunkSize = 40;
  let view, shown = [], hits = null;

  // element makes an element. Text is set as text, so that no name is read as markup.
  function element(tag, className, text) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  function fill(parent, children) {
    parent.replaceChildren(...children);
  }

  function row(cells) {
    const tr = element("tr");
    for (const c of cells) {
      const td = element("td", typeof c === "number" ? "number" : "");
      if (c instanceof Node) td.append(c);
      else td.textContent = typeof c === "number" ? amount(c) : c;
      tr.append(td);
    }
    return tr;
  }

  const amount = (n) => (Number.isInteger(n) ? n : Math.round(n * 100) / 100).toLocaleString("en");
  const percent = (n) => Math.round(100 * n) + "%";
  const memory = (mib) => (mib < 1024 ? mib + "Mi" : Math.round(mib / 102.4) / 10 + "Gi");
  const plural = (n, one) => amount(n) + " " + one + (n === 1 ? "" : "s");

  // hue is the same for a namespace wherever it is drawn.
  const hues = new Map();
  function hue(name) {
    if (!hues.has(name)) {
      let h = 7;
      for (const c of name) h = (h * 31 + c.codePointAt(0)) % 360;
      hues.set(name, h);
    }
    return hues.get(name);
  }

  const parts = [
    ["used", "Used", "in slices, as much as containers have used at their peak"],
    ["unused", "Unused", "in slices, more than containers have ever used"],
    ["unknown", "Use unknown", "in slices, or held as whole units, that nothing measures"],
    ["rounding", "Rounding", "in replicas and MIG instances that are larger than the slices in them"],
    ["free", "Free", "offered, and held by no pod"],
    ["closed", "Closed", "not offered, or on nodes that take no pods"],
  ];
  const classOf = { free: "room" };

  // drawParts fills a bar of which the whole is so many devices.
  function drawParts(bar, s, whole) {
    fill(bar, parts.filter(([key]) => s[key] > 0).map(([key, name]) => {
      const part = element("span", classOf[key] || key);
      part.style.width = 100 * s[key] / whole + "%";
      part.title = name + ": " + amount(s[key]);
      return part;
    }));
  }

  function drawSums() {
    const s = view.sums, total = s.devices;
    drawParts(byId("sums-bar"), s, total);
    const rows = parts.map(([key, name, meaning]) => {
      const label = element("span", "", name);
      label.prepend(element("span", "swatch " + (classOf[key] || key)));
      return row([label, s[key], total ? percent(s[key] / total) : "", meaning]);
    });
    rows.push(row(["All", total, "", "on " + plural(s.nodes, "node")]));
    for (const tr of rows) tr.children[2].className = "number";
    fill(byId("sums-table").tBodies[0], rows);
  }

  // drawChanges compares two views. Their bars have one scale.
  function drawChanges() {
    const [before, after] = views, whole = Math.max(before.sums.devices, after.sums.devices, 1);
    byId("changes").hidden = false;
    byId("other").hidden = false;
    fill(byId("changes-bars"), views.flatMap((v) => {
      const bar = element("div", "bar wide");
      drawParts(bar, v.sums, whole);
      return [element("p", "soft", v.title), bar];
    }));
    const used = (v) => v.nodes.reduce((sum, n) => sum + n.devices.filter((d) => (d.cells || []).some((c) => c.slice)).length, 0);
    const figures = [["GPUs", (v) => v.sums.devices], ["GPUs with a pod", used], ["Pods that wait", (v) => v.waiting.length], ...parts.map(([key, name]) => [name + " (GPUs)", (v) => v.sums[key]])];
    byId("changes").querySelectorAll("th").forEach((th, i) => { if (i === 1 || i === 2) th.textContent = views[i - 1].title; });
    const rows = figures.map(([name, of]) => row([name, of(before), of(after), of(after) - of(before)]));
    rows.push(row(["Nodes divided differently", "", "", before.nodes.filter((n) => other(n, after)).length]));
    fill(byId("changes").querySelector("tbody"), rows);
  }

  // other is the node of another view, if it is divided differently there; undefined: it is not.
  function other(node, of) {
    if (!of.byName) of.byName = new Map(of.nodes.map((n) => [n.name, n]));
    const there = of.byName.get(node.name), from = views.find((v) => v !== of);
    return there && division(there, of) !== division(node, from) ? there : undefined;
  }

  // division is how the devices of a node are divided, whatever pods hold of them.
  function division(node, of) {
    return JSON.stringify(node.devices.map((d) => {
      const pool = of.pools[d.pool] || {}, shares = [];
      if (pool.strategy !== "claim") for (const c of d.cells || []) for (let i = 0; i < (c.slice ? 1 : c.free); i++) shares.push(Math.round(1000 * c.share));
      return [pool.strategy, shares.sort((a, b) => a - b)];
    }));
  }

  // drawTable fills a section's table, at most so many rows at first, or hides the section.
  function drawTable(id, items, cells) {
    const most = 500, section = byId(id), body = section.querySelector("tbody");
    section.hidden = items.length === 0;
    fill(body, items.slice(0, most).map((i) => row(cells(i))));
    if (items.length > most) {
      const more = element("button", "", "Show all " + amount(items.length));
      more.type = "button";
      more.addEventListener("click", () => fill(body, items.map((i) => row(cells(i)))));
      body.append(row([more]));
    }
  }

  function drawTables() {
    drawTable("waiting", view.waiting, (w) => [w.namespace + "/" + w.name, w.wants, w.since, w.why]);
    drawTable("spaces", view.namespaces, (n) => [n.name, n.pods, n.held, n.used, n.unknown, n.waiting]);
    drawTable("quotas", view.quotas, (q) => {
      const bar = element("div", "bar meter"), taken = element("span", q.taken >= 1 ? "rounding" : "used");
      taken.style.width = 100 * q.taken + "%";
      bar.append(taken);
      bar.setAttribute("role", "img");
      bar.setAttribute("aria-label", percent(q.taken));
      return [q.budget, q.quota, q.dimension, q.used, q.limit, bar];
    });
    for (const tr of byId("quotas").querySelectorAll("tbody tr")) tr.children[3].className = tr.children[4].className = "number";
  }

  // placesOf are the slices on a node by their numbers, each with its GPU from 1; 0: none.
  function placesOf(node) {
    const all = [];
    node.devices.forEach((d, i) => {
      for (const c of d.cells || []) if (c.slice) all.push([c.slice, i + 1]);
    });
    return all.concat((node.extra || []).map((i) => [i, 0]));
  }

  const slicesOf = (node) => placesOf(node).map(([i]) => i);

  function describe(s, p) {
    return p.namespace + "/" + p.name + (s.container ? ", container " + s.container : "") + ": " + size(s) + ", " + use(s);
  }

  const size = (s) => s.memory ? memory(s.memory) : "a whole unit";
  const use = (s) => s.known ? "uses " + memory(s.used || 0) + ", at most " + memory(s.peak || 0) : "use unknown";

  function drawDevice(d, of) {
    const bar = element("div", "bar");
    for (const c of d.cells || []) {
      if (!c.slice) {
        for (let i = 0; i < c.free; i++) {
          const free = element("span", "cell free");
          free.style.width = 100 * c.share + "%";
          free.title = "free" + (of.pools[d.pool] ? ", pool " + of.pools[d.pool].name : "");
          bar.append(free);
        }
        continue;
      }
      const s = of.slices[c.slice], p = of.pods[s.pod];
      const held = element("span", "cell held" + (s.known ? "" : " blind") + (of === view && hits && hits.has(c.slice) ? " hit" : ""), p.name);
      held.style.width = 100 * c.share + "%";
      held.style.setProperty("--hue", hue(p.namespace));
      held.title = describe(s, p);
      const most = s.memory || (of.pools[s.pool] || {}).largest;
      if (s.known && most) {
        const line = element("i");
        line.style.width = Math.min(100 * (s.peak || 0) / most, 100) + "%";
        held.append(line);
      }
      bar.append(held);
    }
    return bar;
  }

  function sentence(node, slices) {
    const text = [plural(node.devices.length, "GPU"), plural(slices, "slice"), amount(node.free) + " free"];
    if (node.unused >= 0.005) text.push(amount(node.unused) + " unused");
    if (node.extra) text.push(node.extra.length + " on no GPU that is offered");
    if (node.state) text.push(node.state);
    return text.join(", ");
  }

  function drawNode(node) {
    const item = element("li", "node"), details = element("details"), summary = element("summary"), name = element("div", "name");
    const places = placesOf(node);
    name.append(element("h3", "", node.name), element("span", "soft", [node.product || "model unknown", sentence(node, places.length)].join(": ")));
    const gpus = element("div", "gpus");
    gpus.setAttribute("aria-hidden", "true");
    gpus.append(...node.devices.map((d) => drawDevice(d, view)));
    summary.append(name, gpus);
    const compared = views.find((v) => v !== view), there = compared && other(node, compared);
    if (there) {
      const was = element("div", "gpus other");
      was.setAttribute("aria-hidden", "true");
      was.append(...there.devices.map((d) => drawDevice(d, compared)));
      name.append(element("span", "differs", "divided differently; second row: " + compared.title));
      summary.append(was);
    }
    details.append(summary);
    details.addEventListener("toggle", () => {
      if (details.open && !details.querySelector("table")) details.append(drawSlices(node, places));
    });
    item.append(details);
    return item;
  }

  function drawSlices(node, places) {
    if (places.length === 0) return element("p", "soft", "No pod with GPUs runs here.");
    const table = element("table"), head = element("thead"), body = element("tbody"), titles = element("tr");
    for (const title of ["GPU", "Pod", "Owner", "Container", "Slice", "Used", "At most", "Enforced by", "Pool", "Since"]) {
      const th = element("th", "", title);
      th.scope = "col";
      titles.append(th);
    }
    head.append(titles);
    body.append(...places.map(([i, gpu]) => {
      const s = view.slices[i], p = view.pods[s.pod], pool = view.pools[s.pool];
      return row([gpu ? String(gpu) : "none", p.namespace + "/" + p.name, p.owner || "", s.container || "", size(s), s.known ? memory(s.used || 0) : "unknown",
        s.known ? memory(s.peak || 0) : "unknown", s.tier || "", pool ? pool.name : "", p.since || ""]);
    }));
    table.setAttribute("aria-label", "Slices on " + node.name);
    table.append(head, body);
    return table;
  }

  // Chunks of the list are drawn when they come near the window: 5,000 nodes have more elements than a browser likes.
  const near = new IntersectionObserver((entries) => {
    for (const e of entries) if (e.isIntersecting) drawChunk(e.target);
  }, { rootMargin: "800px" });

  function drawChunk(chunk) {
    near.unobserve(chunk);
    if (chunk.firstChild) return;
    chunk.style.minHeight = "";
    const first = Number(chunk.dataset.first);
    fill(chunk, shown.slice(first, first + chunkSize).map(drawNode));
  }

  function drawNodes() {
    near.disconnect();
    const chunks = [];
    for (let first = 0; first < shown.length; first += chunkSize) {
      const chunk = element("ul", "chunk");
      chunk.setAttribute("role", "list");
      chunk.setAttribute("aria-label", "Nodes " + (first + 1) + " to " + Math.min(first + chunkSize, shown.length));
      chunk.dataset.first = first;
      chunk.style.minHeight = 56 * Math.min(chunkSize, shown.length - first) + "px";
      chunks.push(chunk);
    }
    fill(byId("list"), chunks);
    if (chunks.length > 0) drawChunk(chunks[0]);
    for (const c of chunks) near.observe(c);
    byId("list").classList.toggle("searching", hits !== null);
    byId("count").textContent = view.nodes.length === 0 ? "No node has GPUs."
      : "Shown: " + plural(shown.length, "node") + " of " + amount(view.nodes.length) + (hits === null ? "" : ", " + plural(hits.size, "slice") + " found");
  }

  // texts are what the search looks at, in small letters: made once for a view.
  function texts() {
    if (view.texts) return view.texts;
    const pods = view.pods.map((p) => (p.namespace + "/" + p.name + " " + (p.owner || "")).toLowerCase());
    const pools = view.pools.map((p) => p.name.toLowerCase());
    view.texts = view.nodes.map((n) => ({
      node: [n.name, n.product, n.state || "", ...new Set(n.devices.map((d) => pools[d.pool] || ""))].join(" ").toLowerCase(),
      slices: slicesOf(n).map((i) => [i, pods[view.slices[i].pod] + " " + (view.slices[i].container || "").toLowerCase()]),
    }));
    return view.texts;
  }

  const states = {
    "": () => true,
    free: (n) => n.free > 0.001,
    unused: (n) => n.unused > 0.1,
    closed: (n) => n.state || n.devices.some((d) => d.pool < 0),
    empty: (n) => slicesOf(n).length === 0,
    other: (n) => views.length > 1 && other(n, views.find((v) => v !== view)),
  };

  function search() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const model = byId("model").value, state = states[byId("state").value], order = byId("order").value;
    const all = words.length > 0 ? texts() : null;
    hits = words.length > 0 ? new Set() : null;
    shown = view.nodes.filter((n, i) => {
      if (model && n.product !== model || !state(n)) return false;
      if (!all) return true;
      if (words.every((w) => all[i].node.includes(w))) return true;
      const found = all[i].slices.filter(([, text]) => words.every((w) => text.includes(w) || all[i].node.includes(w)));
      for (const [slice] of found) hits.add(slice);
      return found.length > 0;
    });
    if (order !== "name") shown.sort((a, b) => b[order] - a[order]);
    drawNodes();
  }

  function open(next) {
    view = next;
    byId("taken").textContent = view.taken ? "As of " + view.taken + "." : "";
    const models = [...new Set(view.nodes.map((n) => n.product).filter(Boolean))].sort(), model = byId("model");
    fill(model, [new Option("all", ""), ...models.map((m) => new Option(m, m, false, m === model.value))]);
    fill(byId("notes"), view.notes.map((n) => element("li", "", "Not known: " + n)));
    drawSums();
    drawTables();
    search();
  }

  function start() {
    byId("views").hidden = views.length < 2;
    if (views.length > 1) drawChanges();
    views.forEach((v, i) => {
      const label = element("label", "", " " + v.title), radio = element("input");
      radio.type = "radio";
      radio.name = "view";
      radio.checked = i === 0;
      radio.addEventListener("change", () => open(v));
      label.prepend(radio);
      byId("views").append(label);
    });
    let later;
    byId("search").addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(search, 120);
    });
    for (const id of ["model", "state", "order"]) byId(id).addEventListener("change", search);
    byId("filters").addEventListener("submit", (e) => {
      e.preventDefault();
      search();
    });
    document.addEventListener("keydown", (e) => {
      if (e.key === "/" && !document.activeElement.matches("select, [type=search]")) {
        e.preventDefault();
        byId("search").focus();
      }
    });
    open(views[0]);
    document.documentElement.dataset.drawn = "true";
  }

  start();
})();
