(() => {
"use strict";
const byID = id => document.getElementById(id), all = (s, e = document) => [...e.querySelectorAll(s)];
let data, plots, at, range, failures = 0;

// number formats three digits.
const number = v => v == null || !isFinite(v) ? "–" : Math.abs(v) >= 1000 ? v.toFixed(0) : String(+v.toPrecision(3));
// clock formats seconds.
const clock = s => {
  const two = (a, u, b, v) => `${Math.floor(a)} ${u} ${String(Math.floor(b)).padStart(2, "0")} ${v}`;
  return !isFinite(s) ? "–" : s >= 3600 ? two(s / 3600, "h", s / 60 % 60, "min") : s >= 60 ? two(s / 60, "min", s % 60, "s") : s >= 0.9995 ? s.toFixed(1) + " s" : s ? number(1000 * s) + " ms" : "0 s";
};

// bucket returns the index of the bucket at a share of a time axis.
const bucket = (t, x) => {
  const i = t.t.findIndex(end => end >= x * t.len - 1e-9);
  return i < 0 ? t.t.length - 1 : i;
};
// value returns the reading of a line in bucket i; brief leaves out the least and the greatest value.
const value = (s, i, unit, brief) => {
  if (s.v[i] == null) return brief ? "–" : "not measured";
  const of = v => (number(v) + " " + unit).trim();
  return !brief && s.hi && s.hi[i] !== s.lo[i] ? `mean ${of(s.v[i])}, ${number(s.lo[i])} to ${of(s.hi[i])}` : of(s.v[i]);
};

// there is the head of the readings of a range.
const there = "in this range";
// say shows the readings of a chart: of the job in its title, of several lines in its key.
function say(p, head, of) {
  if (p.chart.key) {
    all(".key output", p.figure).forEach((o, k) => { o.textContent = head && p.chart.s[k] ? of(p.chart.s[k], true) : ""; });
    p.out.textContent = head;
    return;
  }
  const line = p.chart.s[p.chart.rows ? p.row : 0];
  p.out.textContent = head && `${head === there ? "" : head + ": "}${p.chart.rows ? line.n + " " : ""}${of(line)}`;
}

// show reads the bucket at a share of the time axis in all charts; null = none.
function show(x) {
  at = x;
  for (const p of plots) {
    const i = x == null ? -1 : bucket(p.time, x);
    p.cur.style.display = i < 0 ? "none" : "block";
    if (i < 0) { say(p, ""); continue; }
    p.cur.style.left = 100 * p.time.t[i] / p.time.len + "%";
    say(p, "at " + clock(p.time.t[i]), (s, brief) => value(s, i, p.chart.u, brief));
    p.box.ariaValueNow = i;
    p.box.ariaValueText = p.out.textContent;
  }
}

// pick shows the mean, the peak and the total of a range of time, from 0 to 1, in all charts.
function pick(a, b) {
  range = [a, b] = [Math.min(a, b), Math.max(a, b)];
  const sel = byID("sel"), len = plots[0].time.len;
  sel.classList.add("on");
  sel.querySelector("b").textContent = clock(a * len) + " to " + clock(b * len);
  for (const p of plots) {
    p.cur.style.display = "none";
    p.sel.style.cssText = `display:block;left:${100 * a}%;width:${100 * (b - a)}%`;
    say(p, there, s => {
      let seconds = 0, sum = 0, most = -Infinity, begin = 0;
      p.time.t.forEach((end, i) => {
        const part = Math.min(end, b * p.time.len) - Math.max(begin, a * p.time.len);
        begin = end;
        if (!(part > 0) || s.v[i] == null) return;
        seconds += part; sum += part * s.v[i]; most = Math.max(most, (s.hi || s.v)[i]);
      });
      if (!seconds) return "not measured";
      const total = p.chart.tu ? `, total ${number(sum)} ${p.chart.tu}` : "";
      return `mean ${number(sum / seconds)}, peak ${number(most)} ${p.chart.u}${total}`;
    });
  }
}
function clear() {
  range = null;
  byID("sel")?.classList.remove("on");
  plots.forEach(p => { p.sel.style.display = "none"; p.anchor = null; });
  show(null);
}

// place returns the place of the mouse in a box, from 0 to 1.
const place = (box, e) => { const r = box.getBoundingClientRect(); return [(e.clientX - r.left) / r.width, (e.clientY - r.top) / r.height]; };
// within returns i as an index of n items.
const within = (n, i) => Math.min(n - 1, Math.max(0, i));

// plot makes a chart respond to the mouse and to keys.
function plot(box) {
  const figure = box.closest("figure"), chart = data.charts[figure.dataset.values], p = { box, figure, chart, time: data.times[chart.node], row: 0 };
  p.out = figure.querySelector(".r");
  for (const c of ["cur", "sel"]) { p[c] = document.createElement("i"); p[c].className = c; box.append(p[c]); }
  Object.assign(box, { tabIndex: 0, role: "slider", ariaLabel: box.querySelector("svg").ariaLabel, ariaValueMin: 0, ariaValueMax: p.time.t.length - 1, ariaValueNow: 0 });
  const share = e => Math.min(1, Math.max(0, place(box, e)[0]));
  let from = null;
  box.onpointerdown = e => {
    if (e.pointerType === "mouse" && e.button) return;
    clear();
    from = share(e);
    if (e.pointerType === "mouse") box.setPointerCapture(e.pointerId); else show(from);
  };
  box.onpointermove = e => {
    if (chart.rows) p.row = within(chart.s.length, Math.floor(place(box, e)[1] * chart.s.length));
    if (from != null && Math.abs(share(e) - from) > 0.01) pick(from, share(e));
    else if (!range) show(share(e));
  };
  box.onpointerup = box.onpointercancel = () => { from = null; };
  box.onpointerleave = e => { if (e.pointerType === "mouse" && from == null && !range) show(null); };
  box.onblur = () => { if (!range) show(null); };
  box.onkeydown = e => {
    const last = p.time.t.length - 1, now = at == null ? -1 : bucket(p.time, at), up = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (e.key === "Escape") { clear(); return; }
    let i = { ArrowLeft: Math.max(0, now < 0 ? last : now - 1), ArrowRight: Math.min(last, now + 1), Home: 0, End: last }[e.key];
    if (chart.rows && up) { p.row = within(chart.s.length, p.row + up); i = Math.max(0, now); }
    if (i == null || last < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const x = k => k < 0 ? 0 : p.time.t[k] / p.time.len;
    if (e.shiftKey) {
      p.anchor ??= Math.max(0, now);
      const [a, b] = [Math.min(p.anchor, i), Math.max(p.anchor, i)];
      show(x(i)); pick(x(a - 1), x(b));
    } else { if (range) clear(); show(x(i)); }
  };
  return p;
}

// heat makes a heat map respond to the mouse and to keys. The green part of a color says how much it means.
function heat(figure) {
  const box = figure.querySelector(".map"), img = box.querySelector("img"), map = data.maps[figure.dataset.heatmap], out = figure.querySelector(".r");
  const green = [240, 207, 143, 79, 26];
  let row = 0, column = -1, pixels = null;
  const read = () => {
    if (!pixels) {
      const c = document.createElement("canvas"), g = c.getContext("2d");
      c.width = img.naturalWidth; c.height = img.naturalHeight;
      if (!c.width) return;
      g.drawImage(img, 0, 0);
      pixels = g.getImageData(0, 0, c.width, c.height);
    }
    row = within(map.n.length, row); column = within(pixels.width, column);
    const d = pixels.data.slice(4 * (row * pixels.width + column)), k = within(4, green.findIndex(g => g < d[1]) - 1);
    const v = d[1] <= 26 ? 1 : (k + (green[k] - d[1]) / (green[k] - green[k + 1])) / 4;
    out.textContent = `${map.n[row]} at ${clock(map.len * (column + 0.5) / pixels.width)}: ${d[3] ? number(Math.max(0, v) * map.top) + " " + map.u : "not measured"}`;
  };
  box.onpointermove = e => {
    const [x, y] = place(box, e);
    row = Math.floor(y * map.n.length); column = Math.floor(x * img.naturalWidth);
    read();
  };
  box.onpointerleave = box.onblur = () => { out.textContent = ""; };
  box.onkeydown = e => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
    if (!step) return;
    e.preventDefault(); row += step[0]; column += step[1]; read();
  };
}

// sortable makes a click on a column's head sort a table, and another click reverse the order.
function sortable(table) {
  const heads = all("th", table.tHead), body = table.tBodies[0];
  heads.forEach((th, i) => {
    th.tabIndex = 0;
    th.onclick = () => {
      const down = th.hasAttribute("aria-sort") ? th.getAttribute("aria-sort") !== "descending" : body.rows[0].cells[i].matches(".n, [data-value]"), key = tr => { const c = tr.cells[i]; return c.dataset.value !== undefined ? +c.dataset.value : c.classList.contains("n") ? -1 : c.textContent; };
      [...body.rows].sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); }).forEach(tr => body.append(tr));
      heads.forEach(h => h.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
    };
    th.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); th.onclick(); } };
  });
}

// copy copies the line beside a button. A page from a file may not use the clipboard: then copy selects the line.
function copy(button) {
  const line = button.parentNode.querySelector("code"), done = () => { button.textContent = "Copied"; };
  const select = () => {
    getSelection().selectAllChildren(line);
    if (!document.execCommand("copy")) return;
    // A live page keeps selected text.
    getSelection().removeAllRanges();
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(line.textContent).then(done, select); else select();
}

// start makes the page respond.
function start() {
  data = JSON.parse(byID("data").textContent);
  plots = all(".p").map(plot);
  at = range = null;
  all("[data-heatmap]").forEach(heat);
  all("[data-processes]").forEach(sortable);
  all(".copy button").forEach(b => { b.onclick = () => copy(b); });
  if (byID("sel")) byID("sel").querySelector("button").onclick = clear;
  const updated = byID("updated"), when = updated && new Date(updated.dataset.at * 1000);
  if (when && !isNaN(when)) updated.textContent = when.toTimeString().slice(0, 8);
}

// take replaces this page by a later one of the same run, but not what was opened, read or picked.
function take(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html"), page = fresh.getElementById("page"), later = fresh.getElementById("data");
  if (!page || !later || JSON.parse(later.textContent).run !== data.run) {
    // Do not ask again.
    failures = 8;
    throw new Error("the page of another run");
  }
  if (!getSelection().isCollapsed) return;
  const focused = plots.find(p => p.box === document.activeElement), values = focused?.figure.dataset.values, anchor = focused?.anchor;
  const open = all("details").map(d => d.open), ticked = all("input").map(i => i.checked), t = plots[0]?.time;
  const seconds = t && { at: at == null ? null : at * t.len, range: range && range.map(x => x * t.len) };
  byID("page").replaceWith(document.importNode(page, true));
  all("details").forEach((d, i) => { d.open = !!open[i]; });
  all("input").forEach((d, i) => { d.checked = !!ticked[i]; });
  start();
  const now = plots[0]?.time, p = plots.find(p => p.figure.dataset.values === values);
  if (p) { p.box.focus({ preventScroll: true }); p.anchor = anchor; }
  if (now && seconds?.range) pick(...seconds.range.map(s => s / now.len));
  else if (now && seconds?.at != null) show(seconds.at / now.len);
}

// refresh fetches the page again during the run. While requests fail it asks less often, and then stops: most likely the
// run has ended.
function refresh() {
  if (document.hidden) { setTimeout(refresh, data.live); return; }
  // Without the origin, the address would have the password with which the page was opened; fetch refuses that.
  fetch(location.origin + location.pathname, { cache: "no-store", signal: AbortSignal.timeout(Math.max(10000, 2 * data.live)) }).then(r => {
    if (!r.ok) throw new Error(r.status);
    return r.text();
  }).then(text => { take(text); failures = 0; byID("stale").hidden = true; }).catch(() => {
    if (++failures > 1) byID("stale").hidden = false;
  }).finally(() => {
    if (failures < 8) setTimeout(refresh, Math.min(60000, data.live * 2 ** failures));
  });
}

start();
document.documentElement.classList.add("js");
if (data.live) setTimeout(refresh, data.live);
})();
