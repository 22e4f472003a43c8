"use strict";
(function () {
  function all(selector, root) { return Array.prototype.slice.call((root || document).querySelectorAll(selector)); }

  // Lengths are set here: the page's policy allows no style in its elements.
  all("[data-p]").forEach(function (one) { one.style.setProperty("--p", one.dataset.p + "%"); });
  all("[data-x]").forEach(function (one) { one.style.setProperty("--x", one.dataset.x + "%"); });

  // Tables: a click on a head, or Enter and Space on it, sorts upwards, then downwards, then as it was.
  function key(row, column) {
    var text = row.cells[column].textContent.trim(), value = parseFloat(text.replace(/,/g, ""));
    return /^[-+]?[\d.,]+(?![\d.]*[x×])/.test(text) && !isNaN(value) ? value : text === "inf" ? Infinity : text;
  }
  function compare(x, y) {
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return typeof x === "number" ? x - y || 0 : x.localeCompare(y, "en", { numeric: true });
  }
  all("table.sort").forEach(function (table) {
    var heads = all("thead th", table), body = table.tBodies[0], rows = all("tr", body);
    heads.forEach(function (head, column) {
      head.firstElementChild.addEventListener("click", function () {
        var figures = rows.some(function (row) { return typeof key(row, column) === "number"; });
        var turns = figures ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
        var now = turns[(turns.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
        heads.forEach(function (other) { other.setAttribute("aria-sort", other === head ? now : "none"); });
        var sorted = rows.slice();
        if (now !== "none") sorted.sort(function (a, b) {
          var x = key(a, column), y = key(b, column);
          if (x === "" || y === "") return (x === "") - (y === "");  // what was not measured comes last
          return now === "ascending" ? compare(x, y) : compare(y, x);
        });
        sorted.forEach(function (row) { body.appendChild(row); });
      });
    });
  });

  // Search: rows that hold every word.
  function search(input) {
    var table = document.getElementById(input.dataset.table), rows = all("tbody tr", table), shown = 0;
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach(function (row) {
      var text = all("th,td:not(.unread)", row).map(function (cell) { return cell.textContent; }).join(" ").toLowerCase();
      row.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
      shown += row.hidden ? 0 : 1;
    });
    var status = input.closest("section").querySelector(".found");
    status.textContent = words.length ? shown + " of " + rows.length : "";
  }
  all("input[data-table]").forEach(function (input) {
    input.addEventListener("input", function () { search(input); });
    input.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { input.value = ""; search(input); }
    });
  });
  all("input[data-all]").forEach(function (box) {
    function show() { document.getElementById(box.dataset.all).classList.toggle("everything", box.checked); }
    box.addEventListener("change", show);
    show();
  });

  // The chosen layer: the same in the table, the drawing, the memory map and the rankings.
  var detail = document.getElementById("detail");
  function line(list, name, value) {
    list.appendChild(document.createElement("dt")).textContent = name;
    list.appendChild(document.createElement("dd")).textContent = value;
  }
  function leave() {
    all(".chosen").forEach(function (one) { one.classList.remove("chosen"); });
    if (detail) detail.hidden = true;
  }
  function choose(number) {
    var row = document.getElementById("layer-" + number);
    if (!row) return;
    leave();
    all('[data-layer="' + number + '"]').forEach(function (one) { one.classList.add("chosen"); });
    if (!detail || !row.cells) return;
    detail.textContent = "";
    detail.appendChild(document.createElement("h2")).textContent = row.cells[0].textContent;
    var close = detail.appendChild(document.createElement("button")), ways = detail.appendChild(document.createElement("nav"));
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", "close");
    close.addEventListener("click", leave);
    [["layer-", "table"], ["node-", "network"], ["buffer-", "memory"]].forEach(function (way) {
      if (!document.getElementById(way[0] + number)) return;
      var link = ways.appendChild(document.createElement("a"));
      link.href = "#" + way[0] + number;
      link.textContent = way[1];
    });
    var list = detail.appendChild(document.createElement("dl"));
    all("thead th", row.closest("table")).forEach(function (head, column) {
      if (column && row.cells[column].textContent) line(list, head.textContent, row.cells[column].textContent);
    });
    detail.hidden = false;
  }
  function follow() {
    var place = /^#(layer|node|buffer)-(\d+)$/.exec(location.hash);
    if (!place) return;
    var target = document.getElementById(place[1] + "-" + place[2]);
    if (!target) return;
    if (target.hidden) all("input[data-table]").forEach(function (input) { input.value = ""; search(input); });
    choose(place[2]);
    target.scrollIntoView({ block: "center", inline: "center" });
    var focus = place[1] === "layer" ? target.querySelector("a") || target : target;
    focus.focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", follow);
  // The same place again, from where the page was scrolled to.
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[href^='#']");
    var to = link && (link.getAttribute("href") || "");
    if (to && to === location.hash) setTimeout(follow, 0);
  });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") leave(); });
  follow();

  // The drawing: its own size, smaller, larger, or as wide as there is room.
  all(".zoom button").forEach(function (button) {
    var box = document.querySelector(".drawing"), svg = box.querySelector("svg"), width = parseFloat(svg.getAttribute("width"));
    button.addEventListener("click", function () {
      var now = svg.getBoundingClientRect().width, step = Number(button.dataset.zoom);
      var room = box.clientWidth - 32;
      svg.style.width = (step ? Math.min(Math.max(now * (step > 0 ? 1.25 : 0.8), 120), 6 * width) : room) + "px";
    });
  });
})();
