// Narrows the table of systems down. The choice stands in the address, so that it can be sent to others.
"use strict";
(() => {
  const table = document.querySelector("table[data-facets]");
  if (!table) return;
  const form = document.querySelector("form.facets");
  const rows = [...table.tBodies[0].rows];
  const selects = [...form.querySelectorAll("select")];
  const words = form.querySelector("[data-words]");
  const told = form.querySelector("output");

  const read = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const select of selects) select.value = asked.get(select.dataset.facet) ?? "";
    words.value = asked.get("words") ?? "";
  };
  const show = () => {
    const asked = new URLSearchParams();
    for (const select of selects) if (select.value) asked.set(select.dataset.facet, select.value);
    if (words.value.trim()) asked.set("words", words.value.trim());
    const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits = selects.every(({ value, dataset }) =>
        !value || row.getAttribute(`data-${dataset.facet.replaceAll("_", "-")}`).split(" ").includes(value));
      const text = row.textContent.toLowerCase();
      row.hidden = !(fits && parts.every(part => text.includes(part)));
      count += !row.hidden;
    }
    told.textContent = `${count} of ${rows.length} systems`;
    history.replaceState(null, "", asked.size ? `#${asked}` : location.pathname);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  addEventListener("hashchange", () => { read(); show(); });
  form.hidden = false;
  read();
  show();
})();
