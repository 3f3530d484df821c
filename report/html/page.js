"use strict";
// Everything that is shown stands in the page already: this reads tables out to
// those who point, saves them, and draws the one request that somebody picks.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const make = (name, attributes, parent) => {
    const e = document.createElementNS(SVG, name);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (parent) parent.append(e);
    return e;
  };

  // Pointing.
  const points = new WeakMap(); // of a table: its rows with their places
  const pointsOf = (figure) => {
    const table = figure.querySelector(".data table");
    let all = points.get(table);
    if (!all) {
      all = [...table.tBodies[0].rows].map((row) => {
        const [x, y] = (row.dataset.p || "0 0").split(" ").map(Number);
        return { x, y, group: row.dataset.g || "0", row };
      });
      points.set(table, all);
    }
    return all;
  };
  const words = (figure, row) => {
    const heads = figure.querySelectorAll(".data thead th");
    const parts = [];
    [...row.cells].forEach((cell, i) => {
      if (cell.textContent !== "") parts.push(i === 0 && heads[0].textContent === "run" ? cell.textContent : heads[i].textContent + " " + cell.textContent);
    });
    return parts.join(" · ");
  };
  const nearest = (figure, x, y) => {
    const how = figure.dataset.hover;
    const best = new Map();
    for (const p of pointsOf(figure)) {
      const dx = p.x - x, dy = p.y - y;
      const off = how === "x" ? Math.abs(dx) : how === "y" ? Math.abs(dy) : dx * dx * 4 + dy * dy;
      const key = how === "x" ? p.group : "";
      const old = best.get(key);
      if (!old || off < old.off) best.set(key, { off, p });
    }
    return [...best.values()].map((b) => b.p);
  };
  const plotOf = (figure) => [...figure.querySelectorAll(".plot")].find((s) => s.getClientRects().length > 0);
  const boxOf = (svg) => svg.dataset.box.split(" ").map(Number);

  const clear = (figure) => {
    figure.querySelectorAll(".over").forEach((g) => g.remove());
    figure.querySelector(".tip").hidden = true;
  };
  const show = (figure, x, y) => {
    clear(figure);
    const svg = plotOf(figure), found = nearest(figure, x, y);
    if (!svg || found.length === 0) return;
    const [left, top, width, height] = boxOf(svg);
    const over = make("g", { class: "over" }, svg);
    const first = found.reduce((a, b) => (Math.abs(a.x - x) <= Math.abs(b.x - x) ? a : b));
    const px = left + first.x * width, py = top + first.y * height;
    if (figure.dataset.hover === "y") make("path", { class: "cross", d: `M${left} ${py}h${width}` }, over);
    else make("path", { class: "cross", d: `M${px} ${top}v${height}` }, over);
    if (figure.dataset.hover !== "y") for (const p of found) make("circle", { class: "at", r: 3, cx: left + p.x * width, cy: top + p.y * height }, over);
    const tip = figure.querySelector(".tip");
    tip.textContent = found.map((p) => words(figure, p.row)).join("\n");
    tip.hidden = false;
    const stage = tip.parentElement.getBoundingClientRect(), shown = svg.getBoundingClientRect();
    const scale = shown.width / svg.viewBox.baseVal.width;
    const at = shown.left - stage.left + (figure.dataset.hover === "y" ? left + width * x : px) * scale;
    const room = stage.width - tip.offsetWidth;
    tip.style.left = Math.max(0, Math.min(room, at + 14 + tip.offsetWidth > stage.width ? at - 14 - tip.offsetWidth : at + 14)) + "px";
    tip.style.top = Math.max(0, (figure.dataset.hover === "y" ? py : top) * scale + 8) + "px";
    return first;
  };
  const place = (figure, event) => {
    const svg = plotOf(figure);
    if (!svg) return null;
    const r = svg.getBoundingClientRect(), [left, top, width, height] = boxOf(svg);
    const scale = r.width / svg.viewBox.baseVal.width;
    return [((event.clientX - r.left) / scale - left) / width, ((event.clientY - r.top) / scale - top) / height];
  };
  document.querySelectorAll(".chart").forEach((figure) => {
    const stage = figure.querySelector(".stage");
    if (!figure.dataset.hover) return;
    stage.tabIndex = 0;
    stage.setAttribute("role", "group");
    stage.setAttribute("aria-label", figure.querySelector("h3").textContent + ": arrow keys read its values");
    let last = null;
    stage.addEventListener("pointermove", (e) => {
      const at = place(figure, e);
      if (at) last = show(figure, at[0], at[1]);
    });
    stage.addEventListener("pointerleave", () => clear(figure));
    stage.addEventListener("blur", () => { clear(figure); last = null; });
    stage.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (e.key === "Escape") clear(figure);
      if (!step) return;
      e.preventDefault();
      const along = figure.dataset.hover === "y" ? "y" : "x";
      const order = pointsOf(figure).slice().sort((a, b) => a[along] - b[along]);
      const i = last ? order.indexOf(last) : -1;
      last = order[Math.min(order.length - 1, Math.max(0, i < 0 ? (step > 0 ? 0 : order.length - 1) : i + step))];
      if (last) { const kept = last; show(figure, kept.x, kept.y); last = kept; }
    });
    stage.addEventListener("click", (e) => {
      const run = /^raster-(\d+)$/.exec(figure.id), at = place(figure, e);
      if (!run || !at) return;
      const one = nearest(figure, at[0], at[1])[0];
      if (one && pick) pick(Number(run[1]), Number(one.row.cells[0].textContent), true);
    });
  });

  // Saving. A field that a spreadsheet would take for a formula gets a quote before it.
  const field = (s) => {
    if (/^[=+@\t\r]|^-(?![0-9.])/.test(s)) s = "'" + s;
    return /[",\n\r]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s;
  };
  const csvOf = (table) => [...table.rows].map((r) => [...r.cells].map((c) => field(c.textContent)).join(",")).join("\r\n") + "\r\n";
  document.querySelectorAll(".csv").forEach((button) => {
    button.addEventListener("click", () => {
      const table = button.closest("details").querySelector("table");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
      link.download = button.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  });

  // One request.
  let pick = null;
  const store = document.getElementById("requests");
  if (store) {
    const data = JSON.parse(store.textContent);
    const figure = document.getElementById("request");
    const el = (id) => document.getElementById(id);
    const runBox = el("pick-run"), kind = el("pick-kind"), index = el("pick-index"), gapBox = el("pick-gap"), said = el("pick-said"), list = el("pick-list");
    const byIndex = data.runs.map((r) => new Map(r.streams.map((s) => [s.i, s])));
    const time = (ms) => (ms === 0 ? "0 s" : ms >= 1000 ? +(ms / 1000).toPrecision(3) + " s" : +ms.toPrecision(3) + " ms");

    // playback is what each token was due at and how late it came, as metrics has it:
    // ms since the request was due.
    const playback = (s, gap) => {
      const tokens = [];
      let at = 0, due = s.d === undefined ? null : s.d / 10;
      s.g.forEach((g, i) => {
        at += g;
        for (let k = s.k ? s.k[i] : 1; k > 0; k--) {
          const now = at / 10;
          if (due === null) due = now;
          tokens.push({ at: now, due, late: Math.max(0, now - due) });
          due = Math.max(now, due) + gap;
        }
      });
      return tokens;
    };
    const ceil = (v) => {
      if (!(v > 0)) return 1;
      const unit = 10 ** Math.floor(Math.log10(v / 10)), step = [1, 2, 5, 10].find((d) => d * unit >= v / 10 - 1e-12) * unit;
      return Math.ceil(v / step - 1e-9) * step;
    };
    const ticks = (max, wanted, least) => {
      const unit = 10 ** Math.floor(Math.log10(max / wanted)), step = [1, 2, 5, 10].find((d) => d * unit >= (max / wanted) * (1 - 1e-9)) * unit, by = Math.max(step, least);
      const all = [];
      for (let k = 0; k * by <= max * (1 + 1e-9); k++) all.push(k * by);
      return all;
    };
    const draw = (svg, tokens, name) => {
      const { width: w, height: h } = svg.viewBox.baseVal;
      const maxX = ceil(tokens.length ? tokens[tokens.length - 1].at : 1), maxY = ceil(tokens.length);
      const left = 14 + 6.6 * String(maxY).length, top = 22, right = w - 12, bottom = h - 38;
      const X = (v) => left + (Math.min(v, maxX) / maxX) * (right - left), Y = (v) => bottom - (v / maxY) * (bottom - top);
      svg.replaceChildren();
      svg.setAttribute("aria-label", name);
      svg.dataset.box = [left, top, right - left, bottom - top].join(" ");
      const text = (cls, anchor, x, y, s) => { make("text", { class: cls, "text-anchor": anchor, x, y }, svg).textContent = s; };
      for (const v of ticks(maxY, h / 40, 1)) { make("path", { class: "grid", d: `M${left} ${Y(v)}H${right}` }, svg); text("tick", "end", left - 6, Y(v) + 4, v); }
      for (const v of ticks(maxX, w / 80, 0)) { make("path", { class: "grid", d: `M${X(v)} ${top}V${bottom}` }, svg); text("tick", X(v) > right - 20 ? "end" : "middle", X(v), bottom + 16, time(v)); }
      make("path", { class: "axis", d: `M${left} ${bottom}H${right}` }, svg);
      text("label", "start", 2, 12, "tokens");
      text("label", "end", right, h - 4, "since the request was due");
      let arrived = `M${X(0)} ${Y(0)}`, due = "", within = true; // deadlines beyond the last token are not drawn
      tokens.forEach((t, i) => {
        if (t.late > 0) make("rect", { class: "shade stall", x: X(t.due), y: top, width: X(t.at) - X(t.due), height: bottom - top }, svg);
        arrived += `H${X(t.at).toFixed(1)}V${Y(i + 1).toFixed(1)}`;
        within = within && (i === 0 || t.due <= maxX);
        if (within) due += `${i ? "L" : "M"}${X(t.due).toFixed(1)} ${Y(i + 1).toFixed(1)}`;
      });
      if (due) make("path", { class: "line due", d: due }, svg);
      make("path", { class: "line thick s0", d: arrived }, svg);
      return { maxX, maxY };
    };
    const table = (tokens, max) => {
      const body = document.createElement("tbody");
      const number = (v) => String(+v.toFixed(3));
      tokens.forEach((t, i) => {
        const row = body.insertRow();
        row.dataset.p = (t.at / max.maxX).toFixed(4) + " " + (1 - (i + 1) / max.maxY).toFixed(4);
        for (const v of [i + 1, number(t.at), number(t.due), number(t.late)]) row.insertCell().textContent = v;
      });
      const t = figure.querySelector(".data table");
      points.delete(t);
      t.tBodies[0].replaceWith(body);
      figure.querySelector(".data summary").textContent = "The data: " + tokens.length + (tokens.length === 1 ? " row" : " rows");
    };
    const render = () => {
      const run = Number(runBox.value), r = data.runs[run];
      const wanted = index.value.trim(), s = /^\d+$/.test(wanted) ? byIndex[run].get(Number(wanted)) : undefined;
      clear(figure);
      if (!s) {
        said.textContent = wanted === "" ? "No such request: this run has none." : "Request " + wanted + " of " + r.name + " is not on this page: of its measured requests it holds the arrivals of " + r.streams.length + ". fermata report --html with --request " + wanted + " adds it.";
        return;
      }
      const gap = Number(gapBox.value) / 1e6, tokens = playback(s, gap);
      const late = tokens.filter((t) => t.late > 0);
      let silence = 0;
      s.g.forEach((g, i) => { if (i > 0) silence = Math.max(silence, g / 10); });
      const longest = late.reduce((m, t) => Math.max(m, t.late), 0);
      said.textContent = "Request " + s.i + " of " + r.name + (s.o === "ok" ? "" : " (" + s.o + ")") + ": " + tokens.length + " tokens" + (s.p ? " after a prompt of " + s.p : "") +
        (tokens.length ? ", the first after " + time(tokens[0].at) + "; longest silence " + time(silence) + "; " + (late.length ? late.length + (late.length === 1 ? " token late, by " : " tokens late, at most by ") + time(longest) : "no token late") : "") + ".";
      let max = null;
      figure.querySelectorAll(".plot").forEach((svg) => { max = draw(svg, tokens, said.textContent); });
      table(tokens, max);
    };
    const fill = () => {
      const r = data.runs[Number(runBox.value)];
      list.replaceChildren(...r.streams.slice(0, 500).map((s) => { const o = document.createElement("option"); o.value = s.i; return o; }));
      if (kind.value !== "any") index.value = r[kind.value] === undefined ? "" : r[kind.value];
      render();
    };
    pick = (run, request, go) => {
      runBox.value = String(run);
      kind.value = "any";
      fill();
      index.value = String(request);
      render();
      if (go) { figure.scrollIntoView({ block: "nearest" }); index.focus({ preventScroll: true }); }
    };
    runBox.addEventListener("change", fill);
    kind.addEventListener("change", () => { fill(); if (kind.value === "any") index.focus(); });
    gapBox.addEventListener("change", render);
    index.addEventListener("input", () => { kind.value = "any"; render(); });
    el("picker").addEventListener("submit", (e) => e.preventDefault());
    document.querySelectorAll("a.pick").forEach((a) => a.addEventListener("click", (e) => { e.preventDefault(); pick(Number(a.dataset.run), Number(a.dataset.request), true); }));
    runBox.value = String(data.first);
    fill();
  }
  // On paper nothing can be opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open], .long)")];
    closed.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => { closed.forEach((d) => { d.open = false; }); closed = []; });
  document.documentElement.dataset.ready = "yes";
})();
