(function () {
  "use strict";
  // The report reads without this: it only adds searching and sorting to the table of classes.
  const table = document.querySelector("table.sortable");
  if (!table) return;
  const body = table.tBodies[0], rows = [...body.rows];
  const input = document.querySelector("[data-search]"), found = document.querySelector("[data-found]");
  const plain = (text) => text.toLowerCase().replace(/_/g, " ");
  input.closest("[hidden]").hidden = false;
  input.addEventListener("input", () => {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const name = plain(row.cells[0].textContent);
      row.hidden = !words.every((word) => name.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? shown + " of " + rows.length : "";
  });
  const value = (row, column) => {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent;
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
  [...table.tHead.rows[0].cells].slice(0, 6).forEach((head, column) => {
    // Not a <button>: browsers leave those out where a printed table repeats its head.
    const button = document.createElement("span");
    button.tabIndex = 0;
    button.setAttribute("role", "button");
    button.textContent = head.textContent;
    head.textContent = "";
    head.append(button);
    button.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); button.click(); }
    });
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const known = rows.filter((row) => value(row, column) !== null);
      const unknown = rows.filter((row) => value(row, column) === null);
      known.sort((a, b) => (up ? 1 : -1) * compare(value(a, column), value(b, column)));
      body.append(...known, ...unknown);
    });
  });
})();
