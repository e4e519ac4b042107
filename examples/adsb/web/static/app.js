// The live page: a table and a map of the aircraft that the program hears.
// Everything that came over the radio enters the page as text, never as markup.
'use strict';

const svgNS = 'http://www.w3.org/2000/svg';
const el = id => document.getElementById(id);
const map = el('map');
const trailSeconds = 600, trailPoints = 400, staleSeconds = 30;

const state = {
  aircraft: new Map(),   // hex -> latest object
  trails: new Map(),     // hex -> [{lat, lon, color, at}]
  home: null,            // {lat, lon} of the receiver
  chosen: null,
  sort: { key: 'hex', up: true },
  view: { lat: 50, lon: 5, scale: 60 }, // scale: pixels a degree of longitude
  fitted: true,          // the view follows the aircraft until the user moves it
  rows: new Map(), marks: new Map(), lines: new Map(),
};

// ---- projection: Mercator, degrees to pixels

const rad = Math.PI / 180;
const limit = v => Math.max(-84, Math.min(84, v));
const north = lat => Math.log(Math.tan(Math.PI / 4 + limit(lat) * rad / 2)) / rad;
const south = y => (2 * Math.atan(Math.exp(y * rad)) - Math.PI / 2) / rad;
const turn = d => ((d + 540) % 360 + 360) % 360 - 180;

function size() {
  const r = map.getBoundingClientRect();
  return { w: Math.max(r.width, 50), h: Math.max(r.height, 50) };
}

function place(lat, lon) {
  const { w, h } = size(), v = state.view;
  return { x: w / 2 + turn(lon - v.lon) * v.scale, y: h / 2 - (north(lat) - north(v.lat)) * v.scale };
}

function unplace(x, y) {
  const { w, h } = size(), v = state.view;
  return { lon: turn(v.lon + (x - w / 2) / v.scale), lat: south(north(v.lat) - (y - h / 2) / v.scale) };
}

function zoom(factor, x, y) {
  const { w, h } = size();
  if (x === undefined) { x = w / 2; y = h / 2; }
  const before = unplace(x, y);
  state.view.scale = Math.max(2, Math.min(60000, state.view.scale * factor));
  const after = unplace(x, y);
  state.view.lon = turn(state.view.lon + before.lon - after.lon);
  state.view.lat = limit(south(north(state.view.lat) + north(before.lat) - north(after.lat)));
  state.fitted = false;
  drawMap();
}

function pan(dx, dy) {
  const { w, h } = size(), p = unplace(w / 2 + dx, h / 2 + dy);
  state.view.lat = limit(p.lat);
  state.view.lon = p.lon;
  state.fitted = false;
  drawMap();
}

function fit() {
  const points = [...state.aircraft.values()].filter(hasPosition);
  if (state.home) points.push(state.home);
  if (!points.length) return;
  const base = points[0].lon;
  const lons = points.map(p => turn(p.lon - base)), ys = points.map(p => north(p.lat));
  const x0 = Math.min(...lons), x1 = Math.max(...lons), y0 = Math.min(...ys), y1 = Math.max(...ys);
  const { w, h } = size();
  state.view.lon = turn(base + (x0 + x1) / 2);
  state.view.lat = south((y0 + y1) / 2);
  state.view.scale = Math.max(2, Math.min(1500, 0.75 * Math.min(w / Math.max(x1 - x0, 1e-3), h / Math.max(y1 - y0, 1e-3))));
}

// ---- small helpers

const hasPosition = a => Number.isFinite(a.lat) && Number.isFinite(a.lon);
const altitude = a => a.alt_baro === 'ground' ? 0 : Number.isFinite(a.alt_baro) ? a.alt_baro : Number.isFinite(a.alt_geom) ? a.alt_geom : null;
const fixed = (v, n) => Number.isFinite(v) ? v.toFixed(n) : '';
const flight = a => typeof a.flight === 'string' ? a.flight.trim() : '';

const bands = [[0, '#8a5a2b', 'ground'], [2000, '#d9541e', '2,000'], [10000, '#c99700', '10,000'], [20000, '#2f9e44', '20,000'], [30000, '#1c7ed6', '30,000'], [40000, '#9c36b5', '40,000 ft']];
function color(a) {
  const h = altitude(a);
  if (h === null) return '#868e96';
  if (a.alt_baro === 'ground') return bands[0][1];
  let c = bands[1][1];
  for (const [from, shade] of bands) if (h >= from && from > 0) c = shade;
  return c;
}

function make(name, attributes, parent) {
  const e = document.createElementNS(svgNS, name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (parent) parent.append(e);
  return e;
}

function distanceNM(a, b) {
  const s = Math.sin((a.lat - b.lat) * rad / 2) ** 2 + Math.cos(a.lat * rad) * Math.cos(b.lat * rad) * Math.sin((a.lon - b.lon) * rad / 2) ** 2;
  return 2 * 3440.065 * Math.asin(Math.min(1, Math.sqrt(s)));
}

// ---- the map

function step(scale) { // degrees between lines, so that they stand 70 pixels apart or more
  for (const d of [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30]) if (d * scale >= 70) return d;
  return 30;
}

function drawGrid() {
  const g = el('grid'), { w, h } = size(), d = step(state.view.scale);
  g.replaceChildren();
  const top = unplace(0, 0).lat, bottom = unplace(0, h).lat, half = w / 2 / state.view.scale;
  const digits = d < 0.1 ? 2 : d < 1 ? 1 : 0;
  for (let n = Math.ceil(bottom / d); n <= top / d && n - bottom / d < 200; n++) {
    const y = place(n * d, state.view.lon).y;
    make('path', { d: `M0 ${y}H${w}` }, g);
    make('text', { x: w - 4, y: y - 3, 'text-anchor': 'end' }, g).textContent = Math.abs(n * d).toFixed(digits) + '°' + (n < 0 ? 'S' : 'N');
  }
  const from = Math.ceil((state.view.lon - half) / d);
  for (let n = from; n <= (state.view.lon + half) / d && n - from < 200; n++) {
    const x = w / 2 + (n * d - state.view.lon) * state.view.scale, lon = turn(n * d);
    make('path', { d: `M${x} 0V${h}` }, g);
    make('text', { x: x + 3, y: 12 }, g).textContent = Math.abs(lon).toFixed(digits) + '°' + (lon < 0 ? 'W' : 'E');
  }
}

function drawRings() {
  const g = el('rings');
  g.replaceChildren();
  if (!state.home) return;
  const c = place(state.home.lat, state.home.lon);
  make('circle', { class: 'home', cx: c.x, cy: c.y, r: 4 }, g);
  for (const nm of [25, 50, 100, 150, 200]) {
    const edge = place(limit(state.home.lat + nm / 60), state.home.lon), r = c.y - edge.y;
    if (r < 30 || r > 4000) continue;
    make('circle', { cx: c.x, cy: c.y, r }, g);
    make('text', { x: c.x + 4, y: edge.y - 3 }, g).textContent = nm + ' nm';
  }
}

function drawPlanes() {
  const g = el('planes'), gone = new Set(state.marks.keys());
  for (const [hex, a] of state.aircraft) {
    if (!hasPosition(a)) continue;
    gone.delete(hex);
    let m = state.marks.get(hex);
    if (!m) {
      m = make('g', { class: 'plane', 'data-hex': hex }, g);
      make('path', { d: 'M0-11 2-4 11 3v2L2 2.5 1.2 7 4 9v1L0 9l-4 1V9l2.8-2L-2 2.5-11 5V3l9-7z' }, m);
      make('text', { x: 12, y: 4 }, m);
      m.addEventListener('click', () => choose(hex));
      state.marks.set(hex, m);
    }
    const p = place(a.lat, a.lon);
    m.setAttribute('transform', `translate(${p.x.toFixed(1)} ${p.y.toFixed(1)})`);
    const heading = [a.track, a.true_heading, a.mag_heading].find(Number.isFinite) || 0;
    m.firstChild.setAttribute('transform', `rotate(${heading})`);
    m.firstChild.setAttribute('fill', color(a));
    m.lastChild.textContent = flight(a) || hex;
    m.classList.toggle('chosen', hex === state.chosen);
    m.classList.toggle('stale', a.seen > staleSeconds);
  }
  for (const hex of gone) { state.marks.get(hex).remove(); state.marks.delete(hex); }
}

function drawTrails() {
  const g = el('trails'), gone = new Set(state.lines.keys());
  for (const [hex, trail] of state.trails) {
    if (trail.length < 2) continue;
    gone.delete(hex);
    let line = state.lines.get(hex);
    if (!line) { line = make('polyline', { 'data-hex': hex }, g); state.lines.set(hex, line); }
    line.setAttribute('stroke', trail[trail.length - 1].color);
    line.setAttribute('points', trail.map(p => { const q = place(p.lat, p.lon); return q.x.toFixed(1) + ',' + q.y.toFixed(1); }).join(' '));
  }
  for (const hex of gone) { state.lines.get(hex).remove(); state.lines.delete(hex); }
}

function drawMap() { drawGrid(); drawRings(); drawTrails(); drawPlanes(); }

function drawLegend() {
  for (const [, shade, text] of bands) {
    const li = document.createElement('li'), i = document.createElement('i');
    i.style.background = shade;
    li.append(i, text);
    el('legend').append(li);
  }
}

// ---- the table

const columns = [
  ['hex', a => a.hex, 'hex'], ['flight', flight, ''],
  ['altitude', a => a.alt_baro === 'ground' ? 'ground' : altitude(a) === null ? '' : String(altitude(a)), 'num'],
  ['gs', a => fixed(a.gs, 0), 'num'], ['lat', a => fixed(a.lat, 4), 'num wide'], ['lon', a => fixed(a.lon, 4), 'num wide'],
  ['track', a => fixed(a.track, 0), 'num'], ['messages', a => fixed(a.messages, 0), 'num wide'], ['seen', a => fixed(a.seen, 0), 'num'],
];

function sortValue(a, key) {
  if (key === 'altitude') return altitude(a);
  if (key === 'flight') return flight(a) || null;
  return a[key] === undefined ? null : a[key];
}

function drawTable() {
  const body = el('rows'), { key, up } = state.sort;
  const list = [...state.aircraft.values()].sort((a, b) => {
    const x = sortValue(a, key), y = sortValue(b, key);
    if (x === null || y === null) return (x === null) - (y === null) || (a.hex < b.hex ? -1 : 1); // absent last
    return (x < y ? -1 : x > y ? 1 : a.hex < b.hex ? -1 : 1) * (up ? 1 : -1);
  });
  const gone = new Set(state.rows.keys());
  let at = body.firstChild;
  for (const a of list) {
    gone.delete(a.hex);
    let row = state.rows.get(a.hex);
    if (!row) {
      row = document.createElement('tr');
      row.dataset.hex = a.hex;
      row.tabIndex = -1;
      for (const [, , cls] of columns) { const td = document.createElement('td'); td.className = cls; row.append(td); }
      row.addEventListener('click', () => choose(a.hex));
      state.rows.set(a.hex, row);
    }
    columns.forEach(([, text], i) => { const t = text(a); if (row.children[i].textContent !== t) row.children[i].textContent = t; });
    row.setAttribute('aria-selected', a.hex === state.chosen);
    row.classList.toggle('stale', a.seen > staleSeconds);
    if (row !== at) body.insertBefore(row, at); else at = at.nextSibling;
  }
  for (const hex of gone) { state.rows.get(hex).remove(); state.rows.delete(hex); }
  el('empty').hidden = list.length > 0;
  for (const b of document.querySelectorAll('th button'))
    b.parentElement.setAttribute('aria-sort', b.dataset.key !== key ? 'none' : up ? 'ascending' : 'descending');
}

// ---- the chosen aircraft

function drawDetails() {
  const a = state.aircraft.get(state.chosen);
  el('details').hidden = !a;
  if (!a) return;
  el('details-title').textContent = (flight(a) ? flight(a) + '  ' : '') + a.hex;
  const unit = (v, u, n = 0) => Number.isFinite(v) ? v.toFixed(n) + ' ' + u : '';
  const facts = [
    ['Source', a.type], ['Registration', a.r], ['Type', a.t], ['Category', a.category], ['Squawk', a.squawk], ['Emergency', a.emergency !== 'none' ? a.emergency : ''],
    ['Altitude', a.alt_baro === 'ground' ? 'on the ground' : unit(a.alt_baro, 'ft')], ['Geometric', unit(a.alt_geom, 'ft')],
    ['Vertical', unit(Number.isFinite(a.baro_rate) ? a.baro_rate : a.geom_rate, 'ft/min')], ['Ground speed', unit(a.gs, 'kt')],
    ['IAS', unit(a.ias, 'kt')], ['TAS', unit(a.tas, 'kt')], ['Mach', fixed(a.mach, 3)], ['Track', unit(a.track, '°', 1)],
    ['Heading', unit(a.mag_heading, '°', 1)], ['Position', hasPosition(a) ? a.lat.toFixed(5) + ', ' + a.lon.toFixed(5) : ''],
    ['Distance', state.home && hasPosition(a) ? unit(distanceNM(state.home, a), 'nm', 1) : ''], ['NIC', fixed(a.nic, 0)],
    ['Signal', unit(a.rssi, 'dBFS', 1)], ['Messages', fixed(a.messages, 0)], ['Seen', unit(a.seen, 's', 1)],
  ];
  const list = el('details-list');
  list.replaceChildren();
  for (const [name, value] of facts) {
    if (value === undefined || value === null || value === '') continue;
    const dt = document.createElement('dt'), dd = document.createElement('dd');
    dt.textContent = name;
    dd.textContent = value;
    list.append(dt, dd);
  }
}

function choose(hex) {
  state.chosen = hex;
  drawTable();
  drawPlanes();
  drawDetails();
  const row = state.rows.get(hex);
  if (row) row.scrollIntoView({ block: 'nearest' });
}

// ---- updates

function update(data) {
  if (!data || !Array.isArray(data.aircraft)) return;
  const next = new Map(), now = Number.isFinite(data.now) ? data.now : Date.now() / 1000;
  for (const a of data.aircraft) {
    if (typeof a.hex !== 'string') continue;
    next.set(a.hex, a);
    if (!hasPosition(a)) continue;
    let trail = state.trails.get(a.hex);
    if (!trail) state.trails.set(a.hex, trail = []);
    const last = trail[trail.length - 1];
    if (!last || last.lat !== a.lat || last.lon !== a.lon) trail.push({ lat: a.lat, lon: a.lon, color: color(a), at: now });
    while (trail.length > trailPoints || trail.length && trail[0].at < now - trailSeconds) trail.shift();
  }
  state.aircraft = next;
  for (const hex of state.trails.keys()) if (!next.has(hex)) state.trails.delete(hex);
  if (state.chosen && !next.has(state.chosen)) state.chosen = null;
  const placed = [...next.values()].filter(hasPosition).length;
  el('summary').textContent = `${next.size} aircraft, ${placed} with position` + (Number.isFinite(data.messages) ? `, ${data.messages} messages` : '');
  if (state.fitted) fit();
  drawTable();
  drawMap();
  drawDetails();
}

function link(kind, text) {
  el('link').dataset.state = kind;
  el('link').textContent = text;
}

function listen() {
  const events = new EventSource('events');
  events.onopen = () => link('live', 'live');
  events.onmessage = e => { link('live', 'live'); update(JSON.parse(e.data)); };
  events.onerror = () => link('lost', 'connection lost, trying again');
}

// ---- hands

map.addEventListener('wheel', e => {
  e.preventDefault();
  const r = map.getBoundingClientRect();
  zoom(e.deltaY < 0 ? 1.25 : 0.8, e.clientX - r.left, e.clientY - r.top);
}, { passive: false });

const fingers = new Map();
map.addEventListener('pointerdown', e => {
  if (!e.target.closest('.plane')) { map.setPointerCapture(e.pointerId); fingers.set(e.pointerId, e); }
});
map.addEventListener('pointermove', e => {
  const last = fingers.get(e.pointerId);
  if (!last) return;
  if (fingers.size === 1) pan(last.clientX - e.clientX, last.clientY - e.clientY);
  else {
    const other = [...fingers.values()].find(f => f.pointerId !== e.pointerId), r = map.getBoundingClientRect();
    const gap = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
    if (gap(last) > 0) zoom(gap(e) / gap(last), other.clientX - r.left, other.clientY - r.top);
  }
  fingers.set(e.pointerId, e);
});
for (const end of ['pointerup', 'pointercancel']) map.addEventListener(end, e => fingers.delete(e.pointerId));

function showAll() { state.fitted = true; fit(); drawMap(); }

document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const onMap = document.activeElement === map;
  const shown = [...el('rows').children].map(r => r.dataset.hex);
  const move = by => {
    if (!shown.length) return;
    const at = shown.indexOf(state.chosen);
    choose(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.max(0, Math.min(shown.length - 1, at + by))]);
  };
  const keys = {
    '+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), '0': showAll, 'Escape': () => choose(null),
    'ArrowDown': () => onMap ? pan(0, 80) : move(1), 'ArrowUp': () => onMap ? pan(0, -80) : move(-1),
    'j': () => move(1), 'k': () => move(-1),
  };
  if (onMap) { keys.ArrowLeft = () => pan(-80, 0); keys.ArrowRight = () => pan(80, 0); }
  if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});

el('zoom-in').addEventListener('click', () => zoom(1.5));
el('zoom-out').addEventListener('click', () => zoom(1 / 1.5));
el('zoom-fit').addEventListener('click', showAll);
el('details-close').addEventListener('click', () => choose(null));
for (const b of document.querySelectorAll('th button')) b.addEventListener('click', () => {
  state.sort = { key: b.dataset.key, up: state.sort.key === b.dataset.key ? !state.sort.up : true };
  drawTable();
});
new ResizeObserver(() => { if (state.fitted) fit(); drawMap(); }).observe(map);

drawLegend();
drawMap();
fetch('data/receiver.json').then(r => r.json()).then(r => {
  if (Number.isFinite(r.lat) && Number.isFinite(r.lon)) state.home = { lat: r.lat, lon: r.lon };
  if (state.fitted) fit();
  drawMap();
}).catch(() => {}).then(listen);
