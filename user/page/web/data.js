// SPDX-License-Identifier: GPL-2.0-or-later
// The data of the page, and how numbers and users' texts are shown. No text of a user becomes markup.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
// null, false and empty lists are left out of regions
page.regions = page.regions.map(region => ({uid: null, speed: null, severity: null, culprit: null, cause: null, verdict: null, advice: null, evidence: null,
	alarm: false, sure: false, effect: false, ended: false, waiting: false, work_unknown: false, sites: [], factors: [], interferers: [], exemplars: [], ...region}));
for (const map of page.maps)
	map.rows = map.rows || page.maps[map.rows_of].rows;
const startNs = BigInt(page.start || "0");

function byId(id) {
	return document.getElementById(id);
}

// Shows what would be invisible or change the order of other texts: control and bidirectional characters.
function clean(text) {
	return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		character => "\u2039" + character.charCodeAt(0).toString(16).padStart(4, "0") + "\u203a");
}

// Makes an element with a class and contents: texts and elements.
function make(name, className, ...contents) {
	const element = document.createElement(name);
	if (className)
		element.className = className;
	for (const content of contents)
		element.append(content instanceof Node ? content : clean(content));
	return element;
}

// A text of a user, which does not mix with the text around it.
function user(text) {
	return make("span", "text", text);
}

// In the same digits as all texts of vapro (base/duration.c).
function duration(seconds) {
	if (seconds === null || seconds === undefined || Number.isNaN(seconds))
		return "";
	const whole = Math.round(seconds);
	if (seconds < 0.0000995)
		return Number((seconds * 1e6).toPrecision(3)) + " us";
	if (seconds < 0.0995)
		return Number((seconds * 1000).toPrecision(3)) + " ms";
	if (seconds < 9.995)
		return seconds.toFixed(2) + " s";
	if (seconds < 119.95)
		return seconds.toFixed(1) + " s";
	if (seconds < 7200)
		return Math.floor(whole / 60) + " min" + (whole % 60 ? " " + whole % 60 + " s" : "");
	return Math.floor(whole / 3600) + " h " + Math.floor(whole / 60 % 60) + " min";
}

// A whole number in groups of three digits.
function grouped(count) {
	return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function percent(share) {
	if (share === null || share === undefined)
		return "";
	if (share === 0)
		return "0 %";
	const value = 100 * share;
	return value.toFixed(value >= 10 ? 1 : value >= 0.01 ? 2 : 4) + " %";
}

// An offset in seconds as a time of the records: RFC 3339, UTC, nanoseconds.
function utc(offset) {
	const ns = startNs + BigInt(Math.round(offset * 1e9));
	const second = ns / 1000000000n, rest = ns % 1000000000n;
	return new Date(Number(second) * 1000).toISOString().slice(0, 19) + "." + rest.toString().padStart(9, "0") + "Z";
}

function clock(offset) {
	return utc(offset).slice(11, 21);
}

// "0-3,7" as [[0, 3], [7, 7]]; what is not known ("?") is left out.
function ranges(text) {
	const found = [];
	for (const part of String(text || "").split(",")) {
		const match = /^(\d+)(?:-(\d+))?$/.exec(part);
		if (match)
			found.push([Number(match[1]), Number(match[2] === undefined ? match[1] : match[2])]);
	}
	return found;
}

// Ascending numbers as ranges.
function rangesText(numbers) {
	const parts = [];
	for (let i = 0; i < numbers.length; i++) {
		let k = i;
		while (k + 1 < numbers.length && numbers[k + 1] <= numbers[k] + 1)
			k++;
		parts.push(numbers[k] > numbers[i] ? numbers[i] + "-" + numbers[k] : String(numbers[i]));
		i = k;
	}
	return parts.join(",");
}

// The bytes of an element: base64 of a zlib stream.
async function unpack(id, length) {
	const text = atob(byId(id).textContent);
	const packed = new Uint8Array(text.length);
	for (let i = 0; i < packed.length; i++)
		packed[i] = text.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
	const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
	if (bytes.length !== length)
		throw new Error("the data of a heat map are incomplete");
	return bytes;
}
