(function () {
"use strict";
var root = document.documentElement, byID = function (id) { return document.getElementById(id); };
var plan = JSON.parse(byID("plan").textContent), parsed = {}, charts = [], shown = null, zoomed = false, wholes = {};

// element returns a new element with a text. Text from a report is never HTML.
function element(tag, text, name) {
  var e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
}
function css(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
function node(name) {
  if (parsed[name]) return parsed[name];
  var n = JSON.parse(byID("node-" + name).textContent), bands = function (list) { return list.map(function (b) { return b && b.map(unpack); }); };
  n.t = unpack(n.t, true);
  n.c = n.c.map(bands);
  n.a = n.a.map(bands);
  return parsed[name] = n;
}
// unpack decodes a list that encodeNumbers in page_data.go encoded.
function unpack(v, time) {
  if (!plan.packed) return v;
  if (v.length === 2) return Array(v[1]).fill(v[0]);
  if (v.length !== 3) return v;
  var raw = atob(v[2]), out = [];
  for (var i = 0; i < raw.length; i += 2) {
    var q = raw.charCodeAt(i) | raw.charCodeAt(i + 1) << 8, x = v[0] + q / 65534 * (v[1] - v[0]);
    out.push(q === 65535 ? null : q === 65534 ? v[1] : time === true ? x : +x.toPrecision(4));
  }
  return out;
}
// number formats a number with all its digits, and never with an exponent; brief formats four digits.
function number(v) {
  if (v === null || v === undefined) return "–";
  var parts = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(v);
  if (!parts) return String(v);
  var digits = parts[2] + (parts[3] || ""), point = 1 + Number(parts[4]);
  if (point <= 0) return parts[1] + "0." + "0".repeat(-point) + digits;
  if (digits.length <= point) return parts[1] + digits + "0".repeat(point - digits.length);
  return parts[1] + digits.slice(0, point) + "." + digits.slice(point);
}
function brief(v) { return v === null || v === undefined ? "–" : number(+v.toPrecision(4)); }

// clock formats seconds as h:min:s.
function clock(s, decimals) {
  var unit = Math.pow(10, decimals), whole = Math.round(s * unit), minutes = Math.floor(whole / unit / 60), rest = (whole - minutes * 60 * unit) / unit;
  var two = function (n, text) { return (n < 10 ? "0" : "") + text; };
  return Math.floor(minutes / 60) + ":" + two(minutes % 60, minutes % 60) + ":" + two(rest, rest.toFixed(decimals));
}
var day = 86400, timeSteps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  day, 2 * day, 5 * day, 10 * day, 20 * day, 50 * day, 100 * day, 200 * day, 500 * day, 1000 * day, 2000 * day, 5000 * day];
function timeTicks(min, max, wanted) {
  var span = max - min || 1, step = timeSteps.find(function (s) { return span / s <= wanted; }) || 5000 * day, ticks = [];
  for (var i = Math.ceil(min / step - 1e-9); i * step <= max * (1 + 1e-9) && ticks.length < 100; i++) ticks.push(i * step);
  return { ticks: ticks, decimals: step < 0.01 ? 3 : step < 0.1 ? 2 : step < 1 ? 1 : 0 };
}
// short formats a label that fits next to the axis.
function short(v) { return Math.abs(v) >= 1e6 ? v.toExponential(1) : String(+v.toFixed(3)); }
function nice(v) {
  if (!(v > 0)) return 1;
  var p = Math.pow(10, Math.floor(Math.log10(v)));
  return [1, 2, 2.5, 5, 10].find(function (m) { return m * p >= v * (1 - 1e-9); }) * p;
}
// valueAxis returns the axis from 0, or a negative least value, up to a greatest value, in a suitable binary unit. It
// ends exactly at top for a stack, and no earlier otherwise.
function valueAxis(unit, top, least, greatest, exact) {
  var scale = 1;
  if (top && !exact && unit === "%") return { min: 0, max: Math.max(top, greatest), scale: 1, unit: unit, ticks: [0, 25, 50, 75, 100] };
  if (top) greatest = exact ? top : Math.max(top, greatest);
  if (unit.slice(0, 3) === "MiB" && greatest > 0) {
    var found = [[1048576, "TiB"], [1024, "GiB"], [1, "MiB"], [1 / 1024, "KiB"]].find(function (u) { return greatest >= u[0]; }) || [1 / 1048576, "B"];
    scale = found[0]; unit = found[1] + unit.slice(3);
  }
  if (!(greatest > 0) && !(least < 0)) greatest = scale;
  var step = nice((greatest / 4 - least / 4) / scale) * scale, n = Math.ceil(greatest / step - 1e-9), m = Math.ceil(-least / step - 1e-9), ticks = [];
  for (var i = -m; i <= n && (!exact || i * step <= greatest * (1 + 1e-9)); i++) ticks.push(i * step);
  return { min: -m * step, max: exact ? greatest : n * step, scale: scale, unit: unit, ticks: ticks };
}

// dashes are the kinds of lines: their class in the legend, and the pixels of dashes in chart.go.
var dashes = [["", undefined], ["dash", [4, 3]], ["dot", [1.5, 2.5]], ["dashdot", [9, 3, 2, 3]]];

// The parts of a stack, by their numbers in stack.go.
var jobPart = 1, allPart = 2, sharePart = 3, cachePart = 4;

// rowsOf returns a row for each measured series of a node in chart i, and then the rows that only the tooltip shows.
function rowsOf(n, i) {
  var c = plan.charts[i], bands = n.c[i], rows = [], asides = [];
  c.series.forEach(function (s, i) {
    var band = bands && bands[i];
    if (band) rows.push({ label: s.label, name: s.spread ? "--spread" : "--s" + (s.color || 0) % 4, spread: s.spread, dash: s.dash || 0, band: band, unit: c.unit, part: s.part || 0 });
  });
  if (c.stack) rows = stacked(c, rows, n.w && n.w[c.id]);
  (n.a[i] || []).forEach(function (band, j) {
    if (band) asides.push({ label: c.asides[j].label, spread: c.asides[j].spread, band: band, unit: c.asides[j].unit, aside: true });
  });
  return rows.length ? rows.concat(asides) : [];
}
// stacked returns the layers of a stack, from the lowest to the highest, and then its lines, like Stacked in stack.go.
function stacked(c, rows, whole) {
  var find = function (p) { return rows.find(function (r) { return r.part === p; }); }, mean = function (r) { return r.band.length === 1 ? r.band[0] : r.band[1]; };
  var job = find(jobPart), all = find(allPart), share = find(sharePart), cache = find(cachePart), lines = rows.filter(function (r) { return !r.part; }), layers = [], aside = [];
  var derived = function (label, name, list) { layers.push({ label: label, name: name, band: [list], unit: c.unit, layer: true, derived: true, dash: 0 }); };
  if (!all && share) {
    if (!whole) return [Object.assign(share, { label: c.stack[1], unit: "%" })];
    aside = [{ label: c.stack[2], band: share.band, unit: "%", aside: true }];
    share.band = share.band.map(function (list) { return list.map(function (v) { return v === null ? null : v * (whole / 100); }); });
    all = share;
  }
  if (!all && !job) return lines;
  layers.push(Object.assign(job || Object.assign({}, all, { label: c.stack[1] }), { layer: true }));
  if (all && job) {
    var known = function (i) { return i < mean(job).length && mean(job)[i] !== null; };
    derived("others", "--others", mean(all).map(function (v, i) { return v !== null && known(i) ? Math.max(0, v - mean(job)[i]) : null; }));
    var mixed = mean(all).map(function (v, i) { return known(i) ? null : v; });
    if (mixed.some(function (v) { return v !== null; })) derived("job and others, not told apart", "--mixed", mixed);
    lines.unshift(Object.assign(all, { name: "--others" }));
  }
  if (cache && all) layers.push(Object.assign(cache, { name: "--cache", layer: true, flat: true }));
  if (whole && all) derived(c.stack[0], "--rest", mean(all).map(function (v, i) {
    return v === null ? null : Math.max(0, whole - layers.reduce(function (sum, r) { return sum + (mean(r)[i] || 0); }, 0));
  }));
  return layers.concat(lines, aside);
}

// lists returns the lists of numbers of a chart and their options for uPlot.
function lists(c, i, bound) {
  var n = node(shown), out = { lists: [], series: [{}], bands: [], rows: rowsOf(n, i) }, least = 0, greatest = 0, base = [];
  var add = function (list, of, options) {
    out.lists.push({ list: list, of: of });
    out.series.push(Object.assign({ paths: uPlot.paths.stepped({ align: -1 }), points: { show: false }, width: 0, stroke: "transparent" }, options));
    return out.lists.length;
  };
  out.rows.forEach(function (r) { // the areas of a stack
    if (!r.layer) return;
    var list = r.band.length === 1 ? r.band[0] : r.band[1], low = list.map(function (v, i) { return v === null ? null : base[i] || 0; });
    list.forEach(function (v, i) { base[i] = (base[i] || 0) + Math.max(0, v || 0); });
    var high = list.map(function (v, i) { return v === null ? null : base[i]; });
    out.bands.push({ series: [add(high, null, {}), add(low, null, {})], fill: function () { return faint(css(r.name), r.name === "--rest" ? .25 : r.name === "--s0" ? .7 : .8); } });
  });
  out.rows.forEach(function (r) {
    var band = r.band, name = r.name, low = band[0], mean = band.length === 1 ? band[0] : band[1], most = band.length === 1 ? band[0] : band[2];
    if (r.derived || r.flat || r.aside) return;
    most.forEach(function (v) { if (v > greatest && v >= 1e-100) greatest = Math.min(v, 1e300); });
    if (c.signed) low.forEach(function (v) { if (v < least && v <= -1e-100) least = Math.max(v, -1e300); });
    var edge = r.spread || r.dash ? {} : { width: 0.8, stroke: function () { return faint(css(name), .55); } };
    out.bands.push({ series: [add(most, Math.max, edge), add(low, Math.min, {})], fill: function () { return r.spread ? css(name) : faint(css(name), .3); } });
    if (!r.spread) add(mean, null, { width: 1.5, stroke: function () { return css(name); }, dash: dashes[r.dash || 0][1] });
  });
  var whole = c.stack && n.w && n.w[c.id], end = n.z && n.z[c.id], peak = n.o && n.o[c.id];
  if (peak) greatest = Math.max(greatest, peak[0]);
  out.fit = whole && end < whole ? end : 0;
  if (whole) {
    out.axis = valueAxis(c.unit, out.fit && !wholes[c.id] ? end : Math.max(whole, end || 0), 0, 0, !out.fit || wholes[c.id]);
    return out;
  }
  if (bound && bound[0] <= 4 * greatest) greatest = Math.max(greatest, bound[0]); // like maxBoundRatio in chart.go
  var unit = c.stack && out.rows[0] ? out.rows[0].unit : c.unit;
  out.axis = valueAxis(unit, unit === "%" && c.stack ? 100 : c.top, least, greatest);
  return out;
}

// fold merges the buckets i…j−1 of a list: the least, the greatest or, if of is null, the mean by their time.
// null = nothing was measured.
function fold(list, of, t, i, j) {
  var v = null, weight = 0;
  for (; i < j; i++) {
    var x = list[i], w = Math.max(t[i] - (i ? t[i - 1] : 0), 1e-9);
    if (x === null || x === undefined) continue;
    v = v === null ? (of ? x : x * w) : of ? of(v, x) : v + x * w;
    weight += w;
  }
  return of || v === null ? v : v / weight;
}

// visible returns uPlot's data of a time range. If there are more buckets than pixel columns, neighbours are merged, so
// that every peak is wide enough to be visible. Each bucket is drawn back to the end of the previous one.
function visible(k, from, to) {
  var t = node(shown).t, first = bucketAt(t, from), end = bucketAt(t, to) + 1;
  var g = k.group = Math.max(1, Math.ceil((end - first) / Math.max(20, k.room)));
  var a = Math.max(0, Math.floor(first / g) * g - g), b = Math.min(t.length, Math.ceil(end / g) * g + g), xs = t.length ? [a ? t[a - 1] : 0] : [];
  for (var i = a; i < b; i += g) xs.push(t[Math.min(i + g, b) - 1]);
  return begun([xs].concat(k.made.lists.map(function (l) {
    var out = [];
    for (var i = a; i < b; i += g) out.push(g === 1 ? l.list[i] : fold(l.list, l.of, t, i, Math.min(i + g, b)));
    return out.length ? [out[0]].concat(out) : out;
  })));
}

// begun adds a point before the first measured bucket of a list, which is also drawn from the end of the previous one.
function begun(data) {
  var out = data.map(function () { return []; }), no = function (v) { return v === null || v === undefined; };
  data[0].forEach(function (x, i) {
    var begins = i > 1 && data.some(function (list) { return !no(list[i]) && no(list[i - 1]); });
    data.forEach(function (list, k) {
      if (begins) out[k].push(no(list[i - 1]) ? list[i] : list[i - 1]);
      out[k].push(list[i]);
    });
  });
  return out;
}
function faint(hex, share) {
  if (hex.length === 4) hex = "#" + hex[1] + hex[1] + hex[2] + hex[2] + hex[3] + hex[3];
  var n = parseInt(hex.slice(1), 16);
  return "rgba(" + (n >> 16) + "," + (n >> 8 & 255) + "," + (n & 255) + "," + share + ")";
}

// The tooltip of all charts and maps.
var tip = element("div");
tip.setAttribute("role", "tooltip");
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("aria-live", "polite");
document.body.appendChild(tip);
function tell(lines, x, y) {
  tip.replaceChildren.apply(tip, lines.map(function (l) {
    var p = element("p", l.text);
    if (l.exact) p.title = l.exact;
    return p;
  }));
  tip.hidden = false;
  var w = tip.offsetWidth, h = tip.offsetHeight;
  x = x + 16 + w > innerWidth ? Math.max(4, x - 16 - w) : x + 16;
  y = y + 14 + h > innerHeight ? Math.max(4, y - 14 - h) : y + 14;
  tip.style.transform = "translate(" + Math.round(x) + "px," + Math.round(y) + "px)";
}
function hush() { tip.hidden = true; }

// bucketAt returns the bucket that contains a time.
function bucketAt(ends, x) {
  var lo = 0, hi = ends.length - 1;
  while (lo < hi) {
    var mid = lo + hi >> 1;
    if (ends[mid] >= x) hi = mid; else lo = mid + 1;
  }
  return lo;
}
function span(n, i) {
  var from = i ? n.t[i - 1] : 0, to = n.t[i], when = new Date((n.s + to) * 1000), decimals = to - from < 0.01 ? 3 : to - from < 1 ? 2 : from % 1 || to % 1 ? 1 : 0;
  var at = n.s && !isNaN(when) ? when.toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC") : "";
  return clock(from, decimals) + " to " + clock(to, decimals) + (at ? " · until " + at : "");
}
// reading returns the text of a row in a bucket; write formats its numbers.
function reading(row, i, write) {
  var b = row.band, unit = row.unit ? " " + row.unit : "", most = b[b.length - 1][i];
  if (most === null || most === undefined) return row.label + ": not measured";
  if (b.length === 1) return row.label + ": " + write(most) + unit;
  if (row.spread) return row.label + ": " + write(b[0][i]) + " to " + write(most) + unit;
  return row.label + ": mean " + write(b[1][i]) + unit + ", " + write(b[0][i]) + " to " + write(most) + unit;
}
function readings(rows, i) {
  return rows.map(function (r) { return r.lane ? laneReading(r, i) : { text: reading(r, i, brief), exact: reading(r, i, number) }; });
}
function tellBucket(k, i, x, y) {
  var n = node(shown);
  if (!n.t.length) return;
  k.at = i;
  tell([{ text: span(n, i) }].concat(readings(k.rows, i)), x, y);
}
// under returns the bucket under the mouse or, if several are drawn as one, the highest within two pixels on either side:
// people look for peaks, and a mouse has only whole pixels.
function under(k, left) {
  var t = node(shown).t, g = k.group, at = function (x) { return bucketAt(t, k.u.posToVal(x, "x")); };
  if (g === 1) return at(left);
  var best = at(left), top = -Infinity, end = Math.min((Math.floor(at(left + 2) / g) + 1) * g, t.length);
  for (var j = Math.floor(at(left - 2) / g) * g; j < end; j++) {
    k.rows.forEach(function (r) {
      var v = r.aside || r.derived || r.lane ? null : r.band[r.band.length - 1][j];
      if (v !== null && v > top) { top = v; best = j; }
    });
  }
  return best;
}

function each(f) { charts.forEach(f); }
// zoom shows the same time range in all charts.
function zoom(from, to) {
  var end = last(node(shown));
  from = Math.max(0, from); to = Math.min(end, to);
  if (!(to > from)) return;
  zoomed = from > 0 || to < end;
  byID("all").hidden = !zoomed;
  each(function (k) {
    k.u.setData(visible(k, from, to), false);
    k.u.setScale("x", { min: from, max: to });
  });
}
function last(n) { return n.t.length && n.t[n.t.length - 1] > 0 ? n.t[n.t.length - 1] : 1; }
function reset() { zoom(0, last(node(shown))); }

function options(k, made, width) {
  var soft = function () { return css("--rule"); }, dim = function () { return css("--dim"); };
  var font = "11px system-ui,sans-serif";
  return {
    width: width, height: k.height, legend: { show: false }, padding: [k.quiet || k.lanes ? 6 : peakRoom, 26, 0, 0],
    cursor: { points: { show: false }, drag: { x: true, y: false, setScale: false }, sync: { key: "perfagent" }, y: false, bind: { dblclick: function () { return null; } } },
    scales: { x: { time: false, range: function (u, min, max) { return max > min ? [min, max] : [0, last(node(shown))]; } }, y: { range: function () { return [k.axis.min, k.axis.max]; } } },
    axes: [
      { stroke: dim, font: font, size: 26, gap: 4, grid: { show: false }, ticks: { stroke: soft, size: 4 },
        splits: function (u, i, min, max) { return timeTicks(min, max, u.width / 80).ticks; },
        values: function (u, ticks) {
          var s = u.scales.x, decimals = timeTicks(s.min, s.max, u.width / 80).decimals;
          return ticks.map(function (v) { return clock(v, decimals); });
        } },
      { stroke: dim, font: font, size: 46, gap: 4, grid: { show: !k.lanes, stroke: soft, width: 1 }, ticks: { show: false },
        splits: function () { return k.quiet ? [0, k.axis.max] : k.axis.ticks; }, values: function (u, ticks) { return ticks.map(k.lanes ? laneLabel(k) : function (v) { return short(v / k.axis.scale); }); } }],
    series: made.series, bands: made.bands,
    hooks: {
      draw: [story, function (u) {
        if (k.lanes) { drawLanes(k, u); return; }
        var peak = node(shown).o && node(shown).o[k.plan.id];
        if (k.bound) level(k, u, k.bound[0], [4, 3]);
        if (peak) level(k, u, peak[0], [1.5, 2.5], peak[1]);
        else if (!k.quiet) drawPeak(k, u);
      }],
      setScale: [function (u, key) {
        var s = u.scales.x;
        if (key !== "x" || s.min === null) return;
        k.box.dataset.from = s.min;
        k.box.dataset.to = s.max;
      }],
      setSelect: [function (u) {
        var left = u.select.left, width = u.select.width;
        if (width < 3) return;
        each(function (c) { c.u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false); });
        zoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
      }],
      setCursor: [function (u) {
        if (k.hover && u.cursor.left >= 0) tellBucket(k, under(k, u.cursor.left), k.x, k.y);
      }]
    }
  };
}

var peakRoom = 18; // above a chart, in pixels
// level draws a line at a value, with words above it.
function level(k, u, v, dash, words) {
  if (!(v > 0) || v > k.axis.max) return;
  var g = u.ctx, y = Math.round(u.valToPos(v, "y", true)), ratio = devicePixelRatio || 1;
  g.save();
  g.strokeStyle = css("--ink"); g.globalAlpha = .6; g.lineWidth = ratio; g.setLineDash(dash.map(function (d) { return d * ratio; }));
  g.beginPath(); g.moveTo(u.bbox.left, y); g.lineTo(u.bbox.left + u.bbox.width, y); g.stroke();
  g.globalAlpha = 1;
  if (words) label(u, words, u.bbox.left + u.bbox.width - 4 * ratio, y - 4 * ratio, "right");
  g.restore();
}
// label writes words on a chart, in device pixels, with a rim that makes them readable on any background.
function label(u, words, x, y, align) {
  var g = u.ctx, ratio = devicePixelRatio || 1;
  g.save();
  g.setLineDash([]);
  g.font = 11 * ratio + "px system-ui,sans-serif";
  g.textAlign = align; g.textBaseline = "alphabetic";
  g.strokeStyle = css("--paper"); g.lineWidth = 3 * ratio; g.lineJoin = "round"; g.globalAlpha = .8; g.strokeText(words, x, y);
  g.globalAlpha = 1; g.fillStyle = css("--ink"); g.fillText(words, x, y);
  g.restore();
}
// drawPeak marks the highest visible point, in a stack the job's, with its value, above the chart to hide nothing.
function drawPeak(k, u) {
  var t = node(shown).t, s = u.scales.x, from = bucketAt(t, s.min), to = bucketAt(t, s.max), at = -1, top = 0, ratio = devicePixelRatio || 1;
  k.rows.forEach(function (r) {
    if (r.aside || k.plan.stack && !(r.layer && !r.derived && !r.flat)) return;
    var most = r.band[r.band.length - 1];
    for (var i = from; i <= to; i++) if (most[i] > top && most[i] >= 1e-100) { top = most[i]; at = i; }
  });
  if (at < 0 || !t.length) return;
  var x = u.valToPos(Math.min(s.max, Math.max(s.min, ((at ? t[at - 1] : 0) + t[at]) / 2)), "x", true), y = u.bbox.top;
  var right = x > u.bbox.left + u.bbox.width - 110 * ratio, g = u.ctx;
  g.save();
  g.fillStyle = css("--ink");
  g.beginPath(); g.moveTo(x - 4 * ratio, y - 7 * ratio); g.lineTo(x + 4 * ratio, y - 7 * ratio); g.lineTo(x, y - ratio); g.fill();
  g.restore();
  var little = k.axis.scale > 1 && top < k.axis.scale / 10, unit = little ? k.plan.unit : k.axis.unit;
  label(u, "peak " + brief(little ? top : top / k.axis.scale) + (unit ? " " + unit : ""), x + (right ? -8 : 8) * ratio, y - 2 * ratio, right ? "right" : "left");
}

// The lanes of many GPUs: the busy time of each as colours, and below that its memory and its power.
var laneHeight = 32, laneHeat = 12, heatStops = [[242, 240, 230], [158, 207, 214], [58, 143, 183], [39, 79, 143], [42, 26, 82]];
function heatColor(v) {
  var at = Math.min(100, Math.max(0, v)) / 100 * (heatStops.length - 1), k = Math.min(Math.floor(at), heatStops.length - 2);
  return "rgb(" + heatStops[k].map(function (c, i) { return Math.round(c + (at - k) * (heatStops[k + 1][i] - c)); }).join(",") + ")";
}
function lanesOf(i) {
  var n = node(shown), scales = n.l || [], parts = [n.c[i], n.c[i + 1], n.c[i + 2]], out = [], most = [0, 0, 0];
  parts.forEach(function (bands, p) {
    bands.forEach(function (b) { (b ? b[b.length - 1] : []).forEach(function (v) { if (v > most[p]) most[p] = v; }); });
  });
  plan.charts[i].series.forEach(function (s, g) {
    if (!parts.some(function (bands) { return bands[g]; })) return;
    var scale = scales[g] || [0, 0];
    out.push({ lane: true, label: s.label, busy: parts[0][g], memory: parts[1][g], power: parts[2][g], heat: n.a[i + 2] && n.a[i + 2][g], full: [scale[0] || most[1], scale[1] || most[2]] });
  });
  return out;
}
function laneReading(r, i) {
  var one = function (write) {
    var parts = [[r.busy, " %"], [r.memory, " MiB"], [r.power, " W"], [r.heat, " °C"]].filter(function (p) { return p[0]; }).map(function (p) {
      var v = p[0][p[0].length === 1 ? 0 : 1][i];
      return v === null || v === undefined ? "–" : write(v) + p[1];
    });
    return r.label + ": " + parts.join(", ");
  };
  return { text: one(brief), exact: one(number) };
}
function laneLabel(k) { return function (v) { return k.lanes[Math.round(k.lanes.length - v - 0.5)].label; }; }
function drawLanes(k, u) {
  var g = u.ctx, t = node(shown).t, s = u.scales.x, ratio = devicePixelRatio || 1, box = u.bbox, each = box.height / k.lanes.length, step = k.group;
  if (!t.length) return;
  var first = Math.floor(bucketAt(t, s.min) / step) * step, end = Math.min(t.length, bucketAt(t, s.max) + 1), x = function (v) { return u.valToPos(Math.min(s.max, Math.max(s.min, v)), "x", true); };
  var buckets = function (list, of, draw) {
    for (var i = first; i < end; i += step) draw(fold(list, of, t, i, Math.min(i + step, t.length)), x(i ? t[i - 1] : 0), x(t[Math.min(i + step, t.length) - 1]));
  };
  g.save();
  k.lanes.forEach(function (lane, row) {
    var top = box.top + row * each, heat = laneHeat * ratio, floor = top + each - 3 * ratio, room = floor - top - heat - 2 * ratio;
    if (lane.busy) buckets(lane.busy[lane.busy.length === 1 ? 0 : 1], null, function (v, from, to) {
      if (v === null) return;
      g.fillStyle = heatColor(v);
      g.fillRect(from, top, Math.max(ratio, to - from), heat);
    });
    [[lane.memory, lane.full[0], "--s2"], [lane.power, lane.full[1], "--s1"]].forEach(function (p) {
      if (!p[0] || !(p[1] > 0)) return;
      var drawing = false;
      g.strokeStyle = css(p[2]); g.lineWidth = 1.5 * ratio; g.beginPath();
      buckets(p[0][p[0].length - 1], Math.max, function (v, from, to) { // the greatest: a peak is not lost
        if (v === null) { drawing = false; return; }
        var y = floor - room * Math.min(1, v / p[1]);
        if (drawing) g.lineTo(from, y); else g.moveTo(from, y);
        g.lineTo(to, y);
        drawing = true;
      });
      g.stroke();
    });
    g.fillStyle = css("--rule");
    g.fillRect(box.left, floor + ratio, box.width, ratio);
  });
  g.restore();
}

// story draws the job's annotations: bands for its phases, lines for its marks, with their names.
function story(u) {
  var n = node(shown), box = u.over.querySelector(".said"), min = u.scales.x.min, max = u.scales.x.max, width = u.over.clientWidth, drawn = -Infinity, labelled = -Infinity;
  if (!n.e && !n.h || !(max > min)) return;
  if (!box) u.over.prepend(box = element("div", undefined, "said"));
  var x = function (t) { return (t - min) / (max - min) * width; }, parts = [];
  var part = function (kind, left, name) {
    var e = element("span", undefined, kind);
    e.style.left = left + "px";
    e.title = name;
    parts.push(e);
    return e;
  };
  (n.h || []).forEach(function (p) {
    var from = Math.max(0, x(p[0])), to = Math.min(width, x(p[1]));
    if (p[1] < min || p[0] > max || to - drawn < 0.5) return; // out of sight, or too narrow
    drawn = to;
    var e = part("in", from, p[2]);
    e.style.width = Math.max(1, to - from) + "px";
    e.style.color = "var(--s" + p[3] + ")";
    e.dataset.phase = p[2];
    e.append(element("i"));
    if (to - from > 32) e.append(element("b", p[2]));
  });
  drawn = -Infinity;
  (n.e || []).forEach(function (m) {
    var at = x(m[0]), words = m[1].slice(0, 24);
    if (m[0] < min || m[0] > max || at - drawn < 2) return;
    drawn = at;
    var e = part("at", at, m[1]);
    e.dataset.mark = m[1];
    if (at < labelled || at + 6.5 * words.length > width) return;
    labelled = at + 6.5 * words.length + 6;
    e.append(element("b", words));
  });
  box.replaceChildren.apply(box, parts);
}

// legend returns the legend above a chart.
function legend(k) {
  var bar = element("div", undefined, "bar"), n = node(shown), whole = k.plan.stack && n.w && n.w[k.plan.id], of = k.bound ? k.bound[1] : "";
  if (whole) of = (of + " of " + size(k.plan.unit, whole)).trim();
  var unit = k.axis.unit && !k.lanes ? ", " + k.axis.unit : "", chip = function (name, kind, words) {
    var e = element("span"), mark = element("i", undefined, kind);
    if (name) mark.style.color = "var(" + name + ")";
    e.append(mark, words);
    bar.appendChild(e);
    return e;
  };
  bar.appendChild(element("b", (k.lanes ? "GPUs" : k.plan.title) + unit + (of ? " (" + of + ")" : "")));
  if (k.quiet) {
    bar.appendChild(element("span", k.rows.length ? "nothing to speak of" : "not measured"));
    return bar;
  }
  if (k.lanes) {
    chip("", "heat", "busy, 0 to 100 %");
    [["--s2", "memory", 0, "MiB"], ["--s1", "power", 1, "W"]].forEach(function (p) {
      var full = k.lanes[0].full[p[2]], same = k.lanes.every(function (l) { return l.full[p[2]] === full; });
      if (full > 0) chip(p[0], "", p[1] + (same ? " of " + size(p[3], full) : ""));
    });
    return bar;
  }
  k.rows.forEach(function (r) {
    if (r.aside) return;
    var e = chip(r.spread ? "" : r.name, r.spread ? "spread" : r.layer ? "layer" : dashes[r.dash][0], r.label);
    if (r.name === "--rest" && k.plan.unit === "MiB") e.title = "available to new programs; caches of others count as free";
    if (r.name === "--cache") e.title = "page cache of the job, which the kernel takes back when memory is short";
  });
  if (k.made.fit) {
    var button = element("button", wholes[k.plan.id] ? "fit the job" : "show the whole node", "noprint");
    button.type = "button";
    button.addEventListener("click", function () { wholes[k.plan.id] = !wholes[k.plan.id]; redraw(); });
    bar.appendChild(button);
  }
  return bar;
}
// size formats an amount in a suitable unit.
function size(unit, v) {
  if (unit !== "MiB") return brief(v) + (unit === "CPUs" ? "" : " " + unit);
  return v >= 1048576 ? (v / 1048576).toFixed(1) + " TiB" : v >= 1024 ? (v / 1024).toFixed(1) + " GiB" : brief(v) + " MiB";
}

function draw(box, c, i) {
  var n = node(shown), bound = n.b && n.b[c.id], lanes = c.lanes ? lanesOf(i) : null, made;
  if (lanes) made = { lists: [{ list: [], of: null }], series: [{}, { show: false }], bands: [], rows: lanes, axis: { min: 0, max: lanes.length, ticks: lanes.map(function (l, i) { return i + 0.5; }), scale: 1, unit: "" } };
  else made = lists(c, i, bound);
  box.hidden = !!c.maybe && !made.rows.length;
  if (box.hidden) return null;
  var quiet = (n.q || []).indexOf(c.id) >= 0, height = box.clientWidth < 500 ? 156 : 196;
  var k = { box: box, plan: c, bound: bound, made: made, lanes: lanes, quiet: quiet, axis: made.axis, rows: made.rows, at: 0, group: 1, room: box.clientWidth - 72 }; // less axis and margin
  var bar = legend(k);
  k.height = lanes ? lanes.length * laneHeight + 32 : quiet ? Math.max(50, Math.round((height + 20) / 3) - 20) : height;
  box.classList.toggle("quiet", quiet);
  box.querySelectorAll(".bar,.uplot").forEach(function (e) { e.remove(); });
  box.appendChild(bar);
  k.u = new uPlot(options(k, made, box.clientWidth), visible(k, 0, last(n)), box);
  k.u.over.addEventListener("mousemove", function (e) { k.hover = true; k.x = e.clientX; k.y = e.clientY; }, true); // before uPlot sees it
  k.u.over.addEventListener("mouseleave", function () { k.hover = false; hush(); });
  k.u.over.addEventListener("dblclick", reset);
  touch(k.u.over);
  return k;
}

// touch turns sideways moves of a finger into drags of a mouse; up and down it scrolls.
function touch(over) {
  var as = { touchstart: "mousedown", touchmove: "mousemove", touchend: "mouseup" }, from = null;
  Object.keys(as).forEach(function (type) {
    over.addEventListener(type, function (e) {
      var f = e.changedTouches[0];
      if (e.touches.length > 1) return;
      if (type === "touchstart") { from = f.clientX; return; }
      if (from === null || type === "touchmove" && Math.abs(f.clientX - from) < 8 && !over.dragged) return;
      if (type === "touchmove" && !over.dragged) { over.dragged = true; mouse("mousemove", from, f.clientY); mouse("mousedown", from, f.clientY); }
      if (over.dragged) { mouse(as[type], f.clientX, f.clientY); e.preventDefault(); }
      if (type === "touchend") { from = null; over.dragged = false; }
    }, { passive: false });
  });
  function mouse(type, x, y) {
    (type === "mouseup" ? document : over).dispatchEvent(new MouseEvent(type, { clientX: x, clientY: y, button: 0, buttons: 1, bubbles: true }));
  }
}

function drawAll() {
  var boxes = document.querySelectorAll("[data-chart]");
  boxes.forEach(function (b) { b.style.minHeight = b.offsetHeight + "px"; }); // so that the content below does not jump
  each(function (k) { k.u.destroy(); });
  charts = [];
  plan.charts.forEach(function (c, i) {
    var k = c.within ? null : draw(document.querySelector('[data-chart="' + c.id + '"]'), c, i);
    if (k) charts.push(k);
  });
  boxes.forEach(function (b) { b.style.minHeight = ""; });
}

// read shows the tooltip of a bucket, as if the mouse were there.
function read(k, i) {
  var r = k.u.over.getBoundingClientRect(), left = k.u.valToPos(node(shown).t[i], "x");
  k.u.setCursor({ left: left, top: r.height / 2 });
  tellBucket(k, i, r.left + left, r.top + r.height / 3);
}

// keys handles a key for the focused chart: it moves the tooltip or zooms.
function keys(e) {
  var k = charts.find(function (k) { return k.box === e.currentTarget; }), n = node(shown), jump = e.shiftKey ? 10 : 1;
  if (!k || !n.t.length || e.ctrlKey || e.metaKey || e.altKey) return;
  var s = k.u.scales.x, from = s.min, to = s.max, mid = k.at ? n.t[k.at] : (from + to) / 2, width = to - from, i = k.at;
  switch (e.key) {
  case "ArrowLeft": i -= jump; break;
  case "ArrowRight": i += jump; break;
  case "Home": i = 0; break;
  case "End": i = n.t.length - 1; break;
  case "+": case "=": from = mid - width / 4; to = mid + width / 4; break;
  case "-": from = mid - width; to = mid + width; break;
  case "Escape": case "0": reset(); hush(); return;
  default: return;
  }
  e.preventDefault();
  each(function (c) { c.hover = false; }); // a resting mouse is ignored
  i = Math.min(n.t.length - 1, Math.max(0, i));
  var reads = e.key !== "+" && e.key !== "=" && e.key !== "-";
  if (reads && (n.t[i] < from || n.t[i] > to)) { from = n.t[i] - width / 2; to = n.t[i] + width / 2; }
  if (from !== s.min || to !== s.max) {
    zoom(from, to);
    setTimeout(function () { if (!tip.hidden && charts.indexOf(k) >= 0) read(k, k.at); }, 0); // once it is drawn
  }
  if (reads || !tip.hidden) read(k, i);
}

// fill writes the texts and numbers of a node.
function fill(n) {
  document.querySelector(".cards").replaceChildren.apply(document.querySelector(".cards"), n.k.map(function (c) {
    var card = element("div", undefined, "card");
    card.append(element("p", c[0], "label"), element("p", c[1], "value"), element("p", c[2], "hint"));
    return card;
  }));
  var said = n.v.map(function (v) { return element("p", v[0], "verdict" + (v[1] ? " bad" : "")); });
  byID("nodeadvice").replaceChildren.apply(byID("nodeadvice"), said.concat(n.g.map(function (a) {
    var card = element("div", undefined, "advice" + (a[1] ? " bad" : ""));
    card.append(element("p", a[0]));
    return card;
  })));
  var facts = byID("nodefacts");
  if (facts) facts.replaceChildren.apply(facts, n.f.map(function (f) {
    var row = element("div");
    row.append(element("dt", f[0]), element("dd", f[1]));
    return row;
  }));
  var rows = element("tbody"), table = element("table"), head = element("tr"), thead = element("thead"), wide = element("div", undefined, "wide");
  (n.p || []).forEach(function (cells) {
    var tr = element("tr");
    cells.forEach(function (c) { tr.append(element("td", c)); });
    rows.append(tr);
  });
  ["phase", "began", "lasted", "CPU", "memory", "GPU"].forEach(function (c) { head.append(element("th", c)); });
  table.dataset.phases = "";
  thead.append(head);
  table.append(thead, rows);
  wide.append(table);
  byID("phases").replaceChildren.apply(byID("phases"), n.p ? [element("h2", "Phases"), wide] : []);
  var box = byID("missing"), list = element("ul"), why = Object.create(null);
  n.x.forEach(function (m, i) {
    why[m[0]] = m[1];
    if (i >= (n.y || 0)) return; // normal
    var li = element("li"), what = element("b", m[0]);
    li.append(what, ": " + m[1]);
    list.appendChild(li);
  });
  box.replaceChildren.apply(box, n.y ? [element("h3", "Not measured, or noted"), list] : []);
  document.querySelectorAll("#metrics tr[data-metric]").forEach(function (tr) {
    var name = tr.getAttribute("data-metric"), v = Object.prototype.hasOwnProperty.call(n.m, name) ? n.m[name] : null, cells = tr.cells;
    cells[1].textContent = brief(v);
    if (v === null) cells[1].removeAttribute("title"); else cells[1].title = number(v);
    var note = cells[3].querySelector("i");
    if (note) note.remove();
    if (v === null) {
      tr.removeAttribute("data-value"); tr.removeAttribute("data-unit");
      if (why[name]) cells[3].append(element("i", " (" + why[name] + ")"));
    } else {
      tr.setAttribute("data-value", number(v)); tr.setAttribute("data-unit", cells[2].textContent);
    }
  });
}

function show(name, jump) {
  if (!byID("node-" + name)) return false;
  if (shown === name) return true;
  var first = shown === null;
  shown = name;
  zoomed = false;
  hush();
  if (!first || name !== plan.first) fill(node(name));
  document.querySelectorAll(".chart").forEach(function (c) { c.classList.toggle("shown", name !== plan.first); });
  byID("node").setAttribute("data-node", name);
  if (byID("choose")) byID("choose").value = name;
  drawAll();
  byID("all").hidden = true;
  if (jump) byID("node").scrollIntoView();
  return true;
}
function fromAddress() {
  var m = /^#node=(\d+)$/.exec(location.hash);
  return m ? m[1] : null;
}
function go(name) {
  if (fromAddress() === name) show(name, true);
  else location.hash = "node=" + name;
}

// heat makes a map respond to mouse and keys.
function heat(fig) {
  var map = fig.querySelector(".map"), cross = fig.querySelector(".cross"), chart = plan.charts.findIndex(function (c) { return c.id === fig.dataset.of; });
  var row = 0, column = 0, columns = plan.columns;
  function point(x, y) {
    var name = plan.nodes[row], n = node(name), from = plan.start - n.s + plan.length * column / columns, to = from + plan.length / columns;
    cross.style.display = "block";
    cross.style.top = (row + 0.5) / plan.nodes.length * map.clientHeight + "px";
    var host = plan.hosts[row], lines = [{ text: "node " + name + (host ? " (" + host + ")" : "") }];
    if (!n.t.length || to <= 0 || from >= last(n)) lines.push({ text: "not sampled then" });
    else {
      // The bucket with the greatest value of those that overlap the column.
      var c = plan.charts[chart], band = null, i = bucketAt(n.t, from + (to - from) / 100);
      (fig.dataset.heatmap === "job_cpu" ? [jobPart] : [allPart, sharePart]).forEach(function (p) {
        band = band || n.c[chart][c.series.findIndex(function (s) { return s.part === p; })];
      });
      var most = band && band[band.length - 1];
      for (var k = i + 1; most && k < n.t.length && n.t[k - 1] < to; k++) if (most[k] > most[i] || most[i] === null) i = k;
      lines = lines.concat([{ text: span(n, i) }], readings(rowsOf(n, chart), i));
    }
    tell(lines, x, y);
  }
  map.addEventListener("mousemove", function (e) {
    var r = map.getBoundingClientRect();
    row = Math.min(plan.nodes.length - 1, Math.max(0, Math.floor((e.clientY + 0.5 - r.top) / r.height * plan.nodes.length)));
    column = Math.min(columns - 1, Math.max(0, Math.floor((e.clientX + 0.5 - r.left) / r.width * columns)));
    point(e.clientX, e.clientY);
  });
  map.addEventListener("mouseleave", function () { cross.style.display = "none"; hush(); });
  map.addEventListener("click", function () { go(plan.nodes[row]); });
  fig.addEventListener("keydown", function (e) {
    var jump = e.shiftKey ? 10 : 1, step = { ArrowUp: [-jump, 0], ArrowDown: [jump, 0], ArrowLeft: [0, -jump], ArrowRight: [0, jump] }[e.key];
    if (e.target !== fig) return;
    if (cross.style.display !== "block") row = Math.max(0, plan.nodes.indexOf(shown));
    if (e.key === "Enter") { go(plan.nodes[row]); return; }
    if (e.key === "Escape") { cross.style.display = "none"; hush(); return; }
    if (!step) return;
    e.preventDefault();
    row = Math.min(plan.nodes.length - 1, Math.max(0, row + step[0]));
    column = Math.min(columns - 1, Math.max(0, column + step[1]));
    var r = map.getBoundingClientRect();
    point(r.left + (column + 0.5) / columns * r.width, r.top + (row + 0.5) / plan.nodes.length * r.height);
  });
}

// refresh fetches the page again during the run, and keeps the zoom. While requests fail it retries less often, and then
// stops: most likely the run has ended.
var failures = 0, mostFailures = 8;
function refresh() {
  if (document.hidden) { setTimeout(refresh, plan.live); return; }
  var patience = new AbortController(), timer = setTimeout(function () { patience.abort(); }, Math.max(10000, 2 * plan.live));
  // Without the origin, the address would have the password with which the page was opened; fetch refuses that.
  fetch(location.origin + location.pathname, { cache: "no-store", signal: patience.signal }).then(function (r) {
    if (!r.ok) throw new Error(r.status);
    return r.text();
  }).then(function (text) {
    take(new DOMParser().parseFromString(text, "text/html"));
    failures = 0;
    byID("stale").hidden = true;
  }).catch(function () {
    if (++failures > 1) outdate();
  }).finally(function () {
    clearTimeout(timer);
    if (failures < mostFailures) setTimeout(refresh, Math.min(60000, plan.live * Math.pow(2, failures)));
  });
}
// take copies the content of a later page of the same run into this one. Selected text stays.
function take(fresh) {
  var element = fresh.getElementById("plan"), later = element && JSON.parse(element.textContent);
  if (!later || later.run !== plan.run || later.first !== plan.first) {
    failures = mostFailures;
    throw new Error("the page of another run");
  }
  var parts = ["#plan", "#node-" + shown];
  var open = document.querySelector("[data-details]").open;
  if (getSelection().isCollapsed) parts.push("#about", ".cards", "#missing", "#phases", "#metrics");
  parts.forEach(function (s) {
    var from = fresh.querySelector(s), to = document.querySelector(s);
    if (from && to) to.replaceWith(document.importNode(from, true));
  });
  document.querySelector("[data-details]").open = open;
  localTime();
  var before = document.querySelector("[data-chart]"), first = true;
  fresh.querySelectorAll("[data-chart]").forEach(function (from) {
    var box = document.querySelector('[data-chart="' + from.dataset.chart + '"]');
    if (box) {
      box.setAttribute("aria-label", from.getAttribute("aria-label"));
      box.querySelector(".static").replaceWith(document.importNode(from.querySelector(".static"), true));
    } else { // measured for the first time
      box = document.importNode(from, true);
      if (first) before.before(box); else before.after(box);
      listen(box);
    }
    before = box;
    first = false;
  });
  document.querySelectorAll("[data-processes]").forEach(sortable);
  plan = later;
  parsed = {};
  if (charts.some(function (k) { return k.hover; })) hush(); // another bucket is under the mouse now
  redraw();
}
// outdate marks the page as no longer updated.
function outdate() {
  var state = document.querySelector(".state"), words = state.querySelector(".headline").firstChild;
  byID("stale").hidden = false;
  if (state.classList.contains("failed")) return;
  words.data = "last seen " + words.data;
  state.classList.add("failed");
}
// localTime shows the update time of a live page in the reader's time zone.
function localTime() {
  var e = byID("updated"), when = e && new Date(e.dataset.at * 1000);
  if (e && !isNaN(when)) e.textContent = when.toTimeString().slice(0, 8);
}
// copy copies an advice to the clipboard. A page from a file may not use the clipboard: then copy selects the text.
function copy(button) {
  var line = button.parentNode.querySelector("code"), done = function () { button.textContent = "copied"; };
  var select = function () {
    getSelection().selectAllChildren(line);
    if (!document.execCommand("copy")) return;
    getSelection().removeAllRanges(); // a live page keeps selected text
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(line.textContent).then(done, select); else select();
}
// redraw draws the charts again and keeps their time range and the bucket of the tooltip.
function redraw() {
  var s = charts.length && zoomed ? charts[0].u.scales.x : null, from = s && s.min, to = s && s.max;
  var at = {};
  each(function (k) { at[k.plan.id] = k.at; });
  zoomed = false;
  drawAll();
  each(function (k) { k.at = at[k.plan.id] || 0; });
  if (s) zoom(from, to);
}

// listen makes a chart respond to keys.
function listen(box) {
  box.addEventListener("keydown", keys);
  box.addEventListener("blur", hush);
}

// sortable makes a click on a column's head sort a table, and another click reverse the order. A table that replaces
// another one is sorted like it.
var sorted = null;
function sortable(table) {
  var heads = Array.from(table.querySelectorAll("th")), body = table.tBodies[0];
  function value(tr, i) {
    var td = tr.cells[i], v = td.dataset.value;
    return v === undefined ? td.classList.contains("number") ? -1 : td.textContent : Number(v);
  }
  function sort(i, down) {
    var rows = Array.from(body.rows);
    rows.sort(function (a, b) { var x = value(a, i), y = value(b, i); return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
    rows.forEach(function (tr) { body.appendChild(tr); });
    heads.forEach(function (th, k) { if (k === i) th.setAttribute("aria-sort", down ? "descending" : "ascending"); else th.removeAttribute("aria-sort"); });
    sorted = [i, down];
  }
  heads.forEach(function (th, i) {
    function click() { sort(i, th.hasAttribute("aria-sort") ? th.getAttribute("aria-sort") !== "descending" : table.rows[1].cells[i].dataset.value !== undefined); }
    th.tabIndex = 0;
    th.addEventListener("click", click);
    th.addEventListener("keydown", function (e) { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); click(); } });
  });
  if (sorted) sort(sorted[0], sorted[1]);
}

function start() {
  root.classList.add("js");
  var choose = byID("choose");
  if (choose) {
    plan.nodes.forEach(function (n, i) {
      var o = element("option", n + (plan.hosts[i] ? " (" + plan.hosts[i] + ")" : ""));
      o.value = n;
      choose.appendChild(o);
    });
    choose.addEventListener("change", function () { go(choose.value); });
  }
  byID("all").addEventListener("click", reset);
  document.addEventListener("click", function (e) { if (e.target.matches(".copy")) copy(e.target); });
  localTime();
  document.querySelectorAll("[data-heatmap]").forEach(heat);
  document.querySelectorAll("[data-chart]").forEach(listen);
  document.querySelectorAll("[data-processes]").forEach(sortable);
  var wanted = fromAddress();
  if (!wanted || !show(wanted, true)) show(plan.first, false);
  addEventListener("hashchange", function () { var n = fromAddress(); show(n || plan.first, !!n); });
  var width = innerWidth;
  addEventListener("resize", function () { if (innerWidth !== width) { width = innerWidth; redraw(); } });
  addEventListener("scroll", hush, { passive: true });
  ["(prefers-color-scheme: dark)", "print"].forEach(function (media) { // other colours
    matchMedia(media).addEventListener("change", function () { each(function (k) { k.u.redraw(false); }); });
  });
  if (plan.live) {
    var stale = element("p", "No answer: the run has ended, or perfagent is gone. This is what was last seen; reload to look again.", "stale");
    stale.id = "stale";
    stale.hidden = true;
    document.body.prepend(stale);
    setTimeout(refresh, plan.live);
  }
}
try { start(); } catch (e) { root.classList.remove("js"); throw e; }
})();
