// What the page does beyond reading. Without it every view can still be read, and every form still works.

import { all, detail, find, isCovered, isDirty, loaded, refresh, rows, select, selected, target } from "./place.js";

const root = document.documentElement;
const { root: base, view, csrf } = document.body.dataset;

// Theme: the system's, until a person chooses.
const chosen = localStorage.getItem("kept-theme");
if (chosen) root.dataset.theme = chosen;
root.classList.add("script");

function switchTheme() {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("kept-theme", root.dataset.theme);
}

// Lines about what was done. An undo belongs to the change that its line names.
function toast({ text, is_error: isError = false, undo = "", is_redo: isRedo = false }) {
  const box = find("#toast").content.firstElementChild.cloneNode(true);
  box.className = isError ? "toast error" : "toast";
  find("p", box).textContent = text; // never markup
  if (isError) {
    find("use", box).setAttribute("href", "#i-error");
  }
  if (undo) {
    find("[name=event]", box).value = undo;
    find("[data-undo] span", box).textContent = isRedo ? "Redo" : "Undo";
    sessionStorage.setItem("kept-undo", undo);
  } else find("form", box).remove();
  find(".toasts").replaceChildren(box);
  if (!isError) leave(box);
}
const say = (text, isError = true) => toast({ text, is_error: isError });

function leave(box) {
  const go = () => (box.matches(":hover, :focus-within") ? setTimeout(go, 2000) : box.remove());
  setTimeout(go, 8000);
}
all(".toast:not(.error)").forEach(leave);

// Every change is a form. Here it is sent without leaving the place; what was typed stays until it is saved.
async function send(address, body) {
  let answer;
  try {
    answer = await fetch(address, { method: "POST", body, headers: { Accept: "application/json" } });
  } catch {
    offline(true);
    say("The server does not answer. Nothing was changed, and your text is still here.");
    return null;
  }
  const outcome = (answer.headers.get("content-type") ?? "").includes("json") ? await answer.json() : null;
  if (answer.status === 401) say("This browser is not signed in any more. Sign in in another tab, then try again.");
  else if (!outcome || !("text" in outcome)) say(outcome?.detail ?? `The server refused this (${answer.status}). Nothing was changed.`);
  else {
    toast(outcome);
    return outcome.is_error ? null : outcome;
  }
  return null;
}

async function act(verb, refs, fields = {}) {
  const body = new URLSearchParams({ csrf, verb, back: location.pathname + location.search, ...fields });
  for (const ref of refs) body.append("ref", ref);
  await busy(async () => {
    if (!(await send(`${base}/do`, body))) return;
    unmark();
    await refresh();
  });
}

// One change after the other: a key that is pressed while a change is under way would meet a list that is about to move.
async function busy(work) {
  if (document.body.ariaBusy) return;
  document.body.ariaBusy = "true";
  try {
    await work();
  } finally {
    document.body.ariaBusy = null;
  }
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || form.closest("dialog")) return;
  event.preventDefault();
  await busy(() => submit(form, event.submitter));
});

async function submit(form, button) {
  const outcome = await send(form.action, new URLSearchParams(new FormData(form, button)));
  if (!outcome) return;
  if (form.closest(".toast")) sessionStorage.removeItem("kept-undo"), outcome.undo && sessionStorage.setItem("kept-undo", outcome.undo);
  for (const field of form.elements) if ("defaultValue" in field) field.defaultValue = field.value;
  const verb = form.elements.verb?.value;
  if (verb === "remember") location.href = `${base}/memories?ref=${encodeURIComponent(outcome.ref)}`;
  else if (verb === "erase") location.href = `${base}/memories`;
  else if (verb === "pause" || verb === "resume") location.reload();
  else {
    const edit = form.closest("details.edit");
    if (edit) edit.open = false;
    await refresh();
    selected()?.focus({ preventScroll: true });
  }
}

addEventListener("beforeunload", (event) => isDirty() && event.preventDefault());

// Several at once
const marked = () => all("[data-row].marked");
function mark(row) {
  row.classList.toggle("marked");
  const number = marked().length;
  const bar = find("[data-batch]");
  if (!bar) return;
  bar.hidden = !number;
  find("[data-batch-number]", bar).textContent = `${number} selected`;
}
function unmark() {
  for (const row of marked()) row.classList.remove("marked");
  if (find("[data-batch]")) find("[data-batch]").hidden = true;
}
const batch = (verb, chosen = marked()) => act(verb, chosen.map((row) => (verb === "decide" ? row.dataset.decision : row.dataset.ref)));

const ACTIONS = {
  theme: switchTheme,
  help: () => find("#help").showModal(),
  keys: (at) => localStorage.setItem("kept-keys", at.checked ? "on" : "off"),
  cancel: (at) => {
    at.form.reset();
    at.closest("details").open = false;
    selected()?.focus();
  },
  copy: (at) => {
    navigator.clipboard?.writeText(find(at.dataset.copy ?? "code", at.dataset.copy ? document : at.closest("li")).innerText);
    say("Copied.", false);
  },
  batch: (at) => batch(at.dataset.verb),
  unmark,
  session: (at) => act("decide", at.dataset.decisions.split(" ")),
  news: async () => {
    if (await refresh()) news(0);
  },
  all: (at) => all(`[name=decision]`, at.form).forEach((field) => (field.value ||= at.dataset.all)),
  tour: (at) => tour(at),
};

document.addEventListener("click", (event) => {
  const at = event.target.closest("[data-do]");
  if (at) return ACTIONS[at.dataset.do]?.(at);
  if (event.target.closest(".back") && history.state?.covers) return void (event.preventDefault(), history.back());
  const row = event.target.closest("a[data-row]");
  if (!row || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (event.target.closest("[data-mark]")) {
    event.preventDefault();
    select(row, { warn: say });
    return mark(row);
  }
  if (!detail() || row.hasAttribute("data-leaves")) return;
  event.preventDefault();
  select(row, { opens: true, warn: say });
});
document.addEventListener("focusin", (event) => {
  const row = event.target.closest("[data-row]");
  if (row && row === event.target && row !== selected()) select(row, { warn: say });
});
document.addEventListener("toggle", async (event) => {
  const form = event.target.open && find("form[data-preview]", event.target);
  if (!form) return;
  const answer = await fetch(form.dataset.preview, { headers: { Accept: "application/json" } }).catch(() => null);
  if (answer?.ok) find("[data-found]", form).textContent = (await answer.json()).text;
}, true);

// A filter is applied as soon as it is chosen, and the words as they are typed: the server draws, the place stays.
const searching = find("[data-live]");
async function seek() {
  const address = new URL(searching.action || location.href);
  address.search = "";
  for (const [name, value] of new FormData(searching)) if (value) address.searchParams.set(name, value);
  if (await refresh(address, { keep: false })) history.replaceState(history.state, "", address);
}
let asked = 0;
find("[data-live] [name=q]")?.addEventListener("input", async () => {
  const mine = ++asked;
  await new Promise((done) => setTimeout(done, 150));
  if (mine === asked) await seek();
});
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-days]")) return;
  const { max, value, dataset } = event.target;
  const day = new Date(`${dataset.today}T12:00:00Z`);
  day.setUTCDate(day.getUTCDate() - (max - value));
  find("[name=as_of]").value = value === max ? "" : day.toISOString().slice(0, 10);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-days]")) return void seek();
  if (!event.target.matches("[data-auto] select, [data-auto] [name=file], [data-auto] [type=date]")) return;
  if (event.target.form === searching) seek();
  else event.target.form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  if (event.target !== searching) return;
  event.preventDefault();
  seek();
}, true);
for (const form of all("[data-auto]:not([data-live])"))
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (field.name && !field.value) field.disabled = true; // short addresses
  });
addEventListener("pageshow", () => all("[data-auto] :disabled").forEach((field) => (field.disabled = false)));

// Live: the journal, also of other processes. Nothing moves: a button says how much is new.
let unseen = 0;
let changes = 0;
function news(number, others = 0) {
  unseen = number;
  changes = others;
  const button = find(".news");
  button.hidden = !unseen && !changes;
  button.textContent = unseen ? `${unseen} new` : `${changes} changed`;
}
const CHANGES = ["revise", "reinforce", "demote", "pin", "unpin", "forget", "restore", "undo", "resolve", "promote", "erase", "conflict", "archive", "supersede", "confirm", "expire", "judge"];
const NEW = { saw: ["given"], sessions: ["session"], timeline: ["session"] };
function heard(event, isNew) {
  const { seq, number } = JSON.parse(event.data);
  if (seq && seq <= Number(document.body.dataset.lastEvent)) return;
  if (number && number <= Number(find("[data-last-receipt]")?.dataset.lastReceipt)) return;
  if (seq) document.body.dataset.lastEvent = seq;
  news(unseen + (isNew ? 1 : 0), changes + (isNew ? 0 : 1));
}
function offline(isOff) {
  find(".offline").hidden = !isOff;
  if (isOff) find(".live").hidden = true;
}
function follow() {
  const events = new EventSource(document.body.dataset.events);
  events.onopen = () => {
    offline(false);
    find(".live").hidden = false;
  };
  events.onerror = () => {
    offline(true);
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 3000); // refused, not only unreachable
  };
  for (const action of ["remember", ...(NEW[view] ?? [])]) events.addEventListener(action, (event) => heard(event, true));
  for (const action of CHANGES) events.addEventListener(action, (event) => heard(event, false));
}
follow();

// Keys. They act on the row with the ring, or on the detail where that covers the list.
const VIEWS = { s: "saw", m: "memories", i: "inbox", t: "timeline", e: "sessions", k: "knowledge", h: "health" };
const VERBS = { x: "forget", "+": "reinforce", "-": "demote", c: "confirm" };
let isGoing = false;
const keys = find("[data-do=keys]");
if (keys) keys.checked = localStorage.getItem("kept-keys") !== "off"; // WCAG 2.1.4: single keys can be switched off

function step(by) {
  const list = rows();
  const at = list.indexOf(selected());
  select(list[at < 0 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))], { warn: say });
}

async function edit(row) {
  if (isCovered() === false && row.matches("[data-row]") && row.checkVisibility() && !detail()?.checkVisibility()) select(row, { opens: true, warn: say });
  await loaded();
  const at = find("details.edit", detail());
  if (!at) return;
  at.open = true;
  find("textarea", at)?.focus();
}

function onRecord(key, row) {
  const { ref, decision, pinned, archived } = row.dataset;
  if (row.dataset.n) return onStatement(key, row);
  if (key === " ") return row.matches("[data-row]") && mark(row);
  const chosen = marked();
  if (chosen.length && (VERBS[key] || key === "a")) return batch(key === "a" ? "decide" : VERBS[key], chosen);
  if (key === "a" && decision) return act("decide", [decision]);
  if ("123".includes(key) && row.dataset[`k${key}`]) return act("decide", [row.dataset[`k${key}`]]);
  if (key === "s" && decision) return step(1);
  if (!ref) return undefined;
  if (archived) return key === "+" || key === "-" || key === "p" ? say(`Memory ${ref} is in the archive. Restore it first.`) : undefined;
  if (key === "e") return edit(row);
  if (key === "p") return act(pinned ? "unpin" : "pin", [ref]);
  if (VERBS[key]) return act(VERBS[key], [ref]);
  return undefined;
}

// A list to judge: nothing changes before it is settled.
function onStatement(key, row) {
  const decide = { a: "keep", d: "drop", w: "wrong", s: "" };
  if (key in decide) {
    find("[name=decision]", row).value = decide[key];
    row.dataset.decided = decide[key];
    return step(1);
  }
  if (key === "e") return find("textarea", row).focus();
  if (key === "Enter") return row.closest("form").requestSubmit();
  return undefined;
}

document.addEventListener("keydown", (event) => {
  const { key, target: at } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
  if (at.matches("input:not([type=radio], [type=checkbox]), textarea, select")) {
    if (key === "Escape") (at.blur(), (at.closest("[data-row]") ?? selected())?.focus({ preventScroll: true }));
    return;
  }
  if (localStorage.getItem("kept-keys") === "off") return;
  if (isGoing) {
    isGoing = false;
    if (VIEWS[key]) location.href = `${base}/${VIEWS[key]}`;
    return;
  }
  const row = target();
  if (key === "g") isGoing = true;
  else if (key === "?") ACTIONS.help();
  else if (key === "u") undo();
  else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (key === "[" || key === "]") {
    const now = find(".strip [aria-current]");
    (key === "[" ? now?.previousElementSibling : now?.nextElementSibling)?.click();
  } else if (key === "/") (event.preventDefault(), find("main [type=search], [type=search]")?.focus());
  else if (key === "." && (unseen || changes)) ACTIONS.news();
  else if (key === "n") find('[data-key-of="new"]')?.click();
  else if (key === "r") find('[data-key-of="replay"]')?.click();
  else if (key === "A") find('[data-key-of="session"]')?.click();
  else if (key === "Escape" && isCovered()) history.back();
  else if (row && !at.closest("button, summary, .toast") && (key !== "Enter" || row.dataset.n)) {
    if ("+-apxecsdw123 ".includes(key) || key === "Enter") {
      event.preventDefault();
      onRecord(key, row);
    }
  }
});

function undo() {
  const button = find("[data-undo]");
  if (button) return button.click();
  const event = sessionStorage.getItem("kept-undo");
  if (!event) return undefined;
  sessionStorage.removeItem("kept-undo");
  return act("undo", [], { event });
}

function tour(at) {
  localStorage.setItem("kept-tour", "seen");
  at.closest(".tour").remove();
}
if (localStorage.getItem("kept-tour") === "seen") find(".tour")?.remove();
else find(".tour")?.removeAttribute("hidden");

