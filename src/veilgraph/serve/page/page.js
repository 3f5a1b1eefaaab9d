"use strict";
// The key stays in this tab (sessionStorage); names of people go into bodies, never into addresses.
const $ = (id) => document.getElementById(id);
let curator = false;

async function ask(path, body) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem("key")}` };
  const request = body === undefined ? { headers } : {
    method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const response = await fetch(path, request);
  if (!response.ok) {
    const found = await response.json().catch(() => ({ detail: response.statusText }));
    const error = new Error(typeof found.detail === "string" ? found.detail : "This cannot be asked.");
    error.found = found;
    throw error;
  }
  return response;
}

function complain(error) {
  $("problem").textContent = error ? error.message : "";
  $("problem").hidden = !error;
}

function fill(list, items, also) {
  $(list).replaceChildren(...items.map(({ item, score }) => {
    const line = document.createElement("li");
    line.textContent = item;
    if (score !== undefined) {
      const value = document.createElement("span");
      value.textContent = ` ${score.toFixed(3)}`;
      line.append(value);
    }
    if (also && !also.has(item)) line.className = "changed";
    return line;
  }));
}

function showBudget({ spent, budget, remaining, unit }) {
  $("spent").style.width = budget === null ? "0" : `${Math.min(100, 100 * spent / budget)}%`;
  $("budget").textContent = budget === null
    ? `${spent} ${unit} spent, without limit`
    : `${spent} of ${budget} ${unit} spent, ${remaining} left`;
}

async function enter() {
  const me = await (await ask("/v1/me")).json();
  curator = me.role === "curator";
  $("who").textContent = `${me.name} (${me.role})`;
  const { lists } = await (await ask("/v1/certificate")).json();
  $("promise").textContent = `Sanitiser: ${lists.sanitiser}. Promise: ${lists.promise}.`;
  $("user-form").hidden = false;
  $("original-box").hidden = !curator;
  if (curator) {
    await suggest();
    const picture = await ask("/v1/frontier").catch(() => null);
    if (picture) {
      $("frontier").src = URL.createObjectURL(await picture.blob());
      $("frontier-box").hidden = false;
    }
  }
}

async function suggest() {
  if (!curator) return;
  const { users } = await (await ask(`/v1/users?begins=${encodeURIComponent($("user").value)}`)).json();
  $("users").replaceChildren(...users.map((name) => {
    const option = document.createElement("option");
    option.value = name;
    return option;
  }));
}

async function show() {
  const user = $("user").value;
  const found = await (await ask("/v1/recommend", { user, draw: Number($("draw").value) })).json();
  let before = null;
  if (curator) {
    const { items } = await (await ask("/v1/original", { user })).json();
    before = new Set(items.map(({ item }) => item));
    fill("original", items, new Set(found.items.map(({ item }) => item)));
  }
  fill("sanitised", found.items, before);
  showBudget(found);
  $("answer").hidden = false;
}

const tried = (action) => async (event) => {
  event?.preventDefault();
  try {
    await action();
    complain(null);
  } catch (error) {
    if (error.found?.unit) { showBudget(error.found); }
    complain(error);
  }
};

$("key-form").addEventListener("submit", tried(async () => {
  sessionStorage.setItem("key", $("key").value.trim());
  await enter();
}));
$("user-form").addEventListener("submit", tried(show));
$("user").addEventListener("input", tried(suggest));
if (sessionStorage.getItem("key")) tried(enter)();
