// SPDX-License-Identifier: GPL-2.0-or-later
// What is shown as a command of vapro, and as the address of the page.
"use strict";

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
	if (page.source.kind === "a running vaprod")
		return "vapro diagnose --socket " + quote(page.source.files[0].replace(/\.status$/, "")) + " " + region;
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
	if (!words.size) // none, or that of a section
		return false;
	applying = true;
	sortBy = ["host", "rank", "loss"].includes(text("sort")) ? text("sort") : "host";
	withThreads = text("threads") === "1";
	setMean(text("mean") === "1");
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
