// SPDX-License-Identifier: GPL-2.0-or-later
// The page begins: what is fixed is written, and the map of the worst region is drawn.
"use strict";

addEventListener("resize", redraw);
// Draws in other colours at once: a printer does not wait for the next frame.
function recolour(forPrint) {
	printing = forPrint;
	if (heat)
		fillLegend();
	drawNow();
}

dark.addEventListener("change", () => recolour(printing));
addEventListener("beforeprint", () => recolour(true));
addEventListener("afterprint", () => recolour(false));
addEventListener("hashchange", readAddress);

async function begin() {
	fillHead();
	fillCauses();
	fillRegions();
	fillStates();
	fillVariability();
	fillProfile(false);
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
