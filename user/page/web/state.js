// SPDX-License-Identifier: GPL-2.0-or-later
// What is shown: the class, the part of its map, the region, the cursor and the selection.
"use strict";

const canvas = byId("canvas"), picture = new Picture(canvas), heats = new Map();
let heat = null;       // of the class that is shown; null: there is none, or it is not unpacked yet
let chosen = null;     // region whose details are shown
let picked = false;    // the user chose it: it is outlined, and commands are about it
let part = null;       // rows [r0, r1) in their order, times [t0, t1)
let mean = false, sortBy = "host", withThreads = false, jobName = null;
let cursor = null, brush = null, corner = null; // corner: of a selection that is being made
let drawing = false;

function heatOf(map) {
	if (!heats.has(map))
		heats.set(map, new HeatMap(map));
	return heats.get(map);
}

function mapsOfJob() {
	return page.maps.filter(map => map.job === jobName);
}

function wholePart() {
	return {r0: 0, r1: heat.order.length, t0: heat.map.begin, t1: heat.map.end};
}

function className(map) {
	const same = mapsOfJob().filter(one => one.class === map.class).length > 1;
	return (map.waiting ? "waiting" : map.class) + (same ? " (bins of " + duration(map.bin) + ")" : "");
}

function regionsOfMap() {
	return page.regions.filter(region => isShown(region));
}

// Users may have jobs of one name.
function ofJob(region, map) {
	return region.job === map.said && (region.uid === null || map.uid === null || region.uid === map.uid);
}

function isShown(region) {
	return ofJob(region, heat.map) && (region.class === heat.map.class || (region.also || []).includes(heat.map.class));
}

function redraw() {
	if (drawing || !heat)
		return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		drawNow();
	});
}

function drawNow() {
	if (!heat)
		return;
	const begin = performance.now();
	picture.draw({heat, part, mean, regions: regionsOfMap(), chosen: picked ? chosen : null, cursor, brush});
	performance.measure("draw", {start: begin, end: performance.now()});
	showCommand();
}

function say(text) {
	byId("status").textContent = clean(text);
}

// ---- the part that is shown

function limit(next) {
	const whole = wholePart(), rows = Math.min(Math.max(next.r1 - next.r0, Math.min(1, whole.r1)), whole.r1);
	const least = 4 * heat.map.bin, time = Math.min(Math.max(next.t1 - next.t0, Math.min(least, whole.t1 - whole.t0)), whole.t1 - whole.t0);
	const r0 = Math.min(Math.max(0, next.r0), whole.r1 - rows), t0 = Math.min(Math.max(whole.t0, next.t0), whole.t1 - time);
	return {r0, r1: r0 + rows, t0, t1: t0 + time};
}

function sayPart() {
	const rows = heat.order.slice(Math.floor(part.r0), Math.ceil(part.r1));
	const names = rangesText(rows.filter(row => row.rank >= 0).map(row => row.rank).sort((a, b) => a - b));
	say((names ? "ranks " + (names.length > 60 ? names.slice(0, 60) + "..." : names) : plural(rows.length, "row")) + ", " + duration(part.t0) + " to " + duration(part.t1) +
		" after the start, " + className(heat.map) + ", " + (mean ? "mean" : "worst") + ", rows by " + sortBy);
}

function show(next, quiet) {
	part = limit(next);
	redraw();
	if (!quiet)
		sayPart();
	keepAddress();
}

function zoom(factor, time = (part.t0 + part.t1) / 2, row = (part.r0 + part.r1) / 2, rows = true) {
	const f = rows && heat.order.length > 1 ? factor : 1;
	show({t0: time + (part.t0 - time) * factor, t1: time + (part.t1 - time) * factor, r0: row + (part.r0 - row) * f, r1: row + (part.r1 - row) * f});
}

function move(times, rows) {
	const dt = times * (part.t1 - part.t0), dr = rows * (part.r1 - part.r0);
	show({t0: part.t0 + dt, t1: part.t1 + dt, r0: part.r0 + dr, r1: part.r1 + dr});
}

function moveHost(step) {
	const order = heat.order, host = order[Math.min(order.length - 1, Math.floor(part.r0 + 0.001))].hostIndex;
	let at = Math.floor(part.r0 + 0.001);
	if (step > 0) {
		while (at < order.length && order[at].hostIndex === host)
			at++;
	} else {
		while (at > 0 && order[at].hostIndex === host)
			at--;
	}
	at = Math.min(at, order.length - 1);
	let first = at, last = at;
	while (first > 0 && order[first - 1].hostIndex === order[at].hostIndex)
		first--;
	while (last < order.length && order[last].hostIndex === order[at].hostIndex)
		last++;
	show({r0: first, r1: last, t0: part.t0, t1: part.t1}, true);
	say("host " + order[at].host + ", " + plural(last - first, "row"));
}

function showRegion(region) {
	const boxes = heat.boxesOf(region);
	if (!boxes.length)
		return;
	const rows = boxes[boxes.length - 1][1] - boxes[0][0], time = region.end - region.begin;
	show({t0: region.begin - time * 0.6, t1: region.end + time * 0.6, r0: boxes[0][0] - Math.max(2, rows * 0.3), r1: boxes[boxes.length - 1][1] + Math.max(2, rows * 0.3)});
}

// ---- what is chosen

async function choose(region, follow) {
	if (!region)
		return;
	chosen = region;
	picked = true;
	fillDetail();
	markChosen();
	if (!heat || !isShown(region)) {
		const map = page.maps.find(one => ofJob(region, one) && one.class === region.class);
		if (map)
			await showMap(map);
	}
	say("region " + region.number + " of " + page.regions.length + ": " + (waited(region) ? "waiting" : region.class) + " of " + region.who + ", " + duration(region.lost) + (waited(region) ? "" : " lost") +
		(region.cause ? ", " + region.cause : ""));
	redraw();
	keepAddress();
	if (follow)
		showDetail();
}

function showDetail() {
	if (!chosen)
		return;
	byId("detail").scrollIntoView({block: "nearest"});
	byId("detail").focus({preventScroll: true});
}

function step(by) {
	const list = page.regions;
	if (!list.length) {
		say("there is no region");
		return;
	}
	const at = picked || by < 0 ? list.indexOf(chosen) + by : 0;
	picked = true;
	choose(list[(at + list.length) % list.length], false);
}

async function showMap(map) {
	const next = heatOf(map), before = part, change = heat && heat.map.job === map.job;
	await next.load();
	heat = next;
	jobName = map.job;
	if (heat.by !== sortBy || heat.withThreads !== withThreads)
		sortRows();
	// another class of the same job has the same ranks, as a rule
	part = change && before ? limit(before) : wholePart();
	brush = corner = null;
	for (const button of byId("classes").children)
		button.setAttribute("aria-pressed", String(button.map === map));
	byId("threads-label").hidden = !heat.hasThreads;
	byId("coarse").hidden = !heat.coarse && !map.rounded;
	byId("coarse").textContent = (heat.coarse ? "The run is large: a column is a bin around regions, and up to " + Math.max(...map.parts.map(one => one[2])) +
		" bins elsewhere, of which it has the worst and the mean. " : "") + (!map.rounded ? "" : map.waiting ? "Waiting is rounded to 5 %." : "All values from 95 % on are shown as one, and are no loss in the margins.");
	fillLegend();
	redraw();
	keepAddress();
}

function sortRows() {
	heat.sort(sortBy, withThreads);
	heat.withThreads = withThreads;
	byId("sort").value = sortBy;
}

function setSort(by) {
	sortBy = by;
	sortRows();
	show(wholePart(), true);
	say("rows by " + by + (by === "loss" ? ", most first: " + heat.order.slice(0, 3).map(row => rowName(row, true) + " " + duration(heat.rowLoss[row.index])).join(", ") : ""));
}

function setMean(value) {
	mean = value;
	byId("worst").setAttribute("aria-pressed", String(!mean));
	byId("mean").setAttribute("aria-pressed", String(mean));
	redraw();
	keepAddress();
}

function nextClass() {
	const maps = mapsOfJob(), at = maps.indexOf(heat.map);
	showMap(maps[(at + 1) % maps.length]).then(() => say("class " + className(heat.map)));
}

function findRank(text) {
	const rank = Number(text), places = heat.places.get(rank);
	if (!/^\d+$/.test(text.trim()) || !places) {
		say("there is no rank " + text);
		return;
	}
	const rows = Math.min(heat.order.length, 16);
	cursor = {row: places[0], time: (part.t0 + part.t1) / 2};
	show({r0: places[0] - rows / 2, r1: places[0] + rows / 2, t0: part.t0, t1: part.t1}, true);
	sayCursor();
}

function describe(row, time) {
	const one = heat.order[row], value = heat.value(row, time);
	const what = value === NONE ? "not evaluated" : heat.map.waiting ? (100 - value) + " % of the time waiting" : value + " % of the best observed speed";
	return (one.rank >= 0 ? "rank " + one.rank : "pid " + one.pid) + (one.thread >= 0 ? " thread " + one.thread : "") + " on " + one.host + ", " + duration(time) + " after the start (" +
		clock(time) + " UTC): " + what;
}

function regionAtCursor() {
	return cursor && regionsOfMap().find(region => cursor.time >= region.begin && cursor.time < region.end &&
		heat.boxesOf(region).some(box => cursor.row >= box[0] && cursor.row < box[1]));
}

function sayCursor() {
	const region = regionAtCursor();
	say(describe(cursor.row, cursor.time) + (region ? "; region " + region.number : ""));
}

function moveCursor(times, rows) {
	const stepTime = Math.max(heat.map.bin, (part.t1 - part.t0) / picture.box.width), stepRow = Math.max(1, Math.round((part.r1 - part.r0) / picture.box.height));
	if (!cursor)
		cursor = {row: Math.floor((part.r0 + part.r1) / 2), time: (part.t0 + part.t1) / 2};
	cursor.time = Math.min(Math.max(heat.map.begin, cursor.time + times * stepTime), heat.map.end - heat.map.bin / 2);
	cursor.row = Math.min(Math.max(0, cursor.row + rows * stepRow), heat.order.length - 1);
	if (corner)
		setBrush(corner, cursor);
	if (cursor.time < part.t0 || cursor.time > part.t1 || cursor.row < part.r0 || cursor.row >= part.r1)
		show({t0: cursor.time - (part.t1 - part.t0) / 2, t1: cursor.time + (part.t1 - part.t0) / 2, r0: cursor.row - (part.r1 - part.r0) / 2, r1: cursor.row + (part.r1 - part.r0) / 2}, true);
	redraw();
	sayCursor();
}

// A selection has whole cells.
function setBrush(one, other) {
	const edge = heat.begins, from = heat.columnAt(Math.min(one.time, other.time)), to = heat.columnAt(Math.max(one.time, other.time)) + 1;
	brush = {t0: edge[from], t1: edge[to], r0: Math.max(0, Math.floor(Math.min(one.row, other.row))), r1: Math.min(heat.order.length, Math.floor(Math.max(one.row, other.row)) + 1)};
}
