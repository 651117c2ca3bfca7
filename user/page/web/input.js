// SPDX-License-Identifier: GPL-2.0-or-later
// Mouse, keyboard, the tools above the map and the legend below it.
"use strict";

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
		make("span", "", hatched, "not evaluated"), make("span", "", !regionsOfMap().length ? "" : waiting ? "dashed: waiting that a region explains" : "numbered: slow regions" + (regionsOfMap().length > LABELS_MOST ? ", the worst " + LABELS_MOST + " in the picture" : "")));
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
	byId("more-profile").addEventListener("click", () => fillProfile(true));
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
