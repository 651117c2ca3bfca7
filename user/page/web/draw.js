// SPDX-License-Identifier: GPL-2.0-or-later
// Draws the map, its margins and its regions on the canvas.
"use strict";

// The colours of the cells are those of the data: lists of [percent, colour].
const scales = {
	light: {
		...page.scales.light,
		ground: "#ffffff", ink: "#1b1f24", soft: "#57606a", line: "#b6bec8", hatch: ["#c4cad1", "#f4f5f7"], loss: "#b35900", outline: "#111111", halo: "#ffffff", chosen: "#0550ae"},
	dark: {
		...page.scales.dark,
		ground: "#0f1318", ink: "#e6edf3", soft: "#9ba7b4", line: "#4a545f", hatch: ["#39414b", "#1a2027"], loss: "#e3953a", outline: "#ffffff", halo: "#000000", chosen: "#7cb8ff"},
};

const LABELS_MOST = 40;    // regions with their number in one picture: the worst
const OUTLINES_MOST = 300; // regions with broad outlines in one picture

const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function theme() {
	return dark.matches && !printing ? scales.dark : scales.light;
}

function parts(colour) {
	return [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
}

// The colours of 0 to 100 % as [red, green, blue].
function ramp(stops) {
	const found = [];
	for (let value = 0; value <= 100; value++) {
		let i = 0;
		while (i + 2 < stops.length && stops[i + 1][0] > value)
			i++;
		const share = (stops[i][0] - value) / (stops[i][0] - stops[i + 1][0]), from = parts(stops[i][1]), to = parts(stops[i + 1][1]);
		found.push(from.map((one, k) => Math.round(one + (to[k] - one) * share)));
	}
	return found;
}

function css(colour) {
	return "rgb(" + colour.join(",") + ")";
}

const ramps = new Map();
function rampOf(waiting) {
	const stops = waiting ? theme().waiting : theme().speed;
	if (!ramps.has(stops))
		ramps.set(stops, ramp(stops));
	return ramps.get(stops);
}

// Where everything is, in CSS pixels.
function layout(width, rows) {
	const left = 148, right = 84, top = 58, bottom = 34;
	const plotHeight = Math.round(printing ? Math.min(Math.max(rows * 40, 90), 480) : Math.min(Math.max(rows * 26, 90), Math.max(320, Math.min(innerHeight * 0.6, 760))));
	return {left, top, width: Math.max(60, width - left - right), height: plotHeight, right, bottom, full: width, fullHeight: top + plotHeight + bottom};
}

// A round step, so that ticks are at least `least` apart.
function tickStep(least, whole) {
	const steps = whole ? [1, 2, 5] : [1, 2, 5];
	let power = whole ? 1 : 10 ** Math.floor(Math.log10(least));
	for (;; power *= 10)
		for (const step of steps)
			if (step * power >= least)
				return step * power;
}

function timeStep(least) {
	for (const step of [60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400])
		if (least > 20 && step >= least)
			return step;
	return least > 86400 ? 86400 * Math.ceil(least / 86400) : tickStep(least, false);
}

function timeLabel(time, step) {
	if (step < 60)
		return (Math.round(time * 1e6) / 1e6) + " s";
	const minutes = Math.round(time / 60);
	return minutes < 60 ? minutes + " min" : Math.floor(minutes / 60) + ":" + String(minutes % 60).padStart(2, "0") + " h";
}

class Picture {
	constructor(canvas) {
		this.canvas = canvas;
		this.context = canvas.getContext("2d");
		this.image = document.createElement("canvas");
	}

	// state: heat, part, mean, regions (to outline), chosen, cursor, brush
	draw(state) {
		const scale = printing ? 2 : Math.min(2, devicePixelRatio || 1), width = printing ? 900 : Math.max(320, this.canvas.parentElement.clientWidth);
		const box = this.box = layout(width, state.part.r1 - state.part.r0);
		const context = this.context, colours = theme();
		this.canvas.width = Math.round(width * scale);
		this.canvas.height = Math.round(box.fullHeight * scale);
		this.canvas.style.height = printing ? "" : box.fullHeight + "px";
		this.state = state;
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.fillStyle = colours.ground;
		context.fillRect(0, 0, width, box.fullHeight);
		context.font = "12px system-ui, sans-serif";
		context.textBaseline = "middle";
		this.drawCells(scale);
		this.drawTimes();
		this.drawRows();
		this.drawLossOverTime();
		this.drawLossOfRows();
		context.save();
		context.beginPath();
		context.rect(box.left, box.top, box.width, box.height);
		context.clip();
		this.drawRegions();
		this.drawBrush();
		context.restore();
		this.drawCursor();
		context.strokeStyle = colours.line;
		context.lineWidth = 1;
		context.strokeRect(box.left - 0.5, box.top - 0.5, box.width + 1, box.height + 1);
	}

	x(time) {
		return this.box.left + (time - this.state.part.t0) / (this.state.part.t1 - this.state.part.t0) * this.box.width;
	}

	y(row) {
		return this.box.top + (row - this.state.part.r0) / (this.state.part.r1 - this.state.part.r0) * this.box.height;
	}

	time(x) {
		return this.state.part.t0 + (x - this.box.left) / this.box.width * (this.state.part.t1 - this.state.part.t0);
	}

	row(y) {
		return this.state.part.r0 + (y - this.box.top) / this.box.height * (this.state.part.r1 - this.state.part.r0);
	}

	drawCells(scale) {
		const box = this.box, state = this.state, width = Math.round(box.width * scale), height = Math.round(box.height * scale);
		const values = state.heat.reduce(state.mean, state.part, width, height);
		this.image.width = width;
		this.image.height = height;
		const context = this.image.getContext("2d"), image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
		const pack = colour => (255 << 24 | colour[2] << 16 | colour[1] << 8 | colour[0]) >>> 0;
		const table = new Uint32Array(rampOf(state.heat.map.waiting).map(pack)), hatch = theme().hatch.map(colour => pack(parts(colour)));
		const wide = Math.round(7 * scale), thin = Math.round(2 * scale);
		for (let y = 0, at = 0; y < height; y++) {
			for (let x = 0; x < width; x++, at++) {
				const value = values[at];
				pixels[at] = value === NONE ? hatch[(x + y) % wide < thin ? 0 : 1] : table[value];
			}
		}
		context.putImageData(image, 0, 0);
		this.context.drawImage(this.image, box.left, box.top, box.width, box.height);
	}

	drawTimes() {
		const {part} = this.state, box = this.box, context = this.context, step = timeStep((part.t1 - part.t0) / Math.max(1, box.width / 90));
		context.fillStyle = theme().soft;
		context.strokeStyle = theme().line;
		context.textAlign = "center";
		for (let time = Math.ceil(part.t0 / step - 1e-9) * step; time <= part.t1 + step * 1e-6; time += step) {
			const x = this.x(time);
			context.beginPath();
			context.moveTo(x, box.top + box.height);
			context.lineTo(x, box.top + box.height + 5);
			context.stroke();
			if (x < box.left + box.width - 10 || part.t1 - time < step * 1e-6)
				context.fillText(timeLabel(time, step), x, box.top + box.height + 14);
		}
		context.textAlign = "right";
		context.fillText("after " + clock(0) + " UTC", box.left - 22, box.top + box.height + 14);
	}

	drawRows() {
		const {heat, part} = this.state, box = this.box, context = this.context, order = heat.order, colours = theme();
		const size = box.height / (part.r1 - part.r0), grouped = heat.by !== "loss";
		const step = size >= 13 ? 1 : tickStep(14 / size, true);
		const first = Math.max(0, Math.floor(part.r0)), last = Math.min(order.length, Math.ceil(part.r1));
		let hostFirst = first, lastLabel = -99;
		context.textAlign = "right";
		for (let i = first; i < last; i++) {
			const y = this.y(i + 0.5), row = order[i];
			if ((step > 1 && i % step) || y < box.top + 4 || y > box.top + box.height - 4)
				continue;
			context.fillStyle = colours.soft;
			context.fillText(rowName(row, step === 1), box.left - 6, y);
		}
		if (!grouped)
			return;
		for (let i = first + 1; i <= last; i++) {
			if (i < last && order[i].hostIndex === order[hostFirst].hostIndex)
				continue;
			const top = Math.max(box.top, this.y(hostFirst)), bottom = Math.min(box.top + box.height, this.y(i)), height = bottom - top;
			if (i < last && (height >= 3 || this.y(i) - lastLabel >= 14)) {
				context.strokeStyle = colours.halo;
				context.lineWidth = height >= 12 ? 2.5 : 1;
				line(context, box.left, bottom, box.left + box.width, bottom);
				context.strokeStyle = colours.soft;
				context.lineWidth = height >= 12 ? 1 : 0.5;
				if (height >= 12)
					line(context, 4, bottom, 84, bottom);
				line(context, box.left, bottom, box.left + box.width, bottom);
			}
			if (top + 8 - lastLabel >= 13 && top + 8 < box.top + box.height) {
				context.textAlign = "left";
				context.fillStyle = colours.ink;
				context.fillText(fit(context, shortHost(order[hostFirst].host), 80), 4, Math.min(top + 8, box.top + box.height - 7));
				lastLabel = top + 8;
			}
			hostFirst = i;
		}
	}

	// How many ranks' worth of time is lost at a time.
	drawLossOverTime() {
		const {heat, part} = this.state, box = this.box, context = this.context, height = box.top - 24, base = box.top - 5;
		const width = Math.round(box.width), values = new Float64Array(width);
		const [from, to] = heat.spans(width, part.t0, part.t1, time => time < heat.begins[0] || time >= heat.begins[heat.columns] ? -1 : heat.columnAt(time));
		let most = 0.5; // less than half a rank is drawn small
		for (let x = 0; x < width; x++) {
			for (let c = from[x]; c >= 0 && c < to[x]; c++)
				values[x] = Math.max(values[x], heat.columnLoss[c]);
			most = Math.max(most, values[x]);
		}
		context.fillStyle = heat.map.waiting ? css(rampOf(true)[40]) : theme().loss;
		for (let x = 0; x < width; x++) {
			const size = values[x] / most * height;
			context.fillRect(box.left + x, base - size, 1, size);
		}
		if (!values.some(value => value > 0)) // nothing was lost, or nothing evaluated: there is no bar to measure
			return;
		context.fillStyle = theme().soft;
		context.textAlign = "left";
		context.fillText((heat.map.waiting ? "ranks' time spent waiting" : "ranks' time lost") + " per second; the height is " + most.toFixed(most < 10 ? 2 : 0) + " s", box.left, 10);
	}

	// The loss of each row in the whole run.
	drawLossOfRows() {
		const {heat, part} = this.state, box = this.box, context = this.context, left = box.left + box.width + 8, width = box.right - 16;
		const height = Math.round(box.height), size = (part.r1 - part.r0) / height, values = new Float64Array(height);
		let most = 0.01 * (heat.map.end - heat.map.begin); // less than 1 % of the time is drawn small
		for (const row of heat.order)
			most = Math.max(most, heat.rowLoss[row.index]);
		for (let y = 0; y < height; y++) {
			const last = Math.max(Math.floor(part.r0 + y * size) + 1, Math.ceil(part.r0 + (y + 1) * size));
			for (let row = Math.floor(part.r0 + y * size); row < last && row < heat.order.length; row++)
				values[y] = Math.max(values[y], heat.rowLoss[heat.order[row].index]);
		}
		context.fillStyle = heat.map.waiting ? css(rampOf(true)[40]) : theme().loss;
		const gap = size < 1 / 6 ? 1 : 0;
		for (let y = 0; y < height; y++) {
			const edge = gap && Math.floor(part.r0 + y * size) !== Math.floor(part.r0 + (y + 1) * size);
			if (!edge)
				context.fillRect(left, box.top + y, values[y] / most * width, 1);
		}
		if (!values.some(value => value > 0))
			return;
		context.fillStyle = theme().soft;
		context.textAlign = "right";
		context.fillText("of a rank,", box.full - 4, box.top - 22);
		context.fillText("to " + duration(most), box.full - 4, box.top - 8);
	}

	drawRegions() {
		const {regions, chosen, part} = this.state, context = this.context, colours = theme(), labels = [];
		this.hits = [];
		const visible = regions.filter(region => region !== chosen && region.end >= part.t0 && region.begin <= part.t1);
		this.thin = visible.length > OUTLINES_MOST;
		for (const region of visible) {
			this.outline(region, colours.halo, colours.outline, region.effect ? [4, 3] : [], labels);
		}
		if (chosen && regions.includes(chosen))
			this.outline(chosen, colours.halo, colours.chosen, [], labels, true);
		context.setLineDash([]);
		// the chosen one first, then the worst; none above another
		labels.sort((a, b) => b.chosen - a.chosen);
		context.font = "bold 11px system-ui, sans-serif";
		context.textAlign = "center";
		const placed = [];
		for (const label of labels.slice(0, LABELS_MOST)) {
			const width = context.measureText(label.text).width + 6, x = Math.min(Math.max(label.x, this.box.left), this.box.left + this.box.width - width);
			const y = Math.min(Math.max(label.y, this.box.top), this.box.top + this.box.height - 13);
			if (placed.some(other => x < other.x + other.width && other.x < x + width && Math.abs(y - other.y) < 13))
				continue;
			placed.push({x, y, width});
			context.fillStyle = label.chosen ? colours.chosen : colours.outline;
			context.fillRect(x, y, width, 13);
			context.fillStyle = colours.halo;
			context.fillText(label.text, x + width / 2, y + 7);
		}
		context.font = "12px system-ui, sans-serif";
	}

	outline(region, halo, colour, dash, labels, chosen = false) {
		const context = this.context, {part} = this.state;
		let first = true;
		for (const [from, to] of this.state.heat.boxesOf(region)) {
			if (to < part.r0 || from > part.r1)
				continue;
			// around the cells, and not on them
			const x = this.x(region.begin) - 2, width = Math.max(4, this.x(region.end) - x + 2), y = this.y(from) - 2, height = Math.max(5, this.y(to) - y + 2);
			context.setLineDash([]);
			context.strokeStyle = halo;
			context.lineWidth = chosen ? 5 : 3.5;
			if (!this.thin && height >= 12) // a halo would hide cells this small
				context.strokeRect(x, y, width, height);
			context.setLineDash(dash);
			context.strokeStyle = colour;
			context.lineWidth = chosen ? 3 : this.thin ? 0.75 : 1.5;
			context.strokeRect(x, y, width, height);
			this.hits.push({region, x, y, width, height});
			if (first)
				labels.push({text: region.number, x, y: y - 13 >= this.box.top ? y - 13 : y, chosen});
			first = false;
		}
	}

	drawBrush() {
		const {brush} = this.state, context = this.context, colours = theme();
		if (brush) {
			const x = this.x(brush.t0), y = this.y(brush.r0), width = this.x(brush.t1) - x, height = this.y(brush.r1) - y;
			context.fillStyle = colours.chosen + "33";
			context.fillRect(x, y, width, height);
			context.setLineDash([6, 4]);
			context.lineWidth = 2;
			context.strokeStyle = colours.chosen;
			context.strokeRect(x, y, width, height);
			context.setLineDash([]);
		}
	}

	// Through the margins as well, whose bars belong to the cell.
	drawCursor() {
		const {cursor} = this.state, context = this.context, colours = theme(), box = this.box;
		if (cursor) {
			const x = this.x(cursor.time), y = this.y(cursor.row + 0.5);
			if (x < box.left || x > box.left + box.width || y < box.top || y > box.top + box.height)
				return;
			context.lineWidth = 1;
			context.strokeStyle = colours.chosen;
			line(context, x, 20, x, box.top + box.height);
			line(context, box.left, y, box.full - 4, y);
		}
	}

	regionAt(x, y) {
		const found = this.hits.filter(hit => x >= hit.x - 3 && x <= hit.x + hit.width + 3 && y >= hit.y - 3 && y <= hit.y + hit.height + 3);
		found.sort((a, b) => a.width * a.height - b.width * b.height);
		return found.length ? found[0].region : null;
	}
}

function line(context, x0, y0, x1, y1) {
	context.beginPath();
	context.moveTo(x0, y0);
	context.lineTo(x1, y1);
	context.stroke();
}

// Cuts a text to a width, and leaves its end: there the hosts of a cluster differ.
function fit(context, text, width) {
	if (context.measureText(text).width <= width)
		return text;
	while (text && context.measureText("\u2026" + text).width > width)
		text = text.slice(1);
	return "\u2026" + text;
}

// The name of a host, without a domain that all hosts have in common.
function shortHost(host) {
	const domain = host.includes(".") ? host.slice(host.indexOf(".")) : "";
	return clean(domain && page.hosts.every(other => other.endsWith(domain)) ? host.slice(0, -domain.length) : host);
}

function rowName(row, long) {
	if (row.thread >= 0)
		return (row.rank >= 0 ? row.rank + " " : "") + "thread " + row.thread;
	if (row.rank < 0)
		return "pid " + row.pid;
	return (long ? "rank " : "") + row.rank;
}
