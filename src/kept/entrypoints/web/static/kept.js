// What the page does beyond reading. Without it every view can still be read, and every form still works.

import { WAIT, all, detail, find, isCovered, isDirty, load, loaded, nameOf, refresh, rows, select, selected, settle, target } from "./place.js";

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
  if (isError) find("use", box).setAttribute("href", "#i-error");
  else find("[data-do=close]", box).remove(); // it leaves by itself
  if (undo) {
    find("[name=event]", box).value = undo;
    find("[data-undo] span", box).textContent = isRedo ? "Redo" : "Undo";
    if (isRedo) (find("[data-undo]", box).dataset.undo = "redo"), find("kbd", box)?.remove();
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

// The changes made in this tab and not undone, by a number of each: `u` takes them back one after the other.
const STACK = `kept-undo ${base}`;
function undoable() {
  const stack = JSON.parse(sessionStorage.getItem(STACK) ?? "[]");
  return Array.isArray(stack) ? stack : [];
}
const setUndoable = (stack) => sessionStorage.setItem(STACK, JSON.stringify(stack.slice(-100)));
// Behind a change that cannot be undone no older one is: `u` would revert something that nobody sees.
function noteChange(outcome, undone) {
  const stack = undoable().filter((one) => one !== undone);
  if (!undone || !undoable().includes(undone)) setUndoable(outcome.undo ? [...stack, outcome.undo] : []);
  else setUndoable(stack);
}
const drawn = find(".toast [name=event]");
if (drawn?.value && !/Redo/.test(drawn.form.textContent) && !undoable().includes(drawn.value)) setUndoable([...undoable(), drawn.value]);

// Every change is a form. Here it is sent without leaving the place; what was typed stays until it is saved.
async function send(address, body, isRedo = false) {
  const undone = body.get("verb") === "undo" ? body.get("event") : "";
  let answer;
  try {
    answer = await fetch(address, { method: "POST", body, headers: { Accept: "application/json" } });
  } catch {
    offline(true);
    say(`The server does not answer. Nothing was changed${isDirty() ? ", and your text is still here" : ""}.`);
    return null;
  }
  const outcome = (answer.headers.get("content-type") ?? "").includes("json") ? await answer.json() : null;
  if (answer.status === 401) say("This browser is not signed in any more. Sign in in another tab, then try again.");
  else if (!outcome || !("text" in outcome)) say(outcome?.detail ?? `The server refused this (${answer.status}). Nothing was changed.`);
  else {
    if (!outcome.is_error) noteChange(outcome, undone);
    toast(isRedo ? { ...outcome, is_redo: false, text: outcome.text.replace("Undone", "Done again") } : outcome);
    return outcome.is_error ? null : outcome;
  }
  return null;
}
// What is unsaved is finished first, and a past day is only read.
function isRefused(form) {
  const past = find("[data-past]");
  if (past) say(`This is what was known on ${past.dataset.past}. Choose today to change something.`);
  else if (detail() && isDirty() && !form?.matches("[data-keeps]")) say(WAIT);
  else return false;
  return true;
}

async function act(verb, refs, fields = {}, chosen = []) {
  if (isRefused()) return;
  const body = new URLSearchParams({ csrf, verb, back: location.pathname + location.search, ...fields });
  for (const ref of refs) body.append("ref", ref);
  await busy(async () => {
    const outcome = await send(`${base}/do`, body);
    if (!outcome) return;
    for (const row of chosen) row.classList.remove("marked");
    await drawAgain(verb, outcome);
  });
}

// After a change: the list as it is now. What an undo brought back gets the ring, if it is in the list.
async function drawAgain(verb, outcome) {
  if (await refresh()) news(0);
  const back = verb === "undo" && rows().find((row) => outcome.refs.includes(nameOf(row)));
  if (back && !isDirty()) select(back);
}

// One change after the other: a key that is pressed while a change is under way would meet a list that is about to move.
// Only an undo can wait, because what it undoes does not depend on a row; anything else is refused.
let next = null;
async function busy(work, isUndo = false) {
  if (document.body.ariaBusy) {
    if (isUndo && !next) next = work;
    else ignored();
    return;
  }
  document.body.ariaBusy = "true";
  try {
    await work();
  } finally {
    document.body.ariaBusy = null;
    const waiting = next;
    next = null;
    if (waiting) waiting();
  }
}

const EARLY = "A key came while a change was under way, and did nothing.";
function ignored() {
  const line = find(".toast:has([data-undo]) p"); // its undo stays
  if (!line) say(EARLY, false);
  else if (!line.textContent.endsWith(EARLY)) line.append(` ${EARLY}`);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || form.closest("dialog")) return;
  event.preventDefault();
  if (isRefused(form)) return;
  await busy(() => submit(form, event.submitter));
});

async function submit(form, button) {
  const body = new URLSearchParams(new FormData(form, button));
  const outcome = await send(form.action, body, Boolean(form.closest(".toast")) && !undoable().includes(body.get("event")));
  const verb = form.elements.verb?.value;
  if (!outcome) return void (verb === "revise" && offerStored(form));
  settle(form);
  if (verb === "remember") location.href = `${base}/memories?ref=${encodeURIComponent(outcome.ref)}`;
  else if (verb === "pause" || verb === "resume") location.reload();
  else {
    const edit = form.closest("details.edit");
    if (edit) edit.open = false;
    await drawAgain(verb, outcome);
    const next = form.matches(".judging") && rows()[0];
    if (next) (select(next), next.closest("section").scrollIntoView());
    else selected()?.focus({ preventScroll: true });
  }
}

// A text that met another change: both can be looked at before one of them is kept.
const stored = async (form) => {
  const address = `${base}/memories?ref=${encodeURIComponent(form.elements.ref.value)}`;
  const answer = await fetch(address, { headers: { Accept: "text/html", "X-Kept-Part": "detail" } }).catch(() => null);
  return answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
};
async function offerStored(form) {
  const now = await stored(form);
  const etag = now && find("[name=etag]", now)?.value;
  if (etag && etag !== form.elements.etag.value) find("[data-conflict]", form).hidden = false;
}

addEventListener("beforeunload", (event) => isDirty() && event.preventDefault());

// Several at once
const marked = () => all("[data-row].marked");
function mark(row) {
  if (find("[data-past]")) return;
  row.classList.toggle("marked");
  showMarked();
}
document.addEventListener("drawn", showMarked);
function showMarked() {
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
const batch = (verb, chosen = marked()) => act(verb, chosen.map((row) => (verb === "decide" ? row.dataset.decision : row.dataset.ref)), {}, chosen);

const ACTIONS = {
  theme: switchTheme,
  help: () => find("#help").showModal(),
  keys: (at) => localStorage.setItem("kept-keys", at.checked ? "on" : "off"),
  cancel: (at) => {
    at.form.reset();
    at.closest("details").open = false;
    const row = selected();
    row?.focus();
    if (row?.href && find("[data-ref]", detail())?.dataset.ref !== row.dataset.ref) load(row.href);
    if (isSearchWaiting) seek();
  },
  overwrite: (at) => {
    at.form.elements.etag.value = "";
    at.form.requestSubmit();
  },
  stored: async (at) => {
    const now = await stored(at.form);
    const box = find("[data-stored]", at.form);
    box.textContent = (now && find(".statement", now)?.textContent) ?? "It is not stored any more.";
    box.hidden = false;
  },
  copy: (at) => {
    navigator.clipboard?.writeText(find(at.dataset.copy ?? "code", at.dataset.copy ? document : at.closest("li")).innerText);
    say("Copied.", false);
  },
  close: (at) => at.closest(".toast").remove(),
  batch: (at) => batch(at.dataset.verb),
  every: () => rows().filter((row) => row.dataset.ref && !row.matches(".marked")).forEach(mark),
  unmark,
  session: (at) => act("decide", at.dataset.decisions.split(" ")),
  news: async () => {
    if (detail() && isDirty()) return say(WAIT);
    if (await refresh()) news(0);
  },
  all: (at) => all(".judged:not([data-stored-before]):has([value='']:checked)", at.form).forEach((row) => decide(row, at.dataset.all)),
  tour: (at) => tour(at),
};

document.addEventListener("click", (event) => {
  // The second half of a double click would decide about the next one, unread.
  if (event.detail > 1 && event.target.closest(".decide .btn, [data-batch] .btn")) return void event.preventDefault();
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
  if (!answer?.ok) return;
  const { text, quoting } = await answer.json();
  const links = quoting.map((ref) => Object.assign(document.createElement("a"), { href: `${base}/memories?ref=${encodeURIComponent(ref)}`, textContent: ref }));
  const said = find("[data-found]", form);
  said.replaceChildren(text, ...(links.length ? [" Quoted in "] : []), ...links.flatMap((link, n) => (n ? [", ", link] : [link])));
}, true);

// A filter is applied as soon as it is chosen, and the words as they are typed: the server draws, the place stays.
const searching = find("[data-live]");
let isSearchWaiting = false; // for a text to be saved: the list would move away from it
async function seek() {
  isSearchWaiting = Boolean(detail()) && isDirty();
  if (isSearchWaiting) return say(WAIT);
  const address = new URL(searching.action || location.href);
  address.search = "";
  for (const [name, value] of new FormData(searching)) if (value) address.searchParams.set(name, value);
  if (await refresh(address, { keep: false })) history.replaceState(history.state, "", address);
}
let asked = 0;
if (searching && view === "memories" && matchMedia("(max-width: 44rem)").matches) find("main [name=q]").placeholder = "Search memories";
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
  find("output[for=as-of-day]").textContent = value === max ? "today" : day.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
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
let unseenNouns = new Set();
const NOUNS = { remember: ["memory", "memories"], given: ["text for an agent", "texts for agents"], session: ["session", "sessions"] };
function news(number, others = 0) {
  unseen = number;
  changes = others;
  if (!unseen) unseenNouns = new Set();
  const noun = unseenNouns.size === 1 ? ` ${NOUNS[[...unseenNouns][0]][unseen === 1 ? 0 : 1]}` : "";
  const button = find(".news");
  button.hidden = !unseen && !changes;
  button.textContent = unseen ? `${unseen} new${noun}` : `${changes} changed`;
}
const CHANGES = ["revise", "reinforce", "demote", "pin", "unpin", "forget", "restore", "undo", "resolve", "promote", "erase", "conflict", "archive", "supersede", "confirm", "expire", "judge", "verify"];
const NEW = { saw: ["given"], sessions: ["session"], timeline: ["session"] };
function heard(event, isNew) {
  const { seq, number } = JSON.parse(event.data);
  if (seq && seq <= Number(document.body.dataset.lastEvent)) return;
  if (number && number <= Number(find("[data-last-receipt]")?.dataset.lastReceipt)) return;
  if (seq) document.body.dataset.lastEvent = seq;
  if (isNew) unseenNouns.add(event.type);
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
const ONE_AT_A_TIME = { e: "Edit", p: "Pin" };
const VERBS = { x: "forget", "+": "reinforce", "-": "demote", c: "confirm" };
let isGoing = false;
const keys = find("[data-do=keys]");
if (keys) keys.checked = localStorage.getItem("kept-keys") !== "off"; // WCAG 2.1.4: single keys can be switched off

// Where rows have no detail beside them, j and k begin at the first row of the answer, and end with its card.
function step(by) {
  const from = selected() ?? document.activeElement?.closest?.("[data-row]");
  const card = detail() ? null : (from ?? find(".trace [data-row]") ?? rows()[0])?.closest(".card");
  const list = rows().filter((row) => !card || row.closest(".card") === card);
  const at = list.indexOf(from);
  select(list[at < 0 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))], { warn: say });
}

async function edit(row) {
  if (isCovered() === false && row.matches("[data-row]") && row.checkVisibility() && !detail()?.checkVisibility()) select(row, { opens: true, warn: say });
  await loaded();
  if (!openEdit()) location.href = `${base}/memories?ref=${encodeURIComponent(row.dataset.ref)}#edit`; // it is edited there
}
function openEdit() {
  const at = detail() && find("details.edit", detail());
  if (!at) return false;
  at.open = true;
  write(find("textarea", at));
  return true;
}
function write(field) {
  field?.focus();
  field?.setSelectionRange(field.value.length, field.value.length);
}
if (location.hash === "#edit") openEdit();

function onRecord(key, row) {
  const { ref, decision, pinned, archived } = row.dataset;
  if (row.dataset.n) return onStatement(key, row);
  if (find("[data-past]")) return void isRefused();
  if (key === " ") return row.matches("[data-row]") && mark(row);
  const chosen = marked();
  const isOfPairs = (chosen.length ? chosen : [row]).some((one) => one.dataset.k3);
  if (isOfPairs && (key === "c" || key === "x")) return say("Of two statements, keep one (1, 2) or both (3).");
  if (chosen.length && ONE_AT_A_TIME[key]) return say(`${ONE_AT_A_TIME[key]} works on one memory. Esc ends the selection.`);
  if (chosen.length && (VERBS[key] || key === "a")) return batch(key === "a" ? "decide" : VERBS[key], chosen);
  if (chosen.length && "123".includes(key)) return act("decide", chosen.map((one) => one.dataset[`k${key}`]).filter(Boolean), {}, chosen);
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
const DECISIONS = { a: "keep", d: "drop", w: "wrong", s: "" };
const decide = (row, value) => (find(`[type=radio][value="${value}"]`, row).checked = true);
function onStatement(key, row) {
  if (key in DECISIONS) {
    decide(row, DECISIONS[key]);
    const later = rows().slice(rows().indexOf(row) + 1); // what was stored before is not asked about: j and k lead there
    return select(later.find((one) => !("storedBefore" in one.dataset)) ?? row, { warn: say });
  }
  if (key === "e") return write(find("textarea", row));
  if (key === "Enter") return row.closest("form").requestSubmit();
  return undefined;
}

// Buttons and summaries hear Enter and Space themselves, and other keys only where they are the row.
function isFree(at, row, key) {
  const control = at.closest("button, summary, .toast");
  if (at.matches("[type=radio], [type=checkbox]") && key === " ") return false;
  if (control) return control === row && key !== "Enter" && key !== " ";
  return key !== "Enter" || row.dataset.n;
}

document.addEventListener("keydown", (event) => {
  const { key, target: at } = event;
  if (key === "Enter" && (event.ctrlKey || event.metaKey) && at.form?.matches("[data-keeps]")) return at.form.requestSubmit();
  if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
  if (at.matches("input:not([type=radio], [type=checkbox]), textarea, select")) {
    if (key === "Escape" && at.type === "search") return void leaveSearch(event);
    if (key === "Escape") (at.blur(), (at.closest("[data-row]") ?? selected())?.focus({ preventScroll: true }));
    return;
  }
  const failed = key === "Escape" && find(".toast.error");
  if (failed) return failed.remove();
  if (localStorage.getItem("kept-keys") === "off") return;
  if (isGoing) {
    isGoing = false;
    if (VIEWS[key]) location.href = `${base}/${VIEWS[key]}`;
    return;
  }
  const row = target();
  const isHeld = event.repeat; // a key that is held down moves on, but decides about one record alone
  if (key === "g") isGoing = true;
  else if (key === "?") ACTIONS.help();
  else if (key === "u") isHeld || undo();
  else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (key === "[" || key === "]") {
    const now = find(".tabs [aria-current]");
    const on = find(key === "]" ? '[data-key-of="on"], [data-key-of="later"]' : '[data-key-of="earlier"]');
    if (on) return on.click();
    (key === "[" ? now?.previousElementSibling : now?.nextElementSibling)?.click();
  } else if (key === "/") (event.preventDefault(), search());
  else if (key === "." && (unseen || changes)) ACTIONS.news();
  else if (key === "n") find('[data-key-of="new"]')?.click();
  else if (key === "r") find('[data-key-of="replay"]')?.click();
  else if (key === "*" && find("[data-batch]")) ACTIONS.every();
  else if (key === "A" && !isHeld) find('[data-key-of="session"]')?.click();
  else if (key === "Escape" && marked().length) unmark();
  else if (key === "Escape" && isCovered()) history.back();
  else if (row && isFree(at, row, key)) {
    if ("+-apxecsdw123 ".includes(key) || key === "Enter") {
      event.preventDefault();
      if (!isHeld) onRecord(key, row);
    }
  }
});

function undo() {
  if (document.body.ariaBusy) return busy(undo, true);
  const event = undoable().at(-1);
  return event ? act("undo", [], { event }) : say("There is nothing to undo here. The timeline has every change.", false);
}

function search() {
  const field = find("main [type=search], [type=search]");
  field?.focus();
  field?.select();
}

// Escape empties a search and shows the list without it.
async function leaveSearch(event) {
  event.preventDefault();
  const field = event.target;
  const had = field.value;
  field.value = "";
  field.blur();
  if (had && field.form === searching) (asked++, await seek());
  selected()?.focus({ preventScroll: true });
}

function tour(at) {
  localStorage.setItem("kept-tour", "seen");
  at.closest(".tour").remove();
}
if (localStorage.getItem("kept-tour") === "seen") find(".tour")?.remove();
else find(".tour")?.removeAttribute("hidden");

