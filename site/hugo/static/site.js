// Long tables get a filter, and the page of conformance its search. Without this script
// the pages are complete, and the browser's own search finds things.
"use strict";

const longTable = 15; // rows
const most = 200; // rows that a search shows

// matches reports whether a text holds every word of a query, in any case.
const matches = (text, query) => {
  text = text.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
};

const element = (name, properties, ...children) => {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
};

function addFilter(box) {
  const rows = [...box.querySelectorAll("tbody tr")];
  if (rows.length < longTable) return;
  const input = element("input", { type: "search", autocomplete: "off" });
  const found = element("output", {});
  const texts = rows.map((row) => row.textContent);
  input.addEventListener("input", () => {
    let n = 0;
    rows.forEach((row, i) => {
      row.hidden = !matches(texts[i], input.value);
      if (!row.hidden) n++;
    });
    found.textContent = input.value.trim() ? `${n} of ${rows.length} rows` : "";
  });
  box.before(element("label", { className: "filter" }, "Filter the table", input), found);
}

function addSearch(form) {
  const input = form.querySelector("input");
  const found = form.querySelector("output");
  const box = form.querySelector(".table");
  const body = form.querySelector("tbody");
  const link = ([id, page]) => element("a", { href: `conformance/${page}#${id}`, textContent: id });
  const show = () => {
    const query = input.value.trim();
    const hits = query ? conformanceRows.filter((row) => matches(row.join(" "), query)) : [];
    body.replaceChildren(...hits.slice(0, most).map((row) => {
      const [, , section, level, text, tests] = row;
      const cells = [link(row), section, level, text, tests || "excluded or none"];
      return element("tr", {}, ...cells.map((c) => element("td", {}, c)));
    }));
    box.hidden = hits.length === 0;
    found.textContent = !query ? "" : `${hits.length} of ${conformanceRows.length} requirements` + (hits.length > most ? `; the first ${most} are shown` : "");
    const address = new URL(location);
    if (query) address.searchParams.set("q", query);
    else address.searchParams.delete("q");
    history.replaceState(null, "", address);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", show);
  form.hidden = false;
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  if (input.value) show();
}

// On a phone the contents of a page are closed at first.
if (matchMedia("(max-width: 64rem)").matches) {
  document.querySelectorAll(".contents details").forEach((d) => { d.open = false; });
}
document.querySelectorAll("#search").forEach(addSearch);
document.querySelectorAll("main > .table").forEach(addFilter);
// What scrolls can be reached by the keyboard.
document.querySelectorAll("pre").forEach((pre) => {
  if (pre.scrollWidth > pre.clientWidth) pre.tabIndex = 0;
});
// A link to a row or to an example opens what it is in.
const open = () => document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details")?.setAttribute("open", "");
addEventListener("hashchange", open);
open();
