"use strict"; document.getElementById("main").textContent = JSON.parse(document.getElementById("data").textContent).verdict;
