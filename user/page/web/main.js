// What is shown, and how mouse, keyboard and the address change it.
"use strict";

const canvas = byId("canvas"), picture = new Picture(canvas), heats = new Map();
let heat = null;       // of the class that is shown; null: there is none, or it is not unpacked yet
let chosen = null;     // region whose details are shown
let picked = false;    // somebody chose it: it is outlined, and commands are about it
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
	byId("coarse").textContent = (heat.coarse ? "The run is long: a column is a bin around regions, and up to " + Math.max(...map.parts.map(one => one[2])) +
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

// ---- the command for what is selected

function quote(word) {
	return /^[A-Za-z0-9_./,:@%+=-]+$/.test(word) && !word.startsWith("-") ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

function command() {
	let ranks, t0, t1;
	if (brush || !picked || !chosen || !isShown(chosen)) {
		const area = brush || part, rows = heat.order.slice(Math.floor(area.r0), Math.ceil(area.r1));
		const all = rows.length === heat.order.length;
		ranks = all ? "all" : rangesText([...new Set(rows.map(row => row.rank).filter(rank => rank >= 0))].sort((a, b) => a - b));
		[t0, t1] = [area.t0, area.t1];
	} else {
		ranks = ranges(chosen.ranks).length ? chosen.ranks : "all";
		[t0, t1] = [chosen.begin, chosen.end];
	}
	const region = (ranks && ranks.split(",").length <= 256 ? ranks : "all") + "@" + utc(t0) + ".." + utc(t1);
	const files = page.source.kind === "records" ? ["run.capture"] : page.source.files.map(file => file.startsWith("-") && file !== "-" ? "./" + file : file);
	const run = page.source.kind === "captures" && page.source.runs > 1 ? "--run " + page.source.run + " " : "";
	return "vapro analyze --summary -o /dev/null " + (page.source.kind === "fragments" ? "--format ndjson " : "") + run + "--region " + region + " " + files.map(quote).join(" ");
}

function showCommand() {
	byId("command").value = command();
}

async function copyCommand() {
	const field = byId("command");
	showCommand();
	let done = true;
	try {
		await navigator.clipboard.writeText(field.value);
	} catch {
		const before = document.activeElement;
		field.focus();
		field.select();
		done = document.execCommand("copy");
		before.focus();
	}
	say(done ? "copied: " + field.value : "could not copy: select the command beside the map");
}

// ---- the address

let applying = false;

function keepAddress() {
	if (!heat || applying)
		return;
	const whole = wholePart(), words = [], number = value => String(Math.round(value * 1000) / 1000);
	if (page.maps.some(map => map.job !== jobName))
		words.push("job=" + encodeURIComponent(jobName));
	words.push("class=" + encodeURIComponent(heat.map.class));
	if (part.r0 > whole.r0 || part.r1 < whole.r1)
		words.push("rows=" + number(part.r0) + "-" + number(part.r1));
	if (part.t0 > whole.t0 || part.t1 < whole.t1)
		words.push("time=" + number(part.t0) + "-" + number(part.t1));
	if (sortBy !== "host")
		words.push("sort=" + sortBy);
	if (mean)
		words.push("mean=1");
	if (withThreads)
		words.push("threads=1");
	if (chosen && picked)
		words.push("region=" + encodeURIComponent(chosen.number));
	history.replaceState(null, "", "#" + words.join("&"));
}

async function readAddress() {
	const words = new Map(location.hash.slice(1).split("&").map(word => word.split("=", 2)).filter(word => word.length === 2));
	const text = key => {
		try {
			return words.has(key) ? decodeURIComponent(words.get(key)) : undefined;
		} catch {
			return undefined;
		}
	};
	const pair = key => (text(key) || "").split("-").map(Number);
	applying = true;
	sortBy = ["host", "rank", "loss"].includes(text("sort")) ? text("sort") : sortBy;
	withThreads = text("threads") === "1" || withThreads;
	if (text("mean") === "1")
		setMean(true);
	const region = page.regions.find(one => one.number === text("region"));
	const job = page.maps.some(map => map.job === text("job")) ? text("job") : jobName;
	const map = page.maps.find(one => one.job === job && one.class === text("class"));
	if (map || heat)
		await showMap(map || heat.map);
	if (heat && region) {
		chosen = region;
		picked = true;
		fillDetail();
		markChosen();
	}
	if (heat) {
		const [r0, r1] = pair("rows"), [t0, t1] = pair("time"), whole = wholePart();
		part = limit({r0: r1 > r0 ? r0 : whole.r0, r1: r1 > r0 ? r1 : whole.r1, t0: t1 > t0 ? t0 : whole.t0, t1: t1 > t0 ? t1 : whole.t1});
		byId("threads").checked = withThreads;
		byId("sort").value = sortBy;
		redraw();
	}
	applying = false;
	return Boolean(map);
}

// ---- legend and tools

function fillLegend() {
	const scale = make("span", "scale"), waiting = heat.map.waiting, colours = rampOf(waiting), swatch = colour => {
		const element = make("i", "");
		element.style.background = colour;
		return element;
	};
	for (let value = 100; value >= 0; value -= 5)
		scale.append(swatch(css(colours[value])));
	const hatched = swatch("repeating-linear-gradient(45deg, " + theme().hatch[0] + " 0 2px, " + theme().hatch[1] + " 2px 6px)");
	byId("legend").replaceChildren(make("span", "", waiting ? "0 % waiting " : "100 % of the best observed speed ", scale, waiting ? " 100 % waiting (no fault of the rank that waits)" : " 0 %"),
		make("span", "", hatched, "not evaluated"), make("span", "", waiting ? "dashed: waiting that a region explains" : "numbered: slow regions"));
}

function makeTools() {
	makeClasses();
	byId("worst").addEventListener("click", () => setMean(false));
	byId("mean").addEventListener("click", () => setMean(true));
	byId("closer").addEventListener("click", () => zoom(0.5));
	byId("farther").addEventListener("click", () => zoom(2));
	byId("whole").addEventListener("click", () => show(wholePart()));
	byId("sort").addEventListener("change", event => setSort(event.target.value));
	byId("threads").addEventListener("change", event => {
		withThreads = event.target.checked;
		setSort(sortBy);
	});
	byId("search").addEventListener("keydown", event => {
		if (event.key === "Enter") {
			findRank(event.target.value);
			canvas.focus();
		} else if (event.key === "Escape") {
			canvas.focus();
		}
	});
	byId("copy").addEventListener("click", copyCommand);
	byId("help-button").addEventListener("click", () => byId("help").showModal());
	byId("previous").addEventListener("click", () => step(-1));
	byId("next").addEventListener("click", () => step(1));
	byId("show").addEventListener("click", () => {
		showRegion(chosen);
		byId("map").scrollIntoView();
	});
	byId("more").addEventListener("click", () => {
		regionsShown = Infinity;
		fillRegions();
	});
	byId("more-states").addEventListener("click", () => {
		statesShown = Infinity;
		fillStates();
	});
	byId("by-loss").addEventListener("click", () => sortTable("loss"));
	byId("by-time").addEventListener("click", () => sortTable("time"));
	const jobs = [...new Set(page.maps.map(map => map.job))];
	byId("job-label").hidden = jobs.length < 2;
	for (const job of jobs)
		byId("job").append(new Option(clean(job), job));
	byId("job").addEventListener("change", event => {
		jobName = event.target.value;
		makeClasses();
		showMap(firstMap());
	});
}

function makeClasses() {
	byId("classes").replaceChildren(...mapsOfJob().map(map => {
		const button = make("button", "", className(map));
		button.type = "button";
		button.map = map;
		button.addEventListener("click", () => showMap(map));
		return button;
	}));
}

function sortTable(by) {
	regionsBy = by;
	fillRegions();
}

function firstMap() {
	const maps = mapsOfJob(), worst = page.regions.find(region => ofJob(region, maps[0]) && !region.waiting);
	return maps.find(map => worst && map.class === worst.class) || maps.find(map => map.class === "computation") || maps.find(map => !map.waiting) || maps[0];
}

// ---- keyboard and mouse

const keys = {
	n: () => step(1), p: () => step(-1), c: nextClass, m: () => setMean(!mean), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(wholePart()),
	s: () => setSort({host: "rank", rank: "loss", loss: "host"}[sortBy]), z: () => chosen && showRegion(chosen), r: copyCommand,
	h: () => moveCursor(-1, 0), l: () => moveCursor(1, 0), j: () => moveCursor(0, 1), k: () => moveCursor(0, -1),
	b: () => {
		if (!cursor)
			moveCursor(0, 0);
		if (corner) {
			setBrush(corner, cursor);
			corner = null;
			copyReady();
		} else {
			corner = {...cursor};
			setBrush(corner, cursor);
			say("selection begun: h, j, k, l extend it, b ends it");
		}
		redraw();
	},
	"/": () => byId("search").focus(),
};

const canvasKeys = {
	ArrowLeft: () => move(-0.2, 0), ArrowRight: () => move(0.2, 0), ArrowUp: () => move(0, -0.2), ArrowDown: () => move(0, 0.2), PageUp: () => moveHost(-1), PageDown: () => moveHost(1),
	Enter: () => {
		const region = regionAtCursor();
		if (region)
			choose(region, true);
		else
			showDetail();
	},
};

function copyReady() {
	say("selected: r copies the command");
	showCommand();
}

document.addEventListener("keydown", event => {
	if (event.ctrlKey || event.altKey || event.metaKey || byId("help").open || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
		return;
	if (event.key === "?") {
		byId("help").showModal();
		event.preventDefault();
		return;
	}
	if (event.key === "Escape") {
		brush = corner = null;
		redraw();
		say("nothing selected");
		return;
	}
	const inMap = event.target === canvas || (event.target === document.body && event.key === "Enter");
	const action = (inMap && canvasKeys[event.key]) || keys[event.key];
	if (!action || !heat)
		return;
	event.preventDefault();
	action();
});

let drag = null;

function place(event) {
	const at = canvas.getBoundingClientRect(), x = event.clientX - at.left, y = event.clientY - at.top;
	return {x, y, time: picture.time(x), row: picture.row(y), inside: x >= picture.box.left && x <= picture.box.left + picture.box.width && y >= picture.box.top && y <= picture.box.top + picture.box.height};
}

canvas.addEventListener("pointerdown", event => {
	if (!heat || event.button > 1)
		return;
	const at = place(event);
	if (!at.inside)
		return;
	drag = {at, part: {...part}, moves: event.shiftKey || event.button === 1, far: false};
	canvas.setPointerCapture(event.pointerId);
	canvas.focus({preventScroll: true});
	event.preventDefault();
});

canvas.addEventListener("pointermove", event => {
	if (!heat)
		return;
	const at = place(event);
	if (!drag) {
		byId("hover").textContent = at.inside ? clean(describe(Math.min(heat.order.length - 1, Math.max(0, Math.floor(at.row))), at.time)) : "";
		return;
	}
	drag.far = drag.far || Math.abs(at.x - drag.at.x) + Math.abs(at.y - drag.at.y) > 4;
	if (!drag.far)
		return;
	if (drag.moves) {
		const dt = (at.x - drag.at.x) / picture.box.width * (drag.part.t1 - drag.part.t0), dr = (at.y - drag.at.y) / picture.box.height * (drag.part.r1 - drag.part.r0);
		show({t0: drag.part.t0 - dt, t1: drag.part.t1 - dt, r0: drag.part.r0 - dr, r1: drag.part.r1 - dr}, true);
	} else {
		setBrush(drag.at, at);
		redraw();
	}
});

canvas.addEventListener("pointerup", () => {
	const was = drag;
	drag = null;
	if (!was || !heat)
		return;
	if (was.far) {
		if (!was.moves)
			copyReady();
		return;
	}
	brush = null;
	choose(picture.regionAt(was.at.x, was.at.y), false);
	cursor = {row: Math.min(heat.order.length - 1, Math.floor(was.at.row)), time: was.at.time};
	redraw();
});

canvas.addEventListener("dblclick", event => {
	const region = heat && picture.regionAt(place(event).x, place(event).y);
	if (region)
		showRegion(region);
});

canvas.addEventListener("wheel", event => {
	if (!heat)
		return;
	const at = place(event);
	if (!at.inside)
		return;
	event.preventDefault();
	zoom(Math.min(4, Math.max(0.25, Math.exp(event.deltaY * 0.0016))), at.time, at.row, !event.shiftKey);
}, {passive: false});

// ---- begin

addEventListener("resize", redraw);
dark.addEventListener("change", () => {
	if (heat)
		fillLegend();
	redraw();
});
addEventListener("beforeprint", () => {
	printing = true;
	if (heat)
		fillLegend();
	drawNow();
});
addEventListener("afterprint", () => {
	printing = false;
	if (heat)
		fillLegend();
	drawNow();
});
addEventListener("hashchange", readAddress);

async function begin() {
	fillHead();
	fillCauses();
	fillRegions();
	fillStates();
	fillFindings();
	fillCoverage();
	const drawn = page.maps.filter(map => map.rows.length);
	if (!drawn.length) {
		byId("map-none").hidden = false;
		byId("map-none").textContent = "There is no heat map: no window of the run has one.";
		for (const id of ["tools", "stage", "legend", "command-line"])
			byId(id).hidden = true;
		document.documentElement.dataset.ready = "true";
		return;
	}
	page.maps = drawn;
	// the details of the worst are shown until another one is chosen
	chosen = page.regions[0] || null;
	fillDetail();
	markChosen();
	jobName = (drawn.find(map => page.regions.length && ofJob(page.regions[0], map)) || drawn[0]).job;
	makeTools();
	byId("job").value = jobName;
	setMean(false);
	if (!await readAddress())
		await showMap(firstMap());
	drawNow();
	performance.mark("first-picture");
	document.documentElement.dataset.ready = "true";
}

begin();
