// The search of the site: the full text of the guides, and after them the names of symbols. It has no dependencies.
"use strict";

function wordsOf(query) {
  return query.toLowerCase().split(/\s+/).filter((word) => word !== "");
}

// Returns the number of words of a text that begin with a word of the query, in the singular or plural.
function countOf(word, text) {
  const pattern = new RegExp("(?<![a-z0-9])" + word.replace(/[^a-z0-9]/g, "\\$&").replace(/y$/, "(y|ies)"), "g");
  return (text.toLowerCase().match(pattern) ?? []).length;
}

// Returns the pages that contain all words of the query, the best first. Each has the section with most of the words.
// `sections` are the objects of guides.json: page, title, section, path, text.
function findGuides(query, sections) {
  const words = wordsOf(query);
  if (words.length === 0) return [];
  const pages = new Map();
  for (const section of sections) {
    const page = pages.get(section.page)
      ?? { title: section.page, found: new Set(), score: 0, best: null, bestScore: -1 };
    pages.set(section.page, page);
    let score = section.text.toLowerCase().includes(query.trim().toLowerCase()) ? 5 : 0;
    for (const word of words) {
      const counts = [section.text, section.section, section.page].map((text) => countOf(word, text));
      if (counts.some((count) => count > 0)) page.found.add(word);
      score += Math.min(counts[0], 5) + (counts[1] > 0 ? 10 : 0) + (counts[2] > 0 ? 20 : 0);
    }
    page.score += score;
    if (score > page.bestScore) Object.assign(page, { best: section, bestScore: score });
  }
  return [...pages.values()]
    .filter((page) => words.every((word) => page.found.has(word)))
    .sort((one, other) => other.bestScore - one.bestScore || other.score - one.score);
}

// Returns the symbols of DocC's index that contain all words of the query, shorter names first.
function findSymbols(query, index) {
  const words = wordsOf(query);
  const found = [];
  const visit = (node) => {
    for (const child of node.children ?? []) visit(child);
    if (!node.path || node.type === "article" || words.length === 0) return;
    const name = `${node.path} ${node.title}`.toLowerCase();
    if (words.every((word) => name.includes(word))) found.push(node);
  };
  for (const node of index.interfaceLanguages.swift) visit(node);
  const isTitle = (node) => words.every((word) => node.title.toLowerCase().includes(word));
  const rank = (node) => (isTitle(node) ? 0 : 1000) + node.title.length;
  return found.sort((one, other) => rank(one) - rank(other));
}

// Returns the part of a text around the first word of the query that it contains.
function excerpt(query, text) {
  const places = wordsOf(query).map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, text.length) - 60);
  return (start > 0 ? "…" : "") + text.slice(start, start + 200) + (start + 200 < text.length ? "…" : "");
}

function addResult(document, list, path, title, text) {
  const item = document.createElement("li");
  const link = item.appendChild(document.createElement("a"));
  link.href = "../" + path.replace(/^\//, "");
  link.textContent = title;
  if (text) item.appendChild(document.createElement("p")).textContent = text;
  list.appendChild(item);
}

async function start(document) {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  document.querySelector("input").value = query;
  const [sections, index] = await Promise.all(
    ["guides.json", "../index/index.json"].map(async (url) => (await fetch(url)).json()));
  const guides = document.getElementById("guides");
  for (const page of findGuides(query, sections).slice(0, 20)) {
    const { best } = page;
    const title = best.section === "" ? page.title : `${page.title}: ${best.section}`;
    addResult(document, guides, best.path, title, excerpt(query, best.text));
  }
  const symbols = document.getElementById("symbols");
  for (const node of findSymbols(query, index).slice(0, 50)) {
    const parents = node.path.split("/").slice(2, -1).join(" › ");
    addResult(document, symbols, node.path, node.title, parents);
  }
  for (const list of [guides, symbols]) if (list.childElementCount === 0) list.textContent = "Nothing found.";
}

if (typeof module !== "undefined") module.exports = { findGuides, findSymbols };
